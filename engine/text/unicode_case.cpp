// SPDX-License-Identifier: Apache-2.0
#include <utf8proc.h>

#include "engine/text/normalizer.h"
#include "engine/text/unicode_versions.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

// Rebuilds the text character by character; `change` writes what a character becomes.
template <class Change>
AlignedText map_characters(const AlignedText& text, Change change) {
  AlignedText result;
  result.reserve(text.size());
  const std::string_view bytes = text.text();
  std::string changed;
  for (std::size_t i = 0; i < bytes.size();) {
    const Utf8Step step = decode_utf8(bytes, i);
    changed.clear();
    change(step.code_point, changed);
    if (changed == bytes.substr(i, step.length)) {
      result.append_copy(text, i, i + step.length);
    } else {
      result.append(changed, text.span(i, i + step.length));
    }
    i += step.length;
  }
  return result;
}

}  // namespace

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

AlignedText to_lowercase(AlignedText text) {
  return map_characters(text, [](char32_t code_point, std::string& target) {
    if (code_point == 0x130) {  // the only character whose lower case is two
      target = "i\xCC\x87";
      return;
    }
    append_utf8(target,
                static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point))));
  });
}

AlignedText strip_accents(AlignedText text) {
  return map_characters(text, [](char32_t code_point, std::string& target) {
    if (!is_accent(code_point)) append_utf8(target, code_point);
  });
}

AlignedText collapse_spaces(AlignedText text) {
  const std::string_view bytes = text.text();
  AlignedText result;
  result.reserve(bytes.size());
  std::size_t pending = bytes.size();  // a space that is not yet known to be the last
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == ' ') {
      if (result.size() > 0 && pending == bytes.size()) pending = i;
      continue;
    }
    if (pending < bytes.size()) result.append_copy(text, pending, pending + 1);
    pending = bytes.size();
    result.append_copy(text, i, i + 1);
  }
  return result;
}

AlignedText nmt_clean(AlignedText text) {
  return map_characters(text, [](char32_t c, std::string& target) {
    const bool control = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
                         c == 0x7F || c == 0x8F || c == 0x9F;
    if (control) return;
    const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xFEFF || c == 0xFFFD;
    append_utf8(target, space ? U' ' : c);
  });
}

AlignedText strip_white_space(AlignedText text, bool left, bool right) {
  const std::string_view bytes = text.text();
  std::size_t begin = bytes.size();
  std::size_t end = 0;
  for (std::size_t i = 0; i < bytes.size();) {
    const Utf8Step step = decode_utf8(bytes, i);
    if (!is_white_space(step.code_point)) {
      begin = std::min(begin, i);
      end = i + step.length;
    }
    i += step.length;
  }
  if (!left) begin = 0;
  if (!right) end = bytes.size();
  if (begin >= end) return AlignedText{};
  if (begin == 0 && end == bytes.size()) return text;
  AlignedText result;
  result.append_copy(text, begin, end);
  return result;
}

}  // namespace driftscope
