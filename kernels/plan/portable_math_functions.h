// SPDX-License-Identifier: Apache-2.0
// The source of the portable functions, compiled once for each instruction set (hardware fma
// against the library's) and never shared between them: everything is internal to the file that
// includes it, and nothing of the standard library is instantiated. Straight-line code so that the
// span loops vectorise. Coefficients interpolate at Chebyshev nodes.
// Method: Cody & Waite reduction; log after Muller, Handbook of Floating-Point Arithmetic, ch. 10.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/plan/portable_curve_functions.h"
#include "kernels/plan/portable_exp_functions.h"
#include "kernels/plan/portable_math.h"

namespace driftscope::portable {

// One compiled copy of every function.
struct MathTable {
  float (*exp_f32)(float);
  float (*tanh_f32)(float);
  float (*erf_f32)(float);
  double (*exp_f64)(double);
  double (*log)(double);
  double (*expm1)(double);
  double (*log1p)(double);
  SinCos (*sincos)(double);
  double (*pow)(double, double);
  void (*exp_span_f32)(const float*, float*, std::size_t);
  void (*exp_span_f64)(const double*, double*, std::size_t);
  void (*log_span)(const double*, double*, std::size_t);
};

namespace {

constexpr double kInfinity = __builtin_inf();
constexpr double kNaN = __builtin_nan("");

// An unevaluated sum: high + low.
struct Pair {
  double high;
  double low;
};
[[gnu::always_inline]] inline Pair two_sum(double a, double b) {
  const double sum = a + b;
  const double rest = sum - a;
  return {sum, (a - (sum - rest)) + (b - rest)};
}
[[gnu::always_inline]] inline Pair quick_two_sum(double a, double b) {  // |a| >= |b|
  const double sum = a + b;
  return {sum, b - (sum - a)};
}
[[gnu::always_inline]] inline Pair two_product(double a, double b) {
  const double product = a * b;
  return {product, fused(a, b, -product)};
}
[[gnu::always_inline]] inline Pair multiply(Pair a, Pair b) {
  Pair p = two_product(a.high, b.high);
  p.low += a.high * b.low + a.low * b.high;
  return quick_two_sum(p.high, p.low);
}
[[gnu::always_inline]] inline Pair add(Pair a, Pair b) {
  Pair s = two_sum(a.high, b.high);
  s.low += a.low + b.low;
  return quick_two_sum(s.high, s.low);
}

// x = 2^exponent · (1 + fraction), 1 + fraction in [sqrt(1/2), sqrt(2)).
struct Decomposed {
  double exponent;
  double fraction;
};
[[gnu::always_inline]] inline Decomposed decompose(double x) {
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdU;
  const bool subnormal = x < 0x1p-1022;
  const std::uint64_t bits = bits_of(subnormal ? x * 0x1p54 : x);
  const std::uint64_t exponent = (bits - kSqrtHalf + (1023ULL << 52U)) >> 52U;  // + 1023
  const double mantissa = double_of(bits - ((exponent - 1023U) << 52U));
  // An integer below 2^52 as a double, without a conversion instruction that AVX2 lacks.
  const double as_double = double_of(exponent | 0x4330000000000000U) - 0x1p52;
  return {as_double - (subnormal ? 1077.0 : 1023.0), mantissa - 1.0};
}

// log(2^k · (1 + f)) + correction, for 1 + f in [sqrt(1/2), sqrt(2)); with s = f / (2 + f),
// log(1 + f) = 2 atanh(s) = f - (f²/2 - s·(f²/2 + R(s²))).
[[gnu::always_inline]] inline double log_of(Decomposed value, double correction) {
  const double f = value.fraction;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = 0x1.0c0aff044a970p-3;
  p = fused(p, z, 0x1.0fbde0f4ad17bp-3);
  p = fused(p, z, 0x1.3b1c3c1c81c8fp-3);
  p = fused(p, z, 0x1.745cf8e4bba1bp-3);
  p = fused(p, z, 0x1.c71c7201a55d7p-3);
  p = fused(p, z, 0x1.2492492476a1ap-2);
  p = fused(p, z, 0x1.9999999999a39p-2);
  p = fused(p, z, 0x1.5555555555555p-1);
  const double half_square = 0.5 * f * f;
  const double small = fused(value.exponent, kLn2Low, correction);
  const double inner = fused(s, fused(z, p, half_square), small);
  return value.exponent * kLn2High - ((half_square - inner) - f);
}

[[gnu::always_inline]] inline double log_f64(double x) {
  const double finite = log_of(decompose(x), 0.0);
  double result = x > 0.0 ? finite : kNaN;
  result = x == 0.0 ? -kInfinity : result;
  result = x == kInfinity ? kInfinity : result;
  return x != x ? x + x : result;
}

double log1p_f64(double x) {
  if (x != x) return x + x;
  if (x < -1.0) return kNaN;
  if (x == -1.0) return -kInfinity;
  if (x == kInfinity || __builtin_fabs(x) < 0x1p-54) return x;
  const Pair u = two_sum(1.0, x);
  return log_of(decompose(u.high), u.low / u.high);
}

double expm1_f64(double x) {
  if (x != x) return x + x;
  if (x > 40.0) return exp_f64(x);  // 1 is below half an ulp
  if (x < -40.0) return -1.0;
  if (__builtin_fabs(x) < 0x1p-54) return x;
  const double t = fused(x, kLog2E, kRound);
  const double n = t - kRound;
  const double exact = fused(n, -kLn2High, x);
  const double r = fused(n, -kLn2Low, exact);
  const double r_low = fused(n, -kLn2Low, exact - r);
  const Pair square = two_product(r, r);
  const double q = exp_quotient(r);
  const Pair curve = two_product(q, square.high);
  Pair m = quick_two_sum(r, curve.high);  // exp(r) - 1
  m.low += fused(q, square.low, curve.low);
  const double power = double_of((bits_of(t) - bits_of(kRound) + 1023U) << 52U);
  const Pair offset = two_sum(power, -1.0);
  const Pair sum = two_sum(offset.high, power * m.high);
  return sum.high + (sum.low + (offset.low + power * (m.low + r_low)));
}

// log(x) for x > 0 and finite, to about 2^-66 relative.
Pair log_pair(double x) {
  const Decomposed value = decompose(x);
  const double f = value.fraction;
  const Pair denominator = two_sum(2.0, f);
  const double s_high = f / denominator.high;
  const double rest = fused(-s_high, denominator.high, f) - s_high * denominator.low;
  const Pair s = quick_two_sum(s_high, rest / denominator.high);
  const Pair z = multiply(s, s);
  // 2 atanh(s) = s · (2 + z·(2/3 + z·(2/5 + z·tail))), tail = 2/7 + 2/9 z + …
  double tail = 2.0 / 29.0;
  for (int i = 27; i >= 7; i -= 2) tail = fused(tail, z.high, 2.0 / i);
  constexpr Pair kTwoFifths = {0x1.999999999999ap-2, -0x1.999999999999ap-56};
  constexpr Pair kTwoThirds = {0x1.5555555555555p-1, 0x1.5555555555555p-55};
  Pair sum = add(kTwoFifths, {z.high * tail, z.low * tail});
  sum = add(kTwoThirds, multiply(z, sum));
  sum = add({2.0, 0.0}, multiply(z, sum));
  const Pair log_fraction = multiply(s, sum);
  const Pair low = two_product(value.exponent, kLn2Low);
  return add(add({value.exponent * kLn2High, 0.0}, low), log_fraction);
}

double pow_f64(double base, double exponent) {
  const Pair logarithm = log_pair(base);
  Pair x = two_product(exponent, logarithm.high);
  x.low = fused(exponent, logarithm.low, x.low);
  if (x.high != x.high) return x.high;
  if (x.high > 710.0) return kInfinity;
  if (x.high < -746.0) return 0.0;
  const double t = fused(x.high, kLog2E, kRound);
  const double n = t - kRound;
  const double exact = fused(n, -kLn2High, x.high);
  const double rounded = fused(n, -kLn2Low, exact);
  const Pair r = two_sum(rounded, fused(n, -kLn2Low, exact - rounded) + x.low);
  const Pair one = quick_two_sum(1.0, r.high);
  const double q = fused(exp_quotient(r.high) * r.high, r.high, fused(r.high, r.low, r.low));
  return scale(one.high + (one.low + q), bits_of(t) - bits_of(kRound) + 4096U);
}

// sin and cos of (r + r_low), |r| <= pi/4.
SinCos sincos_reduced(double r, double r_low) {
  const double z = r * r;
  double s = -0x1.ab16f5caa198ap-41;
  s = fused(s, z, 0x1.61217d9252c03p-33);
  s = fused(s, z, -0x1.ae645410e937bp-26);
  s = fused(s, z, 0x1.71de3a545f836p-19);
  s = fused(s, z, -0x1.a01a01a01992fp-13);
  s = fused(s, z, 0x1.1111111111110p-7);
  s = fused(s, z, -0x1.5555555555555p-3);
  double c = 0x1.ab779550c8d9bp-45;
  c = fused(c, z, -0x1.9394b8bd50ae1p-37);
  c = fused(c, z, 0x1.1eed8deac3dfep-29);
  c = fused(c, z, -0x1.27e4fb77125c5p-22);
  c = fused(c, z, 0x1.a01a01a019d06p-16);
  c = fused(c, z, -0x1.6c16c16c16c16p-10);
  c = fused(c, z, 0x1.5555555555555p-5);
  const double half = 0.5 * z;
  const double sine = r + fused(s * z, r, fused(-half, r_low, r_low));
  const double first = 1.0 - half;
  const double half_low = 0.5 * fused(r, r, -z);
  const double cosine =
      first + (((1.0 - first) - half) + fused(z * z, c, -fused(r, r_low, half_low)));
  return {sine, cosine};
}

SinCos sincos_f64(double x) {
  if (!(__builtin_fabs(x) <= 0x1p30)) return {kNaN, kNaN};
  // pi/2 in three parts of 53 bits: about 160 bits less the 30 of the multiple.
  constexpr double kPio2[3] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                               -0x1.f1976b7ed8fbcp-110};
  const double t = fused(x, 0x1.45f306dc9c883p-1, kRound);
  const double n = t - kRound;
  if (n == 0.0) return sincos_reduced(x, 0.0);
  const Pair first = two_product(n, kPio2[0]);
  const Pair second = two_product(n, kPio2[1]);
  Pair r = two_sum(x - first.high, -first.low);
  const Pair next = two_sum(r.high, -second.high);
  r = quick_two_sum(next.high, next.low + (r.low - second.low - n * kPio2[2]));
  const SinCos value = sincos_reduced(r.high, r.low);
  switch (bits_of(t) & 3U) {
    case 0:
      return value;
    case 1:
      return {value.cos, -value.sin};
    case 2:
      return {-value.sin, -value.cos};
    default:
      return {-value.cos, value.sin};
  }
}

float exp_f32_call(float x) { return exp_f32(x); }
float tanh_f32_call(float x) { return tanh_f32(x); }
float erf_f32_call(float x) { return erf_f32(x); }
double exp_f64_call(double x) { return exp_f64(x); }
double log_f64_call(double x) { return log_f64(x); }

void exp_span_f32(const float* source, float* target, std::size_t count) {
#pragma GCC ivdep  // the same array is a distance of 0
  for (std::size_t i = 0; i < count; ++i) target[i] = exp_f32(source[i]);
}
void exp_span_f64(const double* source, double* target, std::size_t count) {
#pragma GCC ivdep  // the same array is a distance of 0
  for (std::size_t i = 0; i < count; ++i) target[i] = exp_f64(source[i]);
}
void log_span_f64(const double* source, double* target, std::size_t count) {
#pragma GCC ivdep  // the same array is a distance of 0
  for (std::size_t i = 0; i < count; ++i) target[i] = log_f64(source[i]);
}

constexpr MathTable kMathTable = {
    .exp_f32 = exp_f32_call,
    .tanh_f32 = tanh_f32_call,
    .erf_f32 = erf_f32_call,
    .exp_f64 = exp_f64_call,
    .log = log_f64_call,
    .expm1 = expm1_f64,
    .log1p = log1p_f64,
    .sincos = sincos_f64,
    .pow = pow_f64,
    .exp_span_f32 = exp_span_f32,
    .exp_span_f64 = exp_span_f64,
    .log_span = log_span_f64,
};

}  // namespace

extern const MathTable kMathBaseline;
extern const MathTable kMathAvx2;
extern const MathTable kMathAvx512;

// The table compiled for the widest instruction set that detect_isa() allows.
[[nodiscard]] const MathTable& math_table();

}  // namespace driftscope::portable
