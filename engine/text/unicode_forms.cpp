// SPDX-License-Identifier: Apache-2.0
// Normalisation forms with alignment. utf8proc gives the decomposition of a character, its
// combining class and the composition of a pair; the ordering and the composition of the text
// are done here (UAX #15), because each character must keep the span it came from.
#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "engine/text/normalizer.h"
#include "engine/text/unicode_versions.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

struct Character {
  char32_t code_point;
  int combining_class;
  ByteSpan origin;
  std::size_t source_begin;  // bytes of the source that it is an unchanged copy of,
  std::size_t source_end;    // begin == end when it was changed
};

int combining_class(char32_t code_point) {
  if (is_inert_in_normal_forms(code_point)) return 0;
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(code_point))->combining_class;
}

// Below U+0300 every text is NFC already; below U+0080 it is in every form.
bool is_in_form_already(std::string_view text, UnicodeForm form) {
  const unsigned char limit = form == UnicodeForm::nfc ? 0xCC : 0x80;  // 0xCC 0x80 is U+0300
  return std::all_of(text.begin(), text.end(),
                     [limit](char byte) { return static_cast<unsigned char>(byte) < limit; });
}

bool is_compatibility(UnicodeForm form) {
  return form == UnicodeForm::nfkc || form == UnicodeForm::nfkd;
}
bool is_composed(UnicodeForm form) { return form == UnicodeForm::nfc || form == UnicodeForm::nfkc; }

void append_decomposed(std::vector<Character>& characters, const AlignedText& text,
                       std::size_t begin, std::size_t end, char32_t code_point, UnicodeForm form) {
  // The longest decomposition of one character has 18 (U+FDFA).
  std::array<utf8proc_int32_t, 32> parts{};
  const int options = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE |
                      (is_compatibility(form) ? static_cast<int>(UTF8PROC_COMPAT) : 0);
  int last_boundary = 0;
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), parts.data(),
                              static_cast<utf8proc_ssize_t>(parts.size()),
                              static_cast<utf8proc_option_t>(options), &last_boundary);
  const ByteSpan origin = text.span(begin, end);
  const bool usable = !is_inert_in_normal_forms(code_point) && count > 0 &&
                      count <= static_cast<utf8proc_ssize_t>(parts.size());
  if (!usable || (count == 1 && parts[0] == static_cast<utf8proc_int32_t>(code_point))) {
    characters.push_back({code_point, combining_class(code_point), origin, begin, end});
    return;
  }
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    const auto part = static_cast<char32_t>(parts[static_cast<std::size_t>(i)]);
    characters.push_back({part, combining_class(part), origin, 0, 0});
  }
}

// Canonical ordering: runs of characters with a combining class are sorted by it, stably.
void order_marks(std::vector<Character>& characters) {
  std::size_t i = 0;
  while (i < characters.size()) {
    if (characters[i].combining_class == 0) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < characters.size() && characters[end].combining_class != 0) ++end;
    std::stable_sort(characters.begin() + static_cast<std::ptrdiff_t>(i),
                     characters.begin() + static_cast<std::ptrdiff_t>(end),
                     [](const Character& a, const Character& b) {
                       return a.combining_class < b.combining_class;
                     });
    i = end;
  }
}

std::optional<char32_t> compose_pair(char32_t first, char32_t second) {
  // Nothing below U+0300 composes with what comes before it.
  if (second < 0x300) return std::nullopt;
  std::array<utf8proc_int32_t, 2> pair{static_cast<utf8proc_int32_t>(first),
                                       static_cast<utf8proc_int32_t>(second)};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  if (utf8proc_normalize_utf32(pair.data(), 2, options) != 1) return std::nullopt;
  const auto composed = static_cast<char32_t>(pair[0]);
  if (is_inert_in_normal_forms(composed)) return std::nullopt;
  return composed;
}

ByteSpan joined(ByteSpan a, ByteSpan b) {
  if (a.begin == a.end) return b;
  if (b.begin == b.end) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

void compose(std::vector<Character>& characters) {
  constexpr std::size_t kNoStarter = static_cast<std::size_t>(-1);
  std::size_t starter = kNoStarter;  // position in the output
  std::size_t kept = 0;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const Character current = characters[i];
    // Blocked when something between has the same or a higher class, or is itself a starter.
    const bool adjacent = starter != kNoStarter && kept == starter + 1;
    const bool open =
        starter != kNoStarter &&
        (adjacent || (characters[kept - 1].combining_class != 0 &&
                      characters[kept - 1].combining_class < current.combining_class));
    if (open) {
      if (const auto composed = compose_pair(characters[starter].code_point, current.code_point)) {
        Character& target = characters[starter];
        target = {*composed, combining_class(*composed), joined(target.origin, current.origin), 0,
                  0};
        continue;
      }
    }
    if (current.combining_class == 0) starter = kept;
    characters[kept++] = current;
  }
  characters.resize(kept);
}

AlignedText rebuild(const AlignedText& source, const std::vector<Character>& characters) {
  AlignedText result;
  result.reserve(source.size());
  std::string encoded;
  for (const Character& character : characters) {
    if (character.source_begin < character.source_end) {
      result.append_copy(source, character.source_begin, character.source_end);
      continue;
    }
    encoded.clear();
    append_utf8(encoded, character.code_point);
    result.append(encoded, character.origin);
  }
  return result;
}

}  // namespace

AlignedText to_unicode_form(AlignedText text, UnicodeForm form) {
  const std::string_view bytes = text.text();
  if (is_in_form_already(bytes, form)) return text;
  std::vector<Character> characters;
  for (std::size_t i = 0; i < bytes.size();) {
    const Utf8Step step = decode_utf8(bytes, i);
    append_decomposed(characters, text, i, i + step.length, step.code_point, form);
    i += step.length;
  }
  order_marks(characters);
  if (is_composed(form)) compose(characters);
  return rebuild(text, characters);
}

}  // namespace driftscope
