// SPDX-License-Identifier: Apache-2.0
// Escapes of JSON texts. Internal to analysis/import.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace driftscope::json_escapes {

inline bool starts(std::string_view text, std::size_t at, std::string_view word) {
  return text.compare(at, word.size(), word) == 0;
}

// Four hexadecimal digits.
inline std::optional<std::uint32_t> hex4(std::string_view text, std::size_t at) {
  if (at + 4 > text.size()) return std::nullopt;
  std::uint32_t value = 0;
  const auto result = std::from_chars(text.data() + at, text.data() + at + 4, value, 16);
  if (result.ec != std::errc{} || result.ptr != text.data() + at + 4) return std::nullopt;
  return value;
}

inline bool is_high(std::uint32_t code) { return code >= 0xD800 && code < 0xDC00; }
inline bool is_low(std::uint32_t code) { return code >= 0xDC00 && code < 0xE000; }

}  // namespace driftscope::json_escapes
