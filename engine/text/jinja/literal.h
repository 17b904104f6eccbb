// SPDX-License-Identifier: Apache-2.0
// Numbers and texts as they are written in templates, and numbers as they are read from texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace driftscope::jinja {

struct NumberLiteral {
  bool is_real = false;
  bool too_large = false;
  std::int64_t integer = 0;
  double real = 0.0;
  std::size_t length = 0;  // bytes
};
// `text` begins with a digit.
[[nodiscard]] NumberLiteral read_number(std::string_view text, bool may_be_real);

// The escapes of Python's string literals. `problem` is set where one is malformed.
[[nodiscard]] std::string unescape(std::string_view text, std::string& problem);

// Python's int(text, base) and float(text); nullopt: ValueError.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text, int base);
[[nodiscard]] std::optional<double> parse_real(std::string_view text);

}  // namespace driftscope::jinja
