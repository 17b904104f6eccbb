// SPDX-License-Identifier: Apache-2.0
// tanh and erf against the C library's long double, and their vector forms against the scalar ones.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/base/isa.h"
#include "kernels/plan/dtype.h"
#include "kernels/plan/portable_math.h"
#include "kernels/plan/soft_cap.h"
#include "tests/kernels/plan_curve_vectors.h"

namespace driftscope {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

// Distance in units in the last place of the type with `significand` bits, at the exact value.
double ulps(double actual, long double exact, int significand, int lowest_exponent) {
  int exponent = 0;
  (void)std::frexp(static_cast<double>(exact), &exponent);
  const long double ulp = std::ldexp(1.0L, std::max(exponent, lowest_exponent) - significand);
  return static_cast<double>(std::fabs((static_cast<long double>(actual) - exact) / ulp));
}

// Every finite f32 at a stride that no power of two divides.
template <class Check>
void walk(std::uint32_t stride, const Check& check) {
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32U); bits += stride) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isfinite(x)) check(x);
  }
}

TEST(PortableCurves, AreWithinTwoUlp) {
  double tanh_worst = 0.0;
  double erf_worst = 0.0;
  const auto check = [&](float x) {
    const auto wide = static_cast<long double>(x);
    tanh_worst = std::max(tanh_worst, ulps(double{portable::tanh(x)}, std::tanh(wide), 24, -125));
    erf_worst = std::max(erf_worst, ulps(double{portable::erf(x)}, std::erf(wide), 24, -125));
  };
  walk(10007, check);
  // Where they bend, and around the seams of their two forms.
  for (float x = 0.01F; x < 6.0F; x += 1.9e-5F) check(x);
  EXPECT_LE(tanh_worst, 2.0);
  EXPECT_LE(erf_worst, 2.0);
  RecordProperty("tanh_ulp", std::to_string(tanh_worst));
  RecordProperty("erf_ulp", std::to_string(erf_worst));
}

TEST(PortableCurves, AreOddAndReachOne) {
  for (float (*f)(float) : {static_cast<float (*)(float)>(portable::tanh),
                            static_cast<float (*)(float)>(portable::erf)}) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(f(0.0F)), 0U);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(f(-0.0F)), 0x80000000U);
    EXPECT_EQ(f(kInfinity), 1.0F);
    EXPECT_EQ(f(-kInfinity), -1.0F);
    EXPECT_EQ(f(50.0F), 1.0F);
    EXPECT_TRUE(std::isnan(f(kNan)));
    walk(104729, [&](float x) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(f(-x)),
                std::bit_cast<std::uint32_t>(f(x)) ^ 0x80000000U);
    });
  }
}

TEST(PortableCurves, F64FormsAreWithinTheirBounds) {
  for (double x = -7.0; x < 7.0; x += 1.37e-3) {
    for (const double at : {x, x * 0x1p-20, x * 4.0}) {
      const auto wide = static_cast<long double>(at);
      EXPECT_LE(ulps(portable::tanh(at), std::tanh(wide), 53, -1021), 4.0) << at;
      // 2^-47 relative is 64 ulp.
      EXPECT_LE(ulps(portable::erf(at), std::erf(wide), 53, -1021), 64.0) << at;
    }
  }
  EXPECT_EQ(portable::tanh(0.0), 0.0);
  EXPECT_EQ(portable::erf(0.0), 0.0);
}

TEST(SoftCap, RoundsEachStep) {
  // Far above the cap: the cap. Near 0: x itself.
  EXPECT_EQ(soft_capped(1e6F, 30.0F, Dtype::f32, Dtype::f32), 30.0F);
  EXPECT_EQ(soft_capped(-1e6F, 30.0F, Dtype::f32, Dtype::f32), -30.0F);
  EXPECT_EQ(soft_capped(0x1p-20F, 32.0F, Dtype::f32, Dtype::f32), 0x1p-20F);
  // tanh(1/2) = 0.46211716, in bf16 (steps of 2^-9) 237/512 = 0.462890625; times 50 that is
  // 23.14453125, in bf16 (steps of 1/8) 23.125.
  EXPECT_EQ(soft_capped(25.0F, 50.0F, Dtype::bf16, Dtype::f32), 23.14453125F);
  EXPECT_EQ(soft_capped(25.0F, 50.0F, Dtype::bf16, Dtype::bf16), 23.125F);
}

#if defined(__x86_64__)
template <std::size_t Width>
void expect_scalar_bits(void (*vector)(const float*, float*), float (*scalar)(float)) {
  constexpr std::uint32_t kStride = 104729;
  std::array<float, Width> x{};
  std::array<float, Width> y{};
  std::uint64_t next = 0;
  while (next < (std::uint64_t{1} << 32U)) {
    for (float& value : x) {
      value = std::bit_cast<float>(static_cast<std::uint32_t>(next));
      next += kStride / Width;
    }
    vector(x.data(), y.data());
    for (std::size_t i = 0; i < Width; ++i) {
      const float wanted = scalar(x[i]);
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(y[i])) << x[i];
        continue;
      }
      ASSERT_EQ(std::bit_cast<std::uint32_t>(y[i]), std::bit_cast<std::uint32_t>(wanted)) << x[i];
    }
  }
}

TEST(PortableCurvesSimd, Avx2GivesTheScalarBits) {
  if (!isa_supported(Isa::avx2)) GTEST_SKIP() << "this CPU has no AVX2";
  expect_scalar_bits<8>(test::tanh_vector_avx2, portable::tanh);
  expect_scalar_bits<8>(test::erf_vector_avx2, portable::erf);
}

TEST(PortableCurvesSimd, Avx512GivesTheScalarBits) {
  if (!isa_supported(Isa::avx512)) GTEST_SKIP() << "this CPU has no AVX-512";
  expect_scalar_bits<16>(test::tanh_vector_avx512, portable::tanh);
  expect_scalar_bits<16>(test::erf_vector_avx512, portable::erf);
}
#endif

}  // namespace
}  // namespace driftscope
