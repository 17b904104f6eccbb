// SPDX-License-Identifier: Apache-2.0
// Element types and their rounding. Every conversion rounds to nearest, ties to even,
// keeps subnormals (no FTZ/DAZ), overflows to infinity and keeps NaN a NaN.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace driftscope {

enum class Dtype : std::uint8_t { f32, f16, bf16, f64 };

[[nodiscard]] constexpr std::size_t dtype_size(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return 4;
    case Dtype::f16:
    case Dtype::bf16:
      return 2;
    case Dtype::f64:
      return 8;
  }
  return 0;
}
[[nodiscard]] std::string_view dtype_name(Dtype dtype);  // "f32", "f16", "bf16", "f64"
[[nodiscard]] std::optional<Dtype> dtype_from_name(std::string_view name);

// Explicit significand bits, hidden bit included: f32 24, f16 11, bf16 8, f64 53.
[[nodiscard]] constexpr int significand_bits(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return 24;
    case Dtype::f16:
      return 11;
    case Dtype::bf16:
      return 8;
    case Dtype::f64:
      return 53;
  }
  return 0;
}

[[nodiscard]] constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}
[[nodiscard]] constexpr std::uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {  // NaN: keep the sign, make it quiet
    return static_cast<std::uint16_t>((bits >> 16U) | 0x0040U);
  }
  const std::uint32_t lowest_kept = (bits >> 16U) & 1U;
  return static_cast<std::uint16_t>((bits + 0x7fffU + lowest_kept) >> 16U);
}
[[nodiscard]] float f16_to_float(std::uint16_t bits);
[[nodiscard]] std::uint16_t f16_from_float(float value);

// The value after storing it in `dtype` and reading it back (f32, f64: unchanged).
[[nodiscard]] float round_to(Dtype dtype, float value);
// In place over `count` elements; the same bits as round_to on each.
void round_span(Dtype dtype, float* values, std::size_t count);
// Widen `count` elements stored as `dtype` (f32, f16 or bf16) to f32, exactly.
void widen(Dtype dtype, const void* source, float* target, std::size_t count);
// Store `count` f32 elements as `dtype` (f32, f16 or bf16).
void narrow(Dtype dtype, const float* source, void* target, std::size_t count);

}  // namespace driftscope
