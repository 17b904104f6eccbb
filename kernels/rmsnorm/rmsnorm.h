// SPDX-License-Identifier: Apache-2.0
// RMSNorm with optional fused residual add (Zhang & Sennrich 2019).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

struct RmsNormArguments {
  const float* x = nullptr;       // [rows, width]
  const float* weight = nullptr;  // [width]
  float* y = nullptr;             // [rows, width]; may equal x
  std::int64_t rows = 0;
  std::int64_t width = 0;
  float epsilon = 1e-5F;
  // Of the sum of squares: fma(x, x, lane). Then, in f32: mean = sum / width,
  // scale = 1 / sqrt(mean + epsilon). With Accumulator::f64 the sum, mean and scale are in f64
  // and the scale is rounded to f32 once.
  ReductionPlan plan = {};
  // Where the result is rounded: `value` = x * (1 / sqrt(mean + epsilon)) first rounded to
  // `normalised_dtype` (f32: not at all), then multiplied by the weight, then rounded to
  // `output_dtype`. Hugging Face modules round in between; fused kernels do not.
  Dtype normalised_dtype = Dtype::f32;
  Dtype output_dtype = Dtype::f32;
};

// One way to compute it. All portable variants give the same bits.
struct RmsNormVariant {
  std::string_view name;  // "scalar", "avx2", "avx512"
  Isa isa;
  Determinism determinism;  // what the variant promises
  bool portable;            // same bits as the scalar definition
  void (*run)(const RmsNormArguments& arguments, Parallel& parallel);
};
[[nodiscard]] std::span<const RmsNormVariant> rmsnorm_variants();

// y of a row depends on that row, the weight and the plan, and on nothing else.
void rmsnorm(const RmsNormArguments& arguments, Isa isa, Parallel& parallel);
// The same in f64 throughout (inputs widened, plain rising sum, no rounding): y [rows, width].
void rmsnorm_reference(const RmsNormArguments& arguments, double* y);

// residual[i] = round(residual[i] + delta[i]) to `dtype`; [count] elements.
void add_residual(float* residual, const float* delta, std::int64_t count, Dtype dtype, Isa isa,
                  Parallel& parallel);

}  // namespace driftscope
