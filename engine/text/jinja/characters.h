// SPDX-License-Identifier: Apache-2.0
// Strings as Python sees them: sequences of characters, kept as UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace driftscope::jinja {

[[nodiscard]] std::size_t count_characters(std::string_view text);
// Where each character begins, and text.size() at the end.
[[nodiscard]] std::vector<std::size_t> character_offsets(std::string_view text);
[[nodiscard]] std::u32string characters_of(std::string_view text);
[[nodiscard]] std::string utf8_of(std::u32string_view characters);

[[nodiscard]] bool is_space(char32_t character);       // str.isspace
[[nodiscard]] bool is_alphabetic(char32_t character);  // str.isalpha
[[nodiscard]] bool is_decimal(char32_t character);     // str.isdecimal
[[nodiscard]] bool is_digit(char32_t character);       // str.isdigit
[[nodiscard]] bool is_numeric(char32_t character);     // str.isnumeric
[[nodiscard]] bool is_printable(char32_t character);   // str.isprintable
[[nodiscard]] bool is_upper_case(char32_t character);
[[nodiscard]] bool is_lower_case(char32_t character);
[[nodiscard]] bool is_title_case(char32_t character);

// At least one cased character, and none of the other case.
[[nodiscard]] bool is_all_upper(std::string_view text);
[[nodiscard]] bool is_all_lower(std::string_view text);

[[nodiscard]] std::string upper(std::string_view text);
[[nodiscard]] std::string lower(std::string_view text);
[[nodiscard]] std::string casefold(std::string_view text);
[[nodiscard]] std::string capitalize(std::string_view text);
[[nodiscard]] std::string title(std::string_view text);  // str.title
[[nodiscard]] std::string swapcase(std::string_view text);

enum class Ends : std::uint8_t { both, left, right };
// `characters`: what is taken away; none: white space.
[[nodiscard]] std::string_view strip(std::string_view text,
                                     std::optional<std::string_view> characters, Ends ends);
// At most `limit` splits (below 0: all), from the left or from the right.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text,
                                                  std::optional<std::string_view> separator,
                                                  std::int64_t limit);
[[nodiscard]] std::vector<std::string_view> split_right(std::string_view text,
                                                        std::optional<std::string_view> separator,
                                                        std::int64_t limit);
[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

// Negative `limit`: all. Errors: more than `largest` bytes.
[[nodiscard]] std::string replace(std::string_view text, std::string_view old_part,
                                  std::string_view new_part, std::int64_t limit,
                                  std::size_t largest);

}  // namespace driftscope::jinja
