// SPDX-License-Identifier: Apache-2.0
// UTF-8 as the Unicode standard defines it: no surrogates, no overlong forms, at most U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace driftscope {

enum class Utf8State {
  valid,      // a whole character
  invalid,    // bytes that no continuation can turn into a character
  truncated,  // the text ends inside a character
};

struct Utf8Step {
  Utf8State state = Utf8State::valid;
  char32_t code_point = 0;  // U+FFFD unless valid
  // Bytes consumed, at least 1. For invalid and truncated: the maximal subpart that
  // stands for one U+FFFD (Unicode standard, chapter 3.9, best practice).
  std::size_t length = 1;
};

// `position` < text.size().
[[nodiscard]] Utf8Step decode_utf8(std::string_view text, std::size_t position);
// Offset of the first byte that does not begin a valid character; npos when all is valid.
[[nodiscard]] std::size_t find_invalid_utf8(std::string_view text);
// `code_point` is a Unicode scalar value.
void append_utf8(std::string& target, char32_t code_point);

}  // namespace driftscope
