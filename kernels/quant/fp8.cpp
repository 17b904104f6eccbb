// SPDX-License-Identifier: Apache-2.0
#include "kernels/quant/fp8.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace driftscope {
namespace {

constexpr float decode(unsigned code) {
  const float sign = (code & 0x80U) != 0 ? -1.0F : 1.0F;
  const unsigned exponent = (code >> 3U) & 0xfU;
  const unsigned fraction = code & 7U;
  if (exponent == 15U && fraction == 7U) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0U) return sign * static_cast<float>(fraction) * 0x1p-9F;
  const float scale = std::bit_cast<float>((exponent + 120U) << 23U);  // 2^(exponent - 7)
  return sign * (1.0F + static_cast<float>(fraction) * 0.125F) * scale;
}

constexpr auto kValues = [] {
  std::array<float, 256> values{};
  for (unsigned code = 0; code < 256U; ++code) values[code] = decode(code);
  return values;
}();

}  // namespace

float e4m3_to_float(std::uint8_t code) { return kValues[code]; }

std::uint8_t e4m3_from_float(float value) {
  constexpr std::uint32_t kLargestCode = 0x7eU;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24U) & 0x80U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return 0x7fU;
  if (magnitude >= 0x44000000U) return static_cast<std::uint8_t>(sign | kLargestCode);  // 512 on
  if (magnitude >= 0x3c800000U) {  // 2^-6: normal; rounding up may carry into the exponent
    const std::uint32_t lowest_kept = (magnitude >> 20U) & 1U;
    const std::uint32_t code = (magnitude - (120U << 23U) + 0x7ffffU + lowest_kept) >> 20U;
    return static_cast<std::uint8_t>(sign | std::min(code, kLargestCode));
  }
  // Below: a whole number of 2^-9, exact after scaling; adding 2^23 rounds it to an integer.
  const float units = std::bit_cast<float>(magnitude) * 512.0F;
  const auto code = static_cast<std::uint32_t>((units + 0x1p23F) - 0x1p23F);
  return static_cast<std::uint8_t>(sign | code);
}

}  // namespace driftscope
