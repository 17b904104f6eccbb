// SPDX-License-Identifier: Apache-2.0
// The order of a ReductionPlan with everything held in f64: for statistics that are kept in f64
// (RMSNorm with Accumulator::f64, softmax computed in f64).
#pragma once

#include <cstdint>

#include "kernels/plan/reduction_plan.h"

namespace driftscope {

// Lanes, chunks and both combinations of `plan` over terms [k]; every addition in f64 and no
// rounding to f32. plan.accumulator is not looked at.
[[nodiscard]] double reduce_sum_f64(const ReductionPlan& plan, const double* terms, std::int64_t k);

}  // namespace driftscope
