// SPDX-License-Identifier: Apache-2.0
// Against the 64-bit significands of x87 long double (glibc: below 1 ulp of its own 2^-64), which
// resolve 2^-11 of an f64 ulp.
#include "kernels/plan/portable_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/base/isa.h"
#include "kernels/plan/portable_math_functions.h"

namespace driftscope {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

double ulps(double actual, long double exact) {
  int exponent = 0;
  (void)std::frexp(static_cast<double>(exact), &exponent);
  const long double ulp = std::ldexp(1.0L, std::max(exponent, -1021) - 53);
  return static_cast<double>(std::fabs((static_cast<long double>(actual) - exact) / ulp));
}

class Points {
 public:
  explicit Points(std::uint64_t seed) : m_random(seed) {}
  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(m_random() >> 11U) * 0x1p-53);
  }
  // Evenly in the exponent, either sign.
  double logarithmic(double low, double high) {
    const double magnitude = std::exp2(uniform(low, high));
    return (m_random() & 1U) != 0 ? magnitude : -magnitude;
  }

 private:
  std::mt19937_64 m_random;
};

constexpr int kPoints = 100000;

TEST(PortableMath, ExpWithinOneUlp) {
  Points points(1);
  for (int i = 0; i < kPoints; ++i) {
    for (const double x : {points.uniform(-708.0, 709.7), points.uniform(-1.0, 1.0),
                           points.logarithmic(-60.0, 1.0)}) {
      ASSERT_LE(ulps(portable::exp(x), std::exp(static_cast<long double>(x))), 1.0) << x;
    }
  }
}

TEST(PortableMath, LogWithinOneUlp) {
  Points points(2);
  for (int i = 0; i < kPoints; ++i) {
    for (const double x : {std::fabs(points.logarithmic(-1074.0, 1023.0)), points.uniform(0.5, 2.0),
                           1.0 + points.logarithmic(-50.0, -8.0)}) {
      if (x == 1.0) continue;
      ASSERT_LE(ulps(portable::log(x), std::log(static_cast<long double>(x))), 1.0) << x;
    }
  }
  EXPECT_EQ(portable::log(1.0), 0.0);
}

TEST(PortableMath, Expm1AndLog1pWithinOneUlp) {
  Points points(3);
  for (int i = 0; i < kPoints; ++i) {
    for (const double x : {points.uniform(-40.0, 700.0), points.uniform(-2.0, 2.0),
                           points.logarithmic(-60.0, 3.0)}) {
      ASSERT_LE(ulps(portable::expm1(x), std::expm1(static_cast<long double>(x))), 1.0) << x;
    }
    for (const double x : {points.uniform(-0.999, 3.0), points.logarithmic(-60.0, -1.0),
                           std::fabs(points.logarithmic(-3.0, 1000.0))}) {
      ASSERT_LE(ulps(portable::log1p(x), std::log1p(static_cast<long double>(x))), 1.0) << x;
    }
  }
}

TEST(PortableMath, SinCosWithinOneUlpIncludingMultiplesOfHalfPi) {
  Points points(4);
  for (int i = 0; i < kPoints; ++i) {
    for (const double x : {points.uniform(-10.0, 10.0), points.logarithmic(-30.0, 30.0),
                           std::floor(points.uniform(0.0, 6e8)) * 1.5707963267948966}) {
      const portable::SinCos value = portable::sincos(x);
      ASSERT_LE(ulps(value.sin, std::sin(static_cast<long double>(x))), 1.0) << x;
      ASSERT_LE(ulps(value.cos, std::cos(static_cast<long double>(x))), 1.0) << x;
    }
  }
}

TEST(PortableMath, PowWithinOneUlp) {
  Points points(5);
  for (int i = 0; i < kPoints; ++i) {
    const double base = std::fabs(points.logarithmic(-20.0, 20.0));
    const double exponent = points.uniform(-50.0, 50.0);
    const long double exact =
        std::pow(static_cast<long double>(base), static_cast<long double>(exponent));
    if (exact < 0x1p-1022L || exact > 0x1.fffffffffffffp+1023L) continue;
    ASSERT_LE(ulps(portable::pow(base, exponent), exact), 1.0) << base << " ^ " << exponent;
  }
  // RoPE frequencies.
  for (const double theta : {10000.0, 500000.0, 1000000.0}) {
    for (int i = 0; i < 64; ++i) {
      const double exponent = -2.0 * i / 128.0;
      ASSERT_LE(ulps(portable::pow(theta, exponent),
                     std::pow(static_cast<long double>(theta), static_cast<long double>(exponent))),
                1.0);
    }
  }
}

// f32 exp against f64 exp (2^-29 of an f32 ulp): every 61st float of the range where it is finite.
TEST(PortableMath, FloatExpWithinOneUlp) {
  for (const std::uint32_t sign : {0U, 0x80000000U}) {
    for (std::uint32_t bits = 0; bits < 0x42d20000U; bits += 61) {
      const auto x = std::bit_cast<float>(bits | sign);
      const double exact = std::exp(static_cast<double>(x));
      if (exact > 3.4028234e38) continue;
      int exponent = 0;
      (void)std::frexp(exact, &exponent);
      const double ulp = std::ldexp(1.0, std::max(exponent, -125) - 24);
      ASSERT_LE(std::fabs(static_cast<double>(portable::exp(x)) - exact) / ulp, 1.0) << x;
    }
  }
}

