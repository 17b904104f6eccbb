// SPDX-License-Identifier: Apache-2.0
// The vector forms of portable::tanh and portable::erf, one call each, compiled with their
// instruction set.
#pragma once

namespace driftscope::test {
void tanh_vector_avx2(const float* x, float* y);    // 8 elements
void erf_vector_avx2(const float* x, float* y);     // 8 elements
void tanh_vector_avx512(const float* x, float* y);  // 16 elements
void erf_vector_avx512(const float* x, float* y);   // 16 elements
}  // namespace driftscope::test
