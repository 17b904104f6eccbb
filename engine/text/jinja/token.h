// SPDX-License-Identifier: Apache-2.0
// A template cut into tokens, with its white space control applied.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace driftscope::jinja {

enum class TokenKind : std::uint8_t {
  data,
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  text,
  integer,
  real,
  symbol,
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text = {};  // of data, names, texts (unescaped) and symbols
  std::int64_t integer = 0;
  double real = 0.0;
  int line = 0;
};

// Errors (Failure): an unclosed comment or tag, an unknown character, unbalanced brackets.
[[nodiscard]] std::vector<Token> tokenize(std::string_view source);

}  // namespace driftscope::jinja
