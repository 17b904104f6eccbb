// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan/portable_math.h"

#include <cassert>
#include <cmath>

#include "kernels/base/isa.h"
#include "kernels/plan/portable_math_functions.h"

namespace driftscope::portable {

const MathTable kMathBaseline = kMathTable;

const MathTable& math_table() {
  static const MathTable& table = [isa = detect_isa()]() -> const MathTable& {
    switch (isa) {
      case Isa::scalar:
        return kMathBaseline;
      case Isa::avx2:
        return kMathAvx2;
      case Isa::avx512:
        return kMathAvx512;
    }
    return kMathBaseline;
  }();
  return table;
}

float exp(float x) { return math_table().exp_f32(x); }
float tanh(float x) { return math_table().tanh_f32(x); }
float erf(float x) { return math_table().erf_f32(x); }
double exp(double x) { return math_table().exp_f64(x); }
double log(double x) { return math_table().log(x); }
double expm1(double x) { return math_table().expm1(x); }
double log1p(double x) { return math_table().log1p(x); }
SinCos sincos(double x) { return math_table().sincos(x); }
double pow(double base, double exponent) {
  assert(base > 0.0);
  return math_table().pow(base, exponent);
}

double tanh(double x) {
  if (std::fabs(x) > 20.0) return std::copysign(1.0, x);  // 2 exp(-40) is below half an ulp
  const double e = expm1(2.0 * std::fabs(x));
  return std::copysign(e / (e + 2.0), x);
}

double erf(double x) {
  if (std::fabs(x) > 6.0) return std::copysign(1.0, x);  // 1 - erf(6) is below half an ulp
  const double z = 2.0 * x * x;
  double term = 1.0;
  double sum = 1.0;
  for (double odd = 3.0; term > 0x1p-60 * sum; odd += 2.0) {
    term *= z / odd;
    sum += term;
  }
  constexpr double kTwoOverRootPi = 0x1.20dd750429b6dp+0;
  return kTwoOverRootPi * x * exp(-x * x) * sum;
}

void exp_span(const float* source, float* target, std::size_t count) {
  math_table().exp_span_f32(source, target, count);
}
void exp_span(const double* source, double* target, std::size_t count) {
  math_table().exp_span_f64(source, target, count);
}
void log_span(const double* source, double* target, std::size_t count) {
  math_table().log_span(source, target, count);
}

}  // namespace driftscope::portable
