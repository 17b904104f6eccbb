// SPDX-License-Identifier: Apache-2.0
#include "analysis/probe/base64.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace driftscope {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      word = (word << 8U) | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += j <= count ? kAlphabet[(word >> (18U - 6U * j)) & 63U] : '=';
    }
  }
  return out;
}

std::string from_base64(std::string_view text) {
  std::string out;
  std::uint32_t word = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) break;
    word = (word << 6U) | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>((word >> bits) & 255U);
  }
  return out;
}

}  // namespace driftscope
