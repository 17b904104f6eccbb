// SPDX-License-Identifier: Apache-2.0
#include "kernels/softmax/softmax_simd.h"

#if defined(__AVX2__)

namespace driftscope {

void softmax_row_avx2(const float* x, float* y, std::int64_t count, const ReductionPlan& plan,
                      Dtype compute_dtype, Dtype output_dtype) {
  simd::softmax_row(x, y, count, plan, compute_dtype, output_dtype);
}

}  // namespace driftscope

#endif
