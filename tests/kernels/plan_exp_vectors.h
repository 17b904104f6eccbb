// SPDX-License-Identifier: Apache-2.0
// The vector forms of portable::exp, one call each, compiled with their instruction set.
#pragma once

namespace driftscope::test {
void exp_vector_avx2(const float* x, float* y);    // 8 elements
void exp_vector_avx512(const float* x, float* y);  // 16 elements
}  // namespace driftscope::test
