// SPDX-License-Identifier: Apache-2.0
#include "engine/text/charsmap.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

constexpr std::size_t kUnitBytes = 4;

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = kUnitBytes; i-- > 0;) {
    value = (value << 8U) | static_cast<std::uint8_t>(bytes[i]);
  }
  return value;
}

// A unit of the double array, as darts-clone packs it.
bool has_leaf(std::uint32_t unit) { return ((unit >> 8U) & 1U) != 0; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FFU; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFFU; }
std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10U) << ((unit & 0x200U) >> 6U); }

// Where the grapheme cluster that begins at `begin` ends.
std::size_t grapheme_end(std::string_view text, std::size_t begin) {
  Utf8Step step = decode_utf8(text, begin);
  std::size_t end = begin + step.length;
  utf8proc_int32_t state = 0;
  while (end < text.size()) {
    const Utf8Step next = decode_utf8(text, end);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(step.code_point),
                                         static_cast<utf8proc_int32_t>(next.code_point), &state)) {
      break;
    }
    end += next.length;
    step = next;
  }
  return end;
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

Result<CharsMap> CharsMap::read(std::string_view bytes, const std::string& name) {
  const auto malformed = [&](std::string_view what) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: charsmap {}; fix the tokenizer", name, what));
  };
  if (bytes.size() < kUnitBytes) return malformed("ends inside its header");
  const std::size_t trie_bytes = little_endian(bytes);
  bytes.remove_prefix(kUnitBytes);
  if (trie_bytes > bytes.size()) return malformed("ends inside its trie");
  if (trie_bytes == 0 || trie_bytes % kUnitBytes != 0) {
    return malformed("has a trie of a wrong size");
  }
  std::vector<std::uint32_t> units;
  units.reserve(trie_bytes / kUnitBytes);
  for (std::size_t i = 0; i < trie_bytes; i += kUnitBytes) {
    units.push_back(little_endian(bytes.substr(i)));
  }
  std::string replacements(bytes.substr(trie_bytes));
  if (find_invalid_utf8(replacements) != std::string_view::npos) {
    return malformed("has replacements that are not UTF-8");
  }
  CharsMap map;
  map.m_units = std::make_shared<const std::vector<std::uint32_t>>(std::move(units));
  map.m_replacements = std::make_shared<const std::string>(std::move(replacements));
  return map;
}

std::optional<std::string_view> CharsMap::replacement_at(std::uint32_t offset) const {
  const std::string_view all = *m_replacements;
  if (offset >= all.size()) return std::nullopt;
  // An offset into the middle of a character is damage too.
  if ((static_cast<std::uint8_t>(all[offset]) & 0xC0U) == 0x80U) return std::nullopt;
  return all.substr(offset, all.find('\0', offset) - offset);
}

std::optional<CharsMap::Found> CharsMap::find(std::string_view text, Which which) const {
  const std::vector<std::uint32_t>& units = *m_units;
  std::optional<Found> found;
  std::uint32_t position = offset_of(units[0]);
  for (std::size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    position ^= byte;
    if (position >= units.size() || label_of(units[position]) != byte) break;
    const std::uint32_t unit = units[position];
    position ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (position >= units.size()) break;
    const auto replacement = replacement_at(value_of(units[position]));
    if (replacement) found = Found{i + 1, *replacement};
    if (found && which == Which::shortest) break;
  }
  return found;
}

void CharsMap::append_characters(const AlignedText& text, std::size_t begin, std::size_t end,
                                 AlignedText& target) const {
  while (begin < end) {
    const std::size_t next = begin + decode_utf8(text.text(), begin).length;
    const auto found = find(text.text().substr(begin, next - begin), Which::shortest);
    if (found) {
      target.append(found->replacement, text.span(begin, next));
    } else {
      target.append_copy(text, begin, next);
    }
    begin = next;
  }
}

AlignedText CharsMap::apply_to_graphemes(const AlignedText& text) const {
  constexpr std::size_t kLongGrapheme = 6;
  AlignedText result;
  result.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = grapheme_end(text.text(), begin);
    const auto found = end - begin < kLongGrapheme
                           ? find(text.text().substr(begin, end - begin), Which::shortest)
                           : std::nullopt;
    if (found) {
      result.append(found->replacement, text.span(begin, end));
    } else {
      append_characters(text, begin, end, result);
    }
    begin = end;
  }
  return result;
}

AlignedText CharsMap::apply_longest(const AlignedText& text) const {
  AlignedText result;
  result.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    const auto found = find(text.text().substr(begin), Which::longest);
    const std::size_t end =
        begin + (found ? found->length : decode_utf8(text.text(), begin).length);
    if (found) {
      result.append(found->replacement, text.span(begin, end));
    } else {
      result.append_copy(text, begin, end);
    }
    begin = end;
  }
  return result;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++padding;
  }
  std::string bytes;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const int digit = base64_digit(c);
    if (digit < 0) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>((bits >> count) & 0xFFU));
  }
  return bytes;
}

}  // namespace driftscope
