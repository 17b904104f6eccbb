// SPDX-License-Identifier: Apache-2.0
#include "engine/text/jinja/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "kernels/base/utf8.h"

namespace driftscope::jinja {
namespace {

utf8proc_category_t category(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

struct SpecialCase {
  char32_t character;
  std::u32string_view upper;
  std::u32string_view title;
};
// Characters whose upper case is more than one (SpecialCasing.txt, the unconditional ones of Latin,
// Greek and Armenian without iota subscripts).
constexpr SpecialCase kSpecial[] = {{0xDF, U"SS", U"Ss"},
                                    {0x149, U"\u02BCN", U"\u02BCN"},
                                    {0x1F0, U"J\u030C", U"J\u030C"},
                                    {0x390, U"\u0399\u0308\u0301", U"\u0399\u0308\u0301"},
                                    {0x3B0, U"\u03A5\u0308\u0301", U"\u03A5\u0308\u0301"},
                                    {0x587, U"\u0535\u0552", U"\u0535\u0582"},
                                    {0x1E96, U"H\u0331", U"H\u0331"},
                                    {0x1E97, U"T\u0308", U"T\u0308"},
                                    {0x1E98, U"W\u030A", U"W\u030A"},
                                    {0x1E99, U"Y\u030A", U"Y\u030A"},
                                    {0x1E9A, U"A\u02BE", U"A\u02BE"},
                                    {0xFB00, U"FF", U"Ff"},
                                    {0xFB01, U"FI", U"Fi"},
                                    {0xFB02, U"FL", U"Fl"},
                                    {0xFB03, U"FFI", U"Ffi"},
                                    {0xFB04, U"FFL", U"Ffl"},
                                    {0xFB05, U"ST", U"St"},
                                    {0xFB06, U"ST", U"St"}};

const SpecialCase* special(char32_t character) {
  const auto* found =
      std::find_if(std::begin(kSpecial), std::end(kSpecial),
                   [&](const SpecialCase& entry) { return entry.character == character; });
  return found == std::end(kSpecial) ? nullptr : found;
}

void append_upper(std::u32string& target, char32_t character) {
  if (const SpecialCase* found = special(character)) {
    target += found->upper;
  } else {
    target += static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(character)));
  }
}

void append_title(std::u32string& target, char32_t character) {
  if (const SpecialCase* found = special(character)) {
    target += found->title;
  } else {
    target += static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(character)));
  }
}

bool is_cased(char32_t character) {
  return is_upper_case(character) || is_lower_case(character) || is_title_case(character);
}

bool is_case_ignorable(char32_t character) {
  switch (category(character)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return character == '\'' || character == '.' || character == ':' || character == 0xB7 ||
             character == 0x2018 || character == 0x2019;
  }
}

// A capital sigma at the end of a word has a small letter of its own.
bool is_final_sigma(std::u32string_view text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

void append_lower(std::u32string& target, std::u32string_view text, std::size_t at) {
  const char32_t character = text[at];
  if (character == 0x130) {
    target += U"i\u0307";
  } else if (character == 0x3A3 && is_final_sigma(text, at)) {
    target += char32_t{0x3C2};
  } else {
    target += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character)));
  }
}

}  // namespace

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::vector<std::size_t> character_offsets(std::string_view text) {
  std::vector<std::size_t> offsets;
  offsets.reserve(text.size() + 1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) offsets.push_back(i);
  }
  offsets.push_back(text.size());
  return offsets;
}

std::u32string characters_of(std::string_view text) {
  std::u32string characters;
  characters.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Step step = decode_utf8(text, i);
    characters += step.code_point;
    i += step.length;
  }
  return characters;
}

std::string utf8_of(std::u32string_view characters) {
  std::string text;
  text.reserve(characters.size());
  for (const char32_t character : characters) append_utf8(text, character);
  return text;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_alphabetic(char32_t character) {
  switch (category(character)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}
bool is_decimal(char32_t character) { return category(character) == UTF8PROC_CATEGORY_ND; }
bool is_digit(char32_t character) {
  return is_decimal(character) || character == 0xB2 || character == 0xB3 || character == 0xB9 ||
         (character >= 0x2070 && character <= 0x2089 && character != 0x2071) ||
         (character >= 0x2460 && character <= 0x249B) ||
         (character >= 0x24F5 && character <= 0x24FF);
}
bool is_numeric(char32_t character) {
  const auto found = category(character);
  return found == UTF8PROC_CATEGORY_ND || found == UTF8PROC_CATEGORY_NL ||
         found == UTF8PROC_CATEGORY_NO;
}

bool is_printable(char32_t character) {
  if (character == ' ') return true;
  switch (category(character)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_upper_case(char32_t character) { return category(character) == UTF8PROC_CATEGORY_LU; }
bool is_lower_case(char32_t character) {
  return category(character) == UTF8PROC_CATEGORY_LL || character == 0xAA || character == 0xBA;
}
bool is_title_case(char32_t character) { return category(character) == UTF8PROC_CATEGORY_LT; }

bool is_all_upper(std::string_view text) {
  bool any = false;
  for (const char32_t c : characters_of(text)) {
    if (is_lower_case(c) || is_title_case(c)) return false;
    any = any || is_upper_case(c);
  }
  return any;
}

bool is_all_lower(std::string_view text) {
  bool any = false;
  for (const char32_t c : characters_of(text)) {
    if (is_upper_case(c) || is_title_case(c)) return false;
    any = any || is_lower_case(c);
  }
  return any;
}

std::string upper(std::string_view text) {
  std::u32string result;
  for (const char32_t character : characters_of(text)) append_upper(result, character);
  return utf8_of(result);
}

std::string lower(std::string_view text) {
  const std::u32string characters = characters_of(text);
  std::u32string result;
  for (std::size_t i = 0; i < characters.size(); ++i) append_lower(result, characters, i);
  return utf8_of(result);
}

std::string casefold(std::string_view text) {
  utf8proc_uint8_t* folded = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &folded, UTF8PROC_CASEFOLD);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(folded, &std::free);
  if (length < 0) return std::string(text);  // not UTF-8, which no text here is
  return {reinterpret_cast<const char*>(folded), static_cast<std::size_t>(length)};
}

std::string capitalize(std::string_view text) {
  const std::u32string characters = characters_of(text);
  std::u32string result;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    if (i == 0) {
      append_title(result, characters[i]);
    } else {
      append_lower(result, characters, i);
    }
  }
  return utf8_of(result);
}

std::string title(std::string_view text) {
  const std::u32string characters = characters_of(text);
  std::u32string result;
  bool inside = false;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    if (inside) {
      append_lower(result, characters, i);
    } else {
      append_title(result, characters[i]);
    }
    inside = is_cased(characters[i]);
  }
  return utf8_of(result);
}

std::string swapcase(std::string_view text) {
  const std::u32string characters = characters_of(text);
  std::u32string result;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    if (is_upper_case(characters[i])) {
      append_lower(result, characters, i);
    } else if (is_lower_case(characters[i])) {
      append_upper(result, characters[i]);
    } else {
      result += characters[i];
    }
  }
  return utf8_of(result);
}

}  // namespace driftscope::jinja
