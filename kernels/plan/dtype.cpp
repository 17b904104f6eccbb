// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan/dtype.h"

#include <array>
#include <cassert>
#include <cstring>
#include <memory>

#include "kernels/plan/dtype_bits.h"

namespace driftscope {

namespace {

constexpr std::array kDtypes = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f64};

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

float f16_to_float(std::uint16_t bits) { return exact::f16_widened(bits); }

std::uint16_t f16_from_float(float value) { return exact::f16_narrowed(value); }

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
  if (count == 0) return;
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
  if (count == 0) return;  // empty arrays may be null, which memcpy must not be given
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
