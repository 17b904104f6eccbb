// SPDX-License-Identifier: Apache-2.0
// Softmax of one row with a stated order of its sum.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/base/isa.h"
#include "kernels/plan/dtype.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

// One way to compute it. All portable variants give the same bits.
struct SoftmaxVariant {
  std::string_view name;  // "scalar", "avx2", "avx512"
  Isa isa;
  Determinism determinism;  // what the variant promises
  bool portable;            // same bits as the scalar definition
  void (*run)(const float* x, float* y, std::int64_t count, const ReductionPlan& plan,
              Dtype compute_dtype, Dtype output_dtype);
};
[[nodiscard]] std::span<const SoftmaxVariant> softmax_variants();

// y[i] = exp(x[i] - max) / sum, the sum under `plan`, each y rounded to `output_dtype`.
// x, y: [count]; may be the same. compute_dtype:
//  f32:        exp, sum and division in f32.
//  f64:        difference, exp, sum (the plan's order, held in f64 whatever its accumulator) and
//              division in f64; the quotient rounded to f32 once.
//  f16, bf16:  as f32, and each exp, the sum and each quotient rounded to that type.
// A NaN, or +inf, or a row of -inf alone makes the whole row NaN. NaN payloads are not specified.
void softmax_row(const float* x, float* y, std::int64_t count, const ReductionPlan& plan,
                 Dtype compute_dtype, Dtype output_dtype, Isa isa);
// The same in f64 throughout (plain rising sum, no rounding).
void softmax_reference(const float* x, double* y, std::int64_t count);

}  // namespace driftscope
