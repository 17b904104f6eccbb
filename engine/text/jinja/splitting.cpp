// SPDX-License-Identifier: Apache-2.0
// Taking strings apart as CPython does.
#include <algorithm>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/searching.h"
#include "engine/text/jinja/value.h"
#include "kernels/base/utf8.h"

namespace driftscope::jinja {
namespace {

// The character that ends at `end`.
Utf8Step character_before(std::string_view text, std::size_t end) {
  std::size_t begin = end - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) --begin;
  return decode_utf8(text, begin);
}

struct Stripper {
  std::optional<std::u32string> characters;
  [[nodiscard]] bool takes(char32_t character) const {
    return characters ? characters->find(character) != std::u32string::npos : is_space(character);
  }
};

std::vector<std::string_view> split_at_space(std::string_view text, std::int64_t limit) {
  std::vector<std::string_view> parts;
  std::string_view rest = strip(text, std::nullopt, Ends::left);
  while (!rest.empty()) {
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit) {
      parts.push_back(strip(rest, std::nullopt, Ends::right));
      break;
    }
    std::size_t end = 0;
    while (end < rest.size()) {
      const Utf8Step step = decode_utf8(rest, end);
      if (is_space(step.code_point)) break;
      end += step.length;
    }
    parts.push_back(rest.substr(0, end));
    rest = strip(rest.substr(end), std::nullopt, Ends::left);
  }
  return parts;
}

std::vector<std::string_view> split_right_at_space(std::string_view text, std::int64_t limit) {
  std::vector<std::string_view> parts;
  std::string_view rest = strip(text, std::nullopt, Ends::right);
  while (!rest.empty()) {
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit) {
      parts.push_back(strip(rest, std::nullopt, Ends::left));
      break;
    }
    std::size_t begin = rest.size();
    while (begin > 0) {
      const Utf8Step step = character_before(rest, begin);
      if (is_space(step.code_point)) break;
      begin -= step.length;
    }
    parts.push_back(rest.substr(begin));
    rest = strip(rest.substr(0, begin), std::nullopt, Ends::right);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

bool ends_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

}  // namespace

std::string_view strip(std::string_view text, std::optional<std::string_view> characters,
                       Ends ends) {
  Stripper stripper;
  if (characters) stripper.characters = characters_of(*characters);
  while (ends != Ends::right && !text.empty()) {
    const Utf8Step step = decode_utf8(text, 0);
    if (!stripper.takes(step.code_point)) break;
    text.remove_prefix(step.length);
  }
  while (ends != Ends::left && !text.empty()) {
    const Utf8Step step = character_before(text, text.size());
    if (!stripper.takes(step.code_point)) break;
    text.remove_suffix(step.length);
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator, std::int64_t limit) {
  if (!separator) return split_at_space(text, limit);
  if (separator->empty()) raise("split: the separator is empty; give one, or none for white space");
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) < limit) {
    const std::size_t found = find_text(text, *separator, begin);
    if (found == std::string_view::npos) break;
    parts.push_back(text.substr(begin, found - begin));
    begin = found + separator->size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::vector<std::string_view> split_right(std::string_view text,
                                          std::optional<std::string_view> separator,
                                          std::int64_t limit) {
  if (!separator) return split_right_at_space(text, limit);
  if (separator->empty())
    raise("rsplit: the separator is empty; give one, or none for white space");
  // Backwards once, so that many parts cost no more than one.
  const std::string backwards(text.rbegin(), text.rend());
  const std::string separator_backwards(separator->rbegin(), separator->rend());
  std::vector<std::string_view> parts;
  std::size_t end = text.size();
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) < limit) {
    const std::size_t found = find_text(backwards, separator_backwards, text.size() - end);
    if (found == std::string_view::npos) break;
    const std::size_t begin = text.size() - found;  // of the part, behind its separator
    parts.push_back(text.substr(begin, end - begin));
    end = begin - separator->size();
  }
  parts.push_back(text.substr(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Step step = decode_utf8(text, i);
    const std::size_t end = i;
    i += step.length;
    if (!ends_line(step.code_point)) continue;
    if (step.code_point == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(begin, (keep_ends ? i : end) - begin));
    begin = i;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::string replace(std::string_view text, std::string_view old_part, std::string_view new_part,
                    std::int64_t limit, std::size_t largest) {
  std::string result;
  std::size_t at = 0;
  for (std::int64_t done = 0; limit < 0 || done < limit; ++done) {
    std::size_t found = at;
    if (!old_part.empty()) {
      found = find_text(text, old_part, at);
      if (found == std::string_view::npos) break;
    } else if (at > text.size()) {
      break;
    }
    result += text.substr(std::min(at, text.size()), found - std::min(at, found));
    result += new_part;
    if (result.size() > largest) raise("replace: the text grows too long");
    at = found + old_part.size();
    if (old_part.empty()) {  // between all characters, and at both ends
      const std::size_t length = at < text.size() ? decode_utf8(text, at).length : 1;
      if (at < text.size()) result += text.substr(at, length);
      at += length;
    }
  }
  if (at < text.size()) result += text.substr(at);
  return result;
}

}  // namespace driftscope::jinja
