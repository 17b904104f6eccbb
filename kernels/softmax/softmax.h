// SPDX-License-Identifier: Apache-2.0
// Softmax of one row with a stated order of its sum.
#pragma once

#include <cstdint>

#include "kernels/base/isa.h"
#include "kernels/plan/dtype.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

// y[i] = exp(x[i] - max) / sum, the sum under `plan`, each y rounded to `output_dtype`.
// x, y: [count]; may be the same. dtype f64: exp, sum and division in f64, rounded once to f32.
void softmax_row(const float* x, float* y, std::int64_t count, const ReductionPlan& plan,
                 Dtype compute_dtype, Dtype output_dtype, Isa isa);

}  // namespace driftscope
