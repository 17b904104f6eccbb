// SPDX-License-Identifier: Apache-2.0
// Looks over JSON text sixteen bytes at a time. Internal to analysis/import.
#pragma once

#include <bit>
#include <cstddef>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace driftscope {

// Where a run of printable ASCII without quotes and backslashes ends.
inline std::size_t plain_end(std::string_view text, std::size_t at) {
  const auto plain = [](char c) {
    return static_cast<signed char>(c) >= 0x20 && c != '"' && c != '\\';
  };
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i space = _mm_set1_epi8(0x20);
  for (; at + 16 <= text.size(); at += 16) {
    const __m128i chunk = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
    // As signed bytes, control characters and everything beyond ASCII are below the space.
    const __m128i found =
        _mm_or_si128(_mm_cmplt_epi8(chunk, space),
                     _mm_or_si128(_mm_cmpeq_epi8(chunk, quote), _mm_cmpeq_epi8(chunk, backslash)));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(found));
    if (mask != 0) return at + static_cast<std::size_t>(std::countr_zero(mask));
  }
#endif
  while (at < text.size() && plain(text[at])) ++at;
  return at;
}

}  // namespace driftscope
