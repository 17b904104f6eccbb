// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm/rmsnorm_simd.h"

#if defined(__AVX512F__)

namespace driftscope {

void rmsnorm_rows_avx512(const RmsNormArguments& arguments, std::int64_t begin, std::int64_t end) {
  simd::norm_rows(arguments, begin, end);
}

void add_residual_avx512(float* residual, const float* delta, std::int64_t count, Dtype dtype) {
  simd::add_rounded(residual, delta, count, dtype);
}

}  // namespace driftscope

#endif
