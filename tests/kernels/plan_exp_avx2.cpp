// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/plan_exp_vectors.h"

#if defined(__AVX2__)
#include "kernels/plan/portable_exp_simd.h"

namespace driftscope::test {
void exp_vector_avx2(const float* x, float* y) {
  _mm256_storeu_ps(y, portable::simd::exp(_mm256_loadu_ps(x)));
}
}  // namespace driftscope::test
#endif
