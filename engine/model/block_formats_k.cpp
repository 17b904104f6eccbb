// SPDX-License-Identifier: Apache-2.0
// Super-blocks of 256 elements with scales of their own for every 16 or 32.
#include <array>

#include "engine/model/block_formats.h"

namespace driftscope {
namespace {

constexpr int kElements = 256;

struct ScaleAndMinimum {
  int scale, minimum;
};

// Eight pairs of 6 bits in 12 bytes: the first four scales and minima with two bits to spare, in
// which the high bits of the last four lie; the low bits of those are the nibbles of bytes 8 … 11.
ScaleAndMinimum scale_and_minimum(const std::uint8_t* packed, int sub_block) {
  if (sub_block < 4) return {packed[sub_block] & 63, packed[sub_block + 4] & 63};
  const int low = packed[sub_block + 4];
  return {(low & 15) | ((packed[sub_block - 4] >> 6) << 4),
          (low >> 4) | ((packed[sub_block] >> 6) << 4)};
}

// Sixteen scales of 6 bits in 12 bytes: low nibbles in bytes 0 … 7, then two bits each.
std::array<int, 16> q3_k_scales(const std::uint8_t* packed) {
  std::array<int, 16> scales{};
  for (int i = 0; i < 16; ++i) {
    const int low = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4;
    const int high = (packed[8 + i % 4] >> (2 * (i / 4))) & 3;
    scales[static_cast<std::size_t>(i)] = (low | (high << 4)) - 32;
  }
  return scales;
}

// The 128 elements of a half are four groups of 32; group g takes bits 2 g and 2 g + 1 of the
// bytes of the half.
struct Place {
  int half, group, lane;
  explicit Place(int element)
      : half(element / 128), group(element % 128 / 32), lane(element % 32) {}
  [[nodiscard]] int scale() const { return 8 * half + 2 * group + lane / 16; }
};

void decode_with_minima(const std::uint8_t* block, const std::uint8_t* high,
                        const std::uint8_t* codes, float* values) {
  const float d = f16_at(block);
  const float dmin = f16_at(block + 2);
  for (int sub_block = 0; sub_block < kElements / 32; ++sub_block) {
    const auto [scale, minimum] = scale_and_minimum(block + 4, sub_block);
    const float step = d * static_cast<float>(scale);
    const float offset = dmin * static_cast<float>(minimum);
    const std::uint8_t* bytes = codes + 32 * (sub_block / 2);
    for (int i = 0; i < 32; ++i) {
      int code = sub_block % 2 == 0 ? bytes[i] & 15 : bytes[i] >> 4;
      if (high != nullptr) code |= ((high[i] >> sub_block) & 1) << 4;
      const float product = step * static_cast<float>(code);
      values[32 * sub_block + i] = product - offset;
    }
  }
}

}  // namespace

// scales[16] (scale low, minimum high nibble), codes[64], d, dmin.
void decode_q2_k(const std::uint8_t* block, float* values) {
  const float d = f16_at(block + 80);
  const float dmin = f16_at(block + 82);
  for (int i = 0; i < kElements; ++i) {
    const Place at(i);
    const std::uint8_t scales = block[at.scale()];
    const int code = (block[16 + 32 * at.half + at.lane] >> (2 * at.group)) & 3;
    const float step = d * static_cast<float>(scales & 15);
    const float offset = dmin * static_cast<float>(scales >> 4);
    const float product = step * static_cast<float>(code);
    values[i] = product - offset;
  }
}

// high bits[32], codes[64], scales[12], d. A high bit that is not set takes 4 off.
void decode_q3_k(const std::uint8_t* block, float* values) {
  const float d = f16_at(block + 108);
  const std::array<int, 16> scales = q3_k_scales(block + 96);
  for (int i = 0; i < kElements; ++i) {
    const Place at(i);
    const int low = (block[32 + 32 * at.half + at.lane] >> (2 * at.group)) & 3;
    const bool high = ((block[at.lane] >> (4 * at.half + at.group)) & 1) != 0;
    const float step = d * static_cast<float>(scales[static_cast<std::size_t>(at.scale())]);
    values[i] = step * static_cast<float>(high ? low : low - 4);
  }
}

// d, dmin, scales and minima[12], codes[128].
void decode_q4_k(const std::uint8_t* block, float* values) {
  decode_with_minima(block, nullptr, block + 16, values);
}

// d, dmin, scales and minima[12], high bits[32], codes[128].
void decode_q5_k(const std::uint8_t* block, float* values) {
  decode_with_minima(block, block + 16, block + 48, values);
}

// low nibbles[128], high pairs of bits[64], scales[16], d.
void decode_q6_k(const std::uint8_t* block, float* values) {
  const float d = f16_at(block + 208);
  for (int i = 0; i < kElements; ++i) {
    const Place at(i);
    const std::uint8_t byte = block[64 * at.half + 32 * (at.group % 2) + at.lane];
    const int low = at.group < 2 ? byte & 15 : byte >> 4;
    const int high = (block[128 + 32 * at.half + at.lane] >> (2 * at.group)) & 3;
    const auto scale = static_cast<std::int8_t>(block[192 + at.scale()]);
    const float step = d * static_cast<float>(scale);
    values[i] = step * static_cast<float>((low | (high << 4)) - 32);
  }
}

// d, high bits of the scales (u16), low nibbles of the scales[4], codes[128].
void decode_iq4_xs(const std::uint8_t* block, float* values) {
  const float d = f16_at(block);
  const int high = block[2] | (block[3] << 8);
  for (int i = 0; i < kElements; ++i) {
    const int sub_block = i / 32;
    const int low = (block[4 + sub_block / 2] >> (4 * (sub_block % 2))) & 15;
    const int scale = (low | (((high >> (2 * sub_block)) & 3) << 4)) - 32;
    const std::uint8_t byte = block[8 + 16 * sub_block + i % 16];
    const int code = i % 32 < 16 ? byte & 15 : byte >> 4;
    const float step = d * static_cast<float>(scale);
    values[i] = step * static_cast<float>(kIq4Values[code]);
  }
}

}  // namespace driftscope
