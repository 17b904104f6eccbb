// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/display_text.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

struct CodePointRange {
  char32_t first;
  char32_t last;
};

// Controls (C0, DEL, C1), the soft hyphen, and format characters that are invisible or
// reorder what follows. The zero-width joiners stay: emoji and many scripts need them.
constexpr std::array<CodePointRange, 9> kHidden{{
    {0x0000, 0x001F},
    {0x007F, 0x009F},
    {0x00AD, 0x00AD},
    {0x061C, 0x061C},
    {0x200B, 0x200B},
    {0x200E, 0x200F},
    {0x2028, 0x202E},
    {0x2060, 0x206F},
    {0xFEFF, 0xFEFF},
}};

bool is_hidden(char32_t code_point) {
  for (const CodePointRange& range : kHidden) {
    if (code_point >= range.first && code_point <= range.last) return true;
  }
  return false;
}

void append_hexadecimal(std::string& target, std::uint32_t value, int digits) {
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) {
    target.push_back("0123456789abcdef"[(value >> static_cast<unsigned>(shift)) & 0xFU]);
  }
}

void append_escaped(std::string& target, char32_t code_point) {
  switch (code_point) {
    case U'\n':
      target += "\\n";
      return;
    case U'\r':
      target += "\\r";
      return;
    case U'\t':
      target += "\\t";
      return;
    case U'\\':
      target += "\\\\";
      return;
    default:  // not an enumeration
      break;
  }
  target += "\\u{";
  append_hexadecimal(target, static_cast<std::uint32_t>(code_point), 4);
  target += "}";
}

}  // namespace

std::string escape_for_display(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  std::size_t position = 0;
  while (position < text.size()) {
    const Utf8Step step = decode_utf8(text, position);
    if (step.state != Utf8State::valid) {
      for (std::size_t i = 0; i < step.length; ++i) {
        result += "\\x";
        append_hexadecimal(result, static_cast<std::uint8_t>(text[position + i]), 2);
      }
    } else if (step.code_point == U'\\' || is_hidden(step.code_point)) {
      append_escaped(result, step.code_point);
    } else {
      result.append(text, position, step.length);
    }
    position += step.length;
  }
  return result;
}

}  // namespace driftscope
