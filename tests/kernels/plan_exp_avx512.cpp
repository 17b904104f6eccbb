// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/plan_exp_vectors.h"

#if defined(__AVX512F__)
// GCC 12 takes _mm512_undefined_ps() in its own header for a mistake (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include "kernels/plan/portable_exp_simd.h"

namespace driftscope::test {
void exp_vector_avx512(const float* x, float* y) {
  _mm512_storeu_ps(y, portable::simd::exp(_mm512_loadu_ps(x)));
}
}  // namespace driftscope::test
#endif
