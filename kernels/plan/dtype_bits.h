// SPDX-License-Identifier: Apache-2.0
// The conversions of dtype.h as integer operations, shared by host and device.
#pragma once

#include "kernels/plan/dtype.h"
#include "kernels/plan/host_device.h"

namespace driftscope::exact {
namespace {

DRIFTSCOPE_HOST_DEVICE float bf16_widened(std::uint16_t bits) {
  return float_of(static_cast<std::uint32_t>(bits) << 16U);
}

DRIFTSCOPE_HOST_DEVICE std::uint16_t bf16_narrowed(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {  // NaN: keep the sign, make it quiet
    return static_cast<std::uint16_t>((bits >> 16U) | 0x0040U);
  }
  const std::uint32_t lowest_kept = (bits >> 16U) & 1U;
  return static_cast<std::uint16_t>((bits + 0x7fffU + lowest_kept) >> 16U);
}

DRIFTSCOPE_HOST_DEVICE float f16_widened(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude >= 0x7c00U) {  // infinity, or NaN with its payload
    return float_of(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13U));
  }
  if (magnitude >= 0x0400U) {  // normal: the exponent bias moves from 15 to 127
    return float_of(sign | ((magnitude << 13U) + (112U << 23U)));
  }
  // Subnormal: magnitude · 2^-24, exact in f32.
  const float value = static_cast<float>(magnitude) * 0x1p-24F;
  return float_of(sign | bits_of(value));
}

DRIFTSCOPE_HOST_DEVICE std::uint16_t f16_narrowed(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {  // NaN: keep the top of its payload, make it quiet
    return static_cast<std::uint16_t>(sign | 0x7e00U | ((magnitude >> 13U) & 0x3ffU));
  }
  if (magnitude >= 0x47800000U) {  // 2^16 and above, infinity
    return static_cast<std::uint16_t>(sign | 0x7c00U);
  }
  if (magnitude >= 0x38800000U) {  // 2^-14 and above: normal; rounding up may carry into infinity
    const std::uint32_t lowest_kept = (magnitude >> 13U) & 1U;
    return static_cast<std::uint16_t>(sign |
                                      ((magnitude - (112U << 23U) + 0xfffU + lowest_kept) >> 13U));
  }
  if (magnitude < 0x33000000U) return static_cast<std::uint16_t>(sign);  // below 2^-25
  // Subnormal: the significand shifted so that its unit is 2^-24, ties to even.
  const std::uint32_t shift = 126U - (magnitude >> 23U);
  const std::uint32_t significand = (magnitude & 0x7fffffU) | 0x800000U;
  const std::uint32_t kept = significand >> shift;
  const std::uint32_t rest = significand & ((1U << shift) - 1U);
  const std::uint32_t half = 1U << (shift - 1U);
  const bool up = rest > half || (rest == half && (kept & 1U) != 0U);
  return static_cast<std::uint16_t>(sign | (kept + (up ? 1U : 0U)));
}

// round_to() of dtype.h.
DRIFTSCOPE_HOST_DEVICE float rounded(Dtype dtype, float value) {
  if (dtype == Dtype::bf16) return bf16_widened(bf16_narrowed(value));
  if (dtype == Dtype::f16) return f16_widened(f16_narrowed(value));
  return value;
}

DRIFTSCOPE_HOST_DEVICE float with_canonical_nan(float value) {
  return value == value ? value : float_of(0x7fc00000U);
}

}  // namespace
}  // namespace driftscope::exact
