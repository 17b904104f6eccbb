// SPDX-License-Identifier: Apache-2.0
// One task of each operation per instruction set; the driver in rmsnorm.cpp cuts the work.
#pragma once

#include <cstdint>

#include "kernels/rmsnorm/rmsnorm.h"

namespace driftscope {

void rmsnorm_rows_scalar(const RmsNormArguments& arguments, std::int64_t begin, std::int64_t end);
void rmsnorm_rows_avx2(const RmsNormArguments& arguments, std::int64_t begin, std::int64_t end);
void rmsnorm_rows_avx512(const RmsNormArguments& arguments, std::int64_t begin, std::int64_t end);

void add_residual_scalar(float* residual, const float* delta, std::int64_t count, Dtype dtype);
void add_residual_avx2(float* residual, const float* delta, std::int64_t count, Dtype dtype);
void add_residual_avx512(float* residual, const float* delta, std::int64_t count, Dtype dtype);

// 1 / sqrt(mean square + epsilon) of one row [width], as rmsnorm.h defines it.
[[nodiscard]] float rmsnorm_scale(const RmsNormArguments& arguments, const float* row);

}  // namespace driftscope
