// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace driftscope {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

// Ranges of the second byte by lead byte: table 3-7 of the Unicode standard.
struct LeadByte {
  std::size_t length;  // 0: cannot begin a character
  std::uint8_t second_low;
  std::uint8_t second_high;
};

constexpr LeadByte classify(std::uint8_t lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

constexpr std::uint8_t byte_at(std::string_view text, std::size_t i) {
  return static_cast<std::uint8_t>(text[i]);
}

}  // namespace

Utf8Step decode_utf8(std::string_view text, std::size_t position) {
  const std::uint8_t lead = byte_at(text, position);
  const LeadByte shape = classify(lead);
  if (shape.length == 1) return {Utf8State::valid, lead, 1};
  if (shape.length == 0) return {Utf8State::invalid, kReplacement, 1};
  constexpr std::uint8_t kLeadMask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t code_point = lead & kLeadMask[shape.length];
  for (std::size_t i = 1; i < shape.length; ++i) {
    if (position + i >= text.size()) return {Utf8State::truncated, kReplacement, i};
    const std::uint8_t next = byte_at(text, position + i);
    const std::uint8_t low = i == 1 ? shape.second_low : std::uint8_t{0x80};
    const std::uint8_t high = i == 1 ? shape.second_high : std::uint8_t{0xBF};
    if (next < low || next > high) return {Utf8State::invalid, kReplacement, i};
    code_point = (code_point << 6U) | (next & 0x3FU);
  }
  return {Utf8State::valid, code_point, shape.length};
}

std::size_t find_invalid_utf8(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    while (position + 8 <= text.size()) {  // eight ASCII bytes at once
      std::uint64_t chunk = 0;
      std::memcpy(&chunk, text.data() + position, sizeof chunk);
      if ((chunk & 0x8080808080808080ULL) != 0) break;
      position += 8;
    }
    if (position >= text.size()) break;
    const Utf8Step step = decode_utf8(text, position);
    if (step.state != Utf8State::valid) return position;
    position += step.length;
  }
  return std::string_view::npos;
}

void append_utf8(std::string& target, char32_t code_point) {
  const auto push = [&target](char32_t byte) { target.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0U | (code_point >> 6U));
    push(0x80U | (code_point & 0x3FU));
  } else if (code_point < 0x10000) {
    push(0xE0U | (code_point >> 12U));
    push(0x80U | ((code_point >> 6U) & 0x3FU));
    push(0x80U | (code_point & 0x3FU));
  } else {
    push(0xF0U | (code_point >> 18U));
    push(0x80U | ((code_point >> 12U) & 0x3FU));
    push(0x80U | ((code_point >> 6U) & 0x3FU));
    push(0x80U | (code_point & 0x3FU));
  }
}

}  // namespace driftscope
