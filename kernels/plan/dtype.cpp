// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan/dtype.h"

#include <array>
#include <cassert>
#include <cstring>
#include <memory>

namespace driftscope {

namespace {

constexpr std::array kDtypes = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f64};

constexpr std::uint32_t kF16Infinity = 0x7c00U;

// All 65536 values: the conversion is one look-up, and a table cannot differ between CPUs.
const float* f16_table() {
  static const auto table = [] {
    auto values = std::make_unique<std::array<float, 65536>>();
    for (std::uint32_t i = 0; i < values->size(); ++i) {
      (*values)[i] = f16_to_float(static_cast<std::uint16_t>(i));
    }
    return values;
  }();
  return table->data();
}

template <class Round>
void round_each(float* values, std::size_t count, Round round) {
  for (std::size_t i = 0; i < count; ++i) values[i] = round(values[i]);
}

}  // namespace

std::string_view dtype_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return "f32";
    case Dtype::f16:
      return "f16";
    case Dtype::bf16:
      return "bf16";
    case Dtype::f64:
      return "f64";
  }
  return "unknown";
}

std::optional<Dtype> dtype_from_name(std::string_view name) {
  for (const Dtype dtype : kDtypes) {
    if (dtype_name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude >= kF16Infinity) {  // infinity, or NaN with its payload
    return std::bit_cast<float>(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13U));
  }
  if (magnitude >= 0x0400U) {  // normal: the exponent bias moves from 15 to 127
    return std::bit_cast<float>(sign | ((magnitude << 13U) + (112U << 23U)));
  }
  // Subnormal: magnitude · 2^-24, exact in f32.
  const float value = static_cast<float>(magnitude) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

std::uint16_t f16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {  // NaN: keep the top of its payload, make it quiet
    return static_cast<std::uint16_t>(sign | 0x7e00U | ((magnitude >> 13U) & 0x3ffU));
  }
  if (magnitude >= 0x47800000U) {  // 2^16 and above, infinity
    return static_cast<std::uint16_t>(sign | kF16Infinity);
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

float round_to(Dtype dtype, float value) {
  switch (dtype) {
    case Dtype::f32:
    case Dtype::f64:
      return value;
    case Dtype::f16:
      return f16_to_float(f16_from_float(value));
    case Dtype::bf16:
      return bf16_to_float(bf16_from_float(value));
  }
  return value;
}

void round_span(Dtype dtype, float* values, std::size_t count) {
  switch (dtype) {
    case Dtype::f32:
    case Dtype::f64:
      return;
    case Dtype::f16:
      round_each(values, count, [](float v) { return f16_to_float(f16_from_float(v)); });
      return;
    case Dtype::bf16:
      round_each(values, count, [](float v) { return bf16_to_float(bf16_from_float(v)); });
      return;
  }
}

void widen(Dtype dtype, const void* source, float* target, std::size_t count) {
  const auto* halves = static_cast<const std::uint16_t*>(source);
  switch (dtype) {
    case Dtype::f32:
      std::memcpy(target, source, count * sizeof(float));
      return;
    case Dtype::f16: {
      const float* table = f16_table();
      for (std::size_t i = 0; i < count; ++i) target[i] = table[halves[i]];
      return;
    }
    case Dtype::bf16:
      for (std::size_t i = 0; i < count; ++i) target[i] = bf16_to_float(halves[i]);
      return;
    case Dtype::f64:
      break;
  }
  assert(false && "widen: only f32, f16 and bf16 widen to f32");
}

void narrow(Dtype dtype, const float* source, void* target, std::size_t count) {
  auto* halves = static_cast<std::uint16_t*>(target);
  switch (dtype) {
    case Dtype::f32:
      std::memcpy(target, source, count * sizeof(float));
      return;
    case Dtype::f16:
      for (std::size_t i = 0; i < count; ++i) halves[i] = f16_from_float(source[i]);
      return;
    case Dtype::bf16:
      for (std::size_t i = 0; i < count; ++i) halves[i] = bf16_from_float(source[i]);
      return;
    case Dtype::f64:
      break;
  }
  assert(false && "narrow: only f32, f16 and bf16 store f32 elements");
}

}  // namespace driftscope
