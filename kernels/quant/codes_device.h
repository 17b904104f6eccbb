// SPDX-License-Identifier: Apache-2.0
// What the codes of kernels/quant mean, as functions that host and device share: the bits of
// fp8.h, of dequantise_row() and of quantise_activations().
#pragma once

#include <cstdint>

#include "kernels/plan/dtype_bits.h"
#include "kernels/quant/quantised_view.h"

namespace driftscope::exact {
namespace {

// e4m3_to_float()
DRIFTSCOPE_HOST_DEVICE float e4m3_widened(std::uint8_t code) {
  const std::uint32_t sign = (static_cast<std::uint32_t>(code) & 0x80U) << 24U;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(code) & 0x7fU;
  if (magnitude == 0x7fU) return float_of(0x7fc00000U);
  if (magnitude >= 8U) {  // normal: the exponent bias moves from 7 to 127
    return float_of(sign | ((magnitude << 20U) + (120U << 23U)));
  }
  return float_of(sign | bits_of(static_cast<float>(magnitude) * 0x1p-9F));
}

// e4m3_from_float()
DRIFTSCOPE_HOST_DEVICE std::uint8_t e4m3_narrowed(float value) {
  constexpr std::uint32_t kLargestCode = 0x7eU;
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits >> 24U) & 0x80U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return 0x7fU;
  if (magnitude >= 0x44000000U) return static_cast<std::uint8_t>(sign | kLargestCode);  // 512 on
  if (magnitude >= 0x3c800000U) {  // 2^-6: normal; rounding up may carry into the exponent
    const std::uint32_t lowest_kept = (magnitude >> 20U) & 1U;
    const std::uint32_t code = (magnitude - (120U << 23U) + 0x7ffffU + lowest_kept) >> 20U;
    return static_cast<std::uint8_t>(sign | (code < kLargestCode ? code : kLargestCode));
  }
  // Below: a whole number of 2^-9, exact after scaling; adding 2^23 rounds it to an integer.
  const float units = float_of(magnitude) * 512.0F;
  const auto code = static_cast<std::uint32_t>((units + 0x1p23F) - 0x1p23F);
  return static_cast<std::uint8_t>(sign | code);
}

DRIFTSCOPE_HOST_DEVICE float int8_widened(std::uint8_t code) {
  return static_cast<float>(static_cast<std::int8_t>(code));
}

// rint(value / scale), clamped to [-127, 127]; both finite, scale above 0.
DRIFTSCOPE_HOST_DEVICE int int8_code(float value, float scale) {
  const float quotient = value / scale;
  const float nearest = (quotient + 0x1.8p23F) - 0x1.8p23F;  // ties to even
  if (nearest < -127.0F) return -127;
  return nearest > 127.0F ? 127 : static_cast<int>(nearest);
}

// Where the code of term k of a row of int4 codes lies.
struct NibblePlace {
  std::int64_t byte;
  unsigned shift;
};
DRIFTSCOPE_HOST_DEVICE NibblePlace int4_place(std::int64_t k) {
  const std::int64_t in_block = k % kInt4Block;
  const std::int64_t nibble = in_block / 16;
  return {k / kInt4Block * kInt4BlockBytes + in_block % 16 * 4 + nibble / 2,
          nibble % 2 == 0 ? 0U : 4U};
}

}  // namespace
}  // namespace driftscope::exact
