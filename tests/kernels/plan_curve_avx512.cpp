// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/plan_curve_vectors.h"

#if defined(__AVX512F__)
#include "kernels/plan/portable_curve_simd.h"

namespace driftscope::test {
void tanh_vector_avx512(const float* x, float* y) { simd::store(y, simd::tanh(simd::load(x))); }
void erf_vector_avx512(const float* x, float* y) { simd::store(y, simd::erf(simd::load(x))); }
}  // namespace driftscope::test
#endif
