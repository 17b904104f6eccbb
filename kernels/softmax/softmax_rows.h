// SPDX-License-Identifier: Apache-2.0
// One row per instruction set.
#pragma once

#include <cstdint>

#include "kernels/softmax/softmax.h"

namespace driftscope {

void softmax_row_scalar(const float* x, float* y, std::int64_t count, const ReductionPlan& plan,
                        Dtype compute_dtype, Dtype output_dtype);
void softmax_row_avx2(const float* x, float* y, std::int64_t count, const ReductionPlan& plan,
                      Dtype compute_dtype, Dtype output_dtype);
void softmax_row_avx512(const float* x, float* y, std::int64_t count, const ReductionPlan& plan,
                        Dtype compute_dtype, Dtype output_dtype);

// compute_dtype f64, the same code for every instruction set.
void softmax_row_f64(const float* x, float* y, std::int64_t count, const ReductionPlan& plan,
                     Dtype output_dtype);

}  // namespace driftscope
