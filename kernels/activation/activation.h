// SPDX-License-Identifier: Apache-2.0
// SwiGLU: silu(gate) * up (Shazeer 2020).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

struct SwigluArguments {
  const float* gate = nullptr;  // [rows, width], row stride gate_stride
  const float* up = nullptr;    // [rows, width], row stride up_stride
  float* y = nullptr;           // [rows, width], contiguous
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t gate_stride = 0;
  std::int64_t up_stride = 0;
  Dtype silu_dtype = Dtype::f32;    // silu(gate) rounded to this before the product
  Dtype output_dtype = Dtype::f32;  // the product rounded to this
};

// One way to compute it. All portable variants give the same bits.
struct SwigluVariant {
  std::string_view name;  // "scalar", "avx2", "avx512"
  Isa isa;
  Determinism determinism;  // what the variant promises
  bool portable;            // same bits as the scalar definition
  void (*run)(const SwigluArguments& arguments, Parallel& parallel);
};
[[nodiscard]] std::span<const SwigluVariant> swiglu_variants();

// silu(g) = g / (1 + exp(-g)) with portable::exp. silu(-inf) is NaN, as in the formula.
void swiglu(const SwigluArguments& arguments, Isa isa, Parallel& parallel);
// The same in f64 throughout, without rounding points: y [rows, width].
void swiglu_reference(const SwigluArguments& arguments, double* y);

}  // namespace driftscope
