// SPDX-License-Identifier: Apache-2.0
// Elementary functions whose bits do not depend on the machine's libm, CPU or locale:
// only IEEE add, multiply, fma, divide, sqrt and integer operations.
// Each f64 function runs the same source compiled for the CPU at hand (hardware fma where there
// is one); fma is exactly rounded everywhere, so the bits are the same.
#pragma once

#include <cstddef>

namespace driftscope::portable {

// f32, used inside kernels (softmax, SiLU). At most 1 ulp from the exact value; exp(-inf) = 0,
// exp(+inf) = inf, NaN stays NaN; gradual underflow. Vector forms: portable_exp_simd.h.
[[nodiscard]] float exp(float x);
// At most 2 ulp from the exact value (a test walks through f32 to hold them to it); odd, so -0 and
// NaN stay. Vector forms: portable_curve_simd.h.
[[nodiscard]] float tanh(float x);
[[nodiscard]] float erf(float x);

// f64, used for tables and metrics. At most 1 ulp from the exact value in the normal range.
[[nodiscard]] double exp(double x);
[[nodiscard]] double log(double x);  // log(0) = -inf, log(negative) = NaN
[[nodiscard]] double expm1(double x);
[[nodiscard]] double tanh(double x);  // at most 4 ulp: two roundings after expm1's
// For references: the series of positive terms 2x/sqrt(pi) · exp(-x²) · sum (2x²)^n / (1·3·5 …
// (2n + 1)), relative error below 2^-47; slow.
[[nodiscard]] double erf(double x);
[[nodiscard]] double log1p(double x);
struct SinCos {
  double sin;
  double cos;
};
[[nodiscard]] SinCos sincos(double x);                   // |x| up to 2^30
[[nodiscard]] double pow(double base, double exponent);  // base > 0, finite

// target[i] = f(source[i]) for i < count, the same bits as the functions above, several times
// faster. source and target: [count]; may be the same array, must not overlap otherwise.
void exp_span(const float* source, float* target, std::size_t count);
void exp_span(const double* source, double* target, std::size_t count);
void log_span(const double* source, double* target, std::size_t count);

}  // namespace driftscope::portable
