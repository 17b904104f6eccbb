// SPDX-License-Identifier: Apache-2.0
// Layer normalisation (Ba, Kiros & Hinton 2016).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

struct LayerNormArguments {
  const float* x = nullptr;       // [rows, width]
  const float* weight = nullptr;  // [width]
  const float* bias = nullptr;    // [width]
  float* y = nullptr;             // [rows, width]; may equal x
  std::int64_t rows = 0;
  std::int64_t width = 0;
  float epsilon = 1e-5F;
  ReductionPlan plan = {};  // of both sums
  Dtype output_dtype = Dtype::f32;
};
// Per row, all in f32 (an f64 accumulator rounds each sum to f32 once):
//   mean = sum(x) / width;  d = x - mean;  scale = 1 / sqrt(sum(d · d) / width + epsilon)
//   y = fma(d · scale, weight, bias), rounded to output_dtype once. The two passes are those of the
// definition; frameworks compute in f32 whatever the activations' type, and round once as well.

// One way to compute it. All portable variants give the same bits.
struct LayerNormVariant {
  std::string_view name;  // "scalar", "avx2", "avx512"
  Isa isa;
  Determinism determinism;  // what the variant promises
  bool portable;            // same bits as the scalar definition
  void (*run)(const LayerNormArguments& arguments, Parallel& parallel);
};
[[nodiscard]] std::span<const LayerNormVariant> layernorm_variants();

// y of a row depends on that row, weight, bias and the plan, and on nothing else.
void layernorm(const LayerNormArguments& arguments, Isa isa, Parallel& parallel);
// The same in f64 throughout (plain rising sums, no rounding): y [rows, width].
void layernorm_reference(const LayerNormArguments& arguments, double* y);

}  // namespace driftscope