TEST(PortableMath, ExactPointsAndEdges) {
  EXPECT_EQ(portable::exp(0.0), 1.0);
  EXPECT_EQ(portable::exp(-kInf), 0.0);
  EXPECT_EQ(portable::exp(kInf), kInf);
  EXPECT_EQ(portable::exp(710.0), kInf);
  EXPECT_EQ(portable::exp(-745.2), 0.0);
  EXPECT_EQ(portable::exp(-745.1), 0x1p-1074);  // just above half of it
  EXPECT_TRUE(std::isnan(portable::exp(kNotANumber)));
  EXPECT_EQ(portable::exp(0.0F), 1.0F);
  EXPECT_EQ(portable::exp(-std::numeric_limits<float>::infinity()), 0.0F);
  EXPECT_EQ(portable::exp(std::numeric_limits<float>::infinity()),
            std::numeric_limits<float>::infinity());
  EXPECT_EQ(portable::exp(88.73F), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isfinite(portable::exp(88.72F)));
  EXPECT_EQ(portable::exp(-103.9F), 0x1p-149F);
  EXPECT_EQ(portable::exp(-104.1F), 0.0F);
  EXPECT_TRUE(std::isnan(portable::exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(portable::log(0.0), -kInf);
  EXPECT_EQ(portable::log(-0.0), -kInf);
  EXPECT_EQ(portable::log(kInf), kInf);
  EXPECT_TRUE(std::isnan(portable::log(-1.0)));
  EXPECT_TRUE(std::isnan(portable::log(kNotANumber)));
  EXPECT_EQ(portable::expm1(0.0), 0.0);
  EXPECT_TRUE(std::signbit(portable::expm1(-0.0)));
  EXPECT_EQ(portable::expm1(-kInf), -1.0);
  EXPECT_EQ(portable::expm1(kInf), kInf);
  EXPECT_EQ(portable::log1p(-1.0), -kInf);
  EXPECT_TRUE(std::isnan(portable::log1p(-1.5)));
  EXPECT_TRUE(std::signbit(portable::log1p(-0.0)));
  EXPECT_EQ(portable::log1p(kInf), kInf);
  EXPECT_EQ(portable::sincos(0.0).sin, 0.0);
  EXPECT_EQ(portable::sincos(0.0).cos, 1.0);
  EXPECT_TRUE(std::isnan(portable::sincos(kInf).sin));
  EXPECT_EQ(portable::pow(2.0, 10.0), 1024.0);
  EXPECT_EQ(portable::pow(2.0, -1074.0), 0x1p-1074);
  EXPECT_EQ(portable::pow(10.0, 400.0), kInf);
  EXPECT_EQ(portable::pow(7.5, 0.0), 1.0);
  EXPECT_EQ(portable::pow(3.0, 1.0), 3.0);
}

// One source, three compilations: the same bits, in spans as in singles.
TEST(PortableMath, EveryCompilationGivesTheSameBits) {
  std::vector<double> x(4099);
  std::vector<float> xf(x.size());
  Points points(6);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = i % 3 == 0 ? points.uniform(-750.0, 715.0) : points.logarithmic(-1074.0, 1023.0);
    xf[i] = static_cast<float>(points.uniform(-110.0, 92.0));
  }
  x[7] = kInf;
  x[8] = -kInf;
  x[9] = kNotANumber;
  x[10] = -0.0;
  xf[11] = std::numeric_limits<float>::quiet_NaN();
  const auto same = [](auto a, auto b) {
    using Bits = std::conditional_t<sizeof(a) == 4, std::uint32_t, std::uint64_t>;
    return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
  };
  const portable::MathTable& base = portable::kMathBaseline;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (!isa_supported(isa)) continue;
    const portable::MathTable& table = isa == Isa::avx512 ? portable::kMathAvx512
                                       : isa == Isa::avx2 ? portable::kMathAvx2
                                                          : base;
    std::vector<double> exps(x.size());
    std::vector<double> logs(x.size());
    std::vector<float> expsf(x.size());
    table.exp_span_f64(x.data(), exps.data(), x.size());
    table.log_span(x.data(), logs.data(), x.size());
    table.exp_span_f32(xf.data(), expsf.data(), xf.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double v = x[i];
      EXPECT_TRUE(same(exps[i], base.exp_f64(v))) << isa_name(isa) << " exp " << v;
      EXPECT_TRUE(same(expsf[i], base.exp_f32(xf[i]))) << isa_name(isa) << " exp " << xf[i];
      EXPECT_TRUE(same(table.exp_f32(xf[i]), base.exp_f32(xf[i])));
      EXPECT_TRUE(same(table.expm1(v), base.expm1(v))) << isa_name(isa) << " expm1 " << v;
      if (v > 0.0) {
        EXPECT_TRUE(same(logs[i], base.log(v))) << isa_name(isa) << " log " << v;
        EXPECT_TRUE(same(table.log1p(v), base.log1p(v))) << isa_name(isa) << " log1p " << v;
        if (v < kInf) {
          EXPECT_TRUE(same(table.pow(v, 0.37), base.pow(v, 0.37))) << isa_name(isa) << " pow " << v;
        }
      }
      if (std::fabs(v) <= 0x1p30) {
        EXPECT_TRUE(same(table.sincos(v).sin, base.sincos(v).sin)) << isa_name(isa) << " sin " << v;
        EXPECT_TRUE(same(table.sincos(v).cos, base.sincos(v).cos)) << isa_name(isa) << " cos " << v;
      }
    }
  }
}

TEST(PortableMath, SpansWorkInPlace) {
  std::vector<double> values = {0.0, 1.0, -2.5, 700.0, 3.0};
  std::vector<double> expected;
  for (const double value : values) expected.push_back(portable::exp(value));
  portable::exp_span(values.data(), values.data(), values.size());
  EXPECT_EQ(values, expected);
}

}  // namespace
}  // namespace driftscope
