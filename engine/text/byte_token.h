// SPDX-License-Identifier: Apache-2.0
// "<0x0A>": how SentencePiece vocabularies write a single byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace driftscope {

[[nodiscard]] inline std::optional<std::uint8_t> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  unsigned value = 0;
  for (const char digit : token.substr(3, 2)) {
    value *= 16;
    if (digit >= '0' && digit <= '9') {
      value += static_cast<unsigned>(digit - '0');
    } else if (digit >= 'A' && digit <= 'F') {
      value += static_cast<unsigned>(digit - 'A' + 10);
    } else if (digit >= 'a' && digit <= 'f') {
      value += static_cast<unsigned>(digit - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return static_cast<std::uint8_t>(value);
}

[[nodiscard]] inline std::string token_of_byte(std::uint8_t byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte >> 4U] + kDigits[byte & 0xFU] + '>';
}

}  // namespace driftscope
