// SPDX-License-Identifier: Apache-2.0
#include "engine/text/byte_alphabet.h"

#include <array>
#include <cstddef>

#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

constexpr std::size_t kAlphabetEnd = 0x144;  // the highest letter is U+0143

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<char16_t, 256> make_letters() {
  std::array<char16_t, 256> letters{};
  char16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    letters[byte] = stands_for_itself(byte) ? static_cast<char16_t>(byte) : next++;
  }
  return letters;
}
constexpr std::array<char16_t, 256> kLetters = make_letters();

// Letter -> byte, -1 where the code point is not in the alphabet.
constexpr std::array<std::int16_t, kAlphabetEnd> make_bytes() {
  std::array<std::int16_t, kAlphabetEnd> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (unsigned byte = 0; byte < 256; ++byte) {
    bytes[kLetters[byte]] = static_cast<std::int16_t>(byte);
  }
  return bytes;
}
constexpr std::array<std::int16_t, kAlphabetEnd> kBytes = make_bytes();

}  // namespace

std::string byte_to_alphabet(std::uint8_t byte) {
  std::string text;
  append_utf8(text, kLetters[byte]);
  return text;
}

std::optional<std::string> alphabet_to_bytes(std::string_view token) {
  std::string bytes;
  std::size_t position = 0;
  while (position < token.size()) {
    const Utf8Step step = decode_utf8(token, position);
    if (step.state != Utf8State::valid || step.code_point >= kAlphabetEnd) return std::nullopt;
    const std::int16_t byte = kBytes[step.code_point];
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    position += step.length;
  }
  return bytes;
}

}  // namespace driftscope
