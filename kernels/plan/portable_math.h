// SPDX-License-Identifier: Apache-2.0
// Elementary functions whose bits do not depend on the machine's libm, CPU or locale:
// only IEEE add, multiply, fma, divide, sqrt and integer operations.
#pragma once

namespace driftscope::portable {

// f32, used inside kernels (softmax, SiLU). At most 1 ulp from the exact value; exp(-inf) = 0,
// exp(+inf) = inf, NaN stays NaN; gradual underflow.
[[nodiscard]] float exp(float x);

// f64, used for tables and metrics. At most 1 ulp from the exact value in the normal range.
[[nodiscard]] double exp(double x);
[[nodiscard]] double log(double x);   // log(0) = -inf, log(negative) = NaN
[[nodiscard]] double expm1(double x);
[[nodiscard]] double log1p(double x);
struct SinCos {
  double sin;
  double cos;
};
[[nodiscard]] SinCos sincos(double x);  // |x| up to 2^30
[[nodiscard]] double pow(double base, double exponent);  // base > 0

}  // namespace driftscope::portable
