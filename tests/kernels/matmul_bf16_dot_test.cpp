// SPDX-License-Identifier: Apache-2.0
// The variant bf16_dot. What its instruction rounds inside is its maker's business; held here are
// the exact cases, the error bound, and that neither rows in flight nor threads change a bit.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/matmul_test_support.h"

namespace driftscope {
namespace {

using test::MatmulCase;
using test::MatmulInputs;
using test::same_bits;
using test::ThreadsParallel;

class MatmulBf16Dot : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_avx512_bf16()) GTEST_SKIP() << "this CPU has no AVX512-BF16";
  }
};

std::vector<float> run(const MatmulArguments& arguments, Parallel& parallel) {
  std::vector<float> y(static_cast<std::size_t>(arguments.m * arguments.weight.rows),
                       std::numeric_limits<float>::quiet_NaN());
  MatmulArguments own = arguments;
  own.y = y.data();
  matmul_bf16_dot(own, parallel);
  return y;
}

// Integers so small that every product and sum is exact in any order: the definition leaves one
// result. Odd K, part tiles, one row and many, splits that begin on an odd term.
TEST_F(MatmulBf16Dot, IntegersGiveTheirExactSum) {
  SerialParallel serial;
  for (const std::int64_t m : {1, 2, 3, 5, 14, 131}) {
    for (const std::int64_t k : {1, 2, 31, 33, 64, 129, 1001}) {
      const std::int64_t n = 27;
      std::vector<float> x(static_cast<std::size_t>(m * k));
      std::vector<float> w(static_cast<std::size_t>(n * k));
      std::vector<std::uint16_t> stored(w.size());
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 11) - 5.0F;
      for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i * 5 % 13) - 6.0F;
      narrow(Dtype::bf16, w.data(), stored.data(), w.size());
      for (const int lanes : {16, 32, 64}) {
        for (const int split : {1, 3}) {
          const std::vector<float> y = run({.x = x.data(),
                                            .m = m,
                                            .weight = {stored.data(), Dtype::bf16, n, k},
                                            .plan = {.lanes = lanes, .split_k = split}},
                                           serial);
          for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
              float sum = 0.0F;
              for (std::int64_t t = 0; t < k; ++t) {
                sum +=
                    x[static_cast<std::size_t>(i * k + t)] * w[static_cast<std::size_t>(j * k + t)];
              }
              ASSERT_EQ(y[static_cast<std::size_t>(i * n + j)], sum)
                  << "m=" << m << " k=" << k << " lanes=" << lanes << " split=" << split;
            }
          }
        }
      }
    }
  }
}

// Row for row the bits of the row alone, through every kernel that some number of rows reaches, and
// with any number of threads.
TEST_F(MatmulBf16Dot, RowsAndThreadsChangeNoBit) {
  for (const std::int64_t k : {77, 200, 2500}) {
    const MatmulCase shape{.m = 143, .n = 45, .k = k, .dtype = Dtype::bf16, .bias = true};
    const MatmulInputs inputs(shape);
    SerialParallel serial;
    for (const int lanes : {16, 32, 64}) {
      for (const LaneCombine combine : {LaneCombine::butterfly, LaneCombine::sequential}) {
        const MatmulArguments all =
            inputs.arguments({.lanes = lanes, .lane_combine = combine}, nullptr);
        const std::vector<float> together = run(all, serial);
        for (const int workers : {2, 3}) {
          ThreadsParallel parallel(workers);
          EXPECT_TRUE(same_bits(run(all, parallel), together)) << workers << " workers";
        }
        for (const std::int64_t batch : {1, 2, 3, 4, 7, 50}) {
          for (std::int64_t first = 0; first + batch <= shape.m; first += 31) {
            MatmulArguments some = all;
            some.x = inputs.x_row(first);
            some.m = batch;
            const std::vector<float> part = run(some, serial);
            ASSERT_EQ(0, std::memcmp(part.data(), together.data() + first * shape.n,
                                     part.size() * sizeof(float)))
                << "batch " << batch << " from row " << first << " k " << k;
          }
        }
      }
    }
  }
}

// Against f64 sums of the rounded inputs. An instruction adds two products to a sum with at most
// three roundings of relative size 2^-23 (it may truncate inside), K / 2 pairs meet in an output at
// most, and lanes and bias come on top; subnormals vanish, at most 2^-126 each.
TEST_F(MatmulBf16Dot, StaysWithinTheRoundingBound) {
  const MatmulCase shape{.m = 13, .n = 40, .k = 896, .dtype = Dtype::bf16, .bias = true};
  MatmulInputs inputs(shape);
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t t = 0; t < shape.k; ++t) {
      inputs.x_row(i)[t] = round_to(Dtype::bf16, inputs.x_row(i)[t]);
    }
  }
  std::vector<double> reference(inputs.outputs());
  matmul_reference(inputs.arguments({}, nullptr), reference.data());
  SerialParallel serial;
  const std::vector<float> y = run(inputs.arguments({.lanes = 32}, nullptr), serial);
  const double depth = 3.0 * (896.0 / 64.0) + 8.0;
  const double gamma = depth * 0x1p-23 / (1.0 - depth * 0x1p-23);
  for (std::size_t o = 0; o < y.size(); ++o) {
    const auto i = static_cast<std::int64_t>(o) / shape.n;
    const auto j = static_cast<std::int64_t>(o) % shape.n;
    double magnitude = std::fabs(static_cast<double>(inputs.bias(j)));
    for (std::int64_t t = 0; t < shape.k; ++t) {
      magnitude += std::fabs(static_cast<double>(inputs.x_row(i)[t]) *
                             static_cast<double>(inputs.w_row(j)[t]));
    }
    EXPECT_LE(std::fabs(static_cast<double>(y[o]) - reference[o]), gamma * magnitude + 0x1p-116);
  }
}

TEST_F(MatmulBf16Dot, RoundsActivationsToBf16ToNearestEven) {
  // 1 + 2^-8 lies midway between 1 and 1 + 2^-7 and goes to the even 1; 1 + 3 · 2^-8 goes up.
  const std::vector<float> x = {1.0F + 0x1p-8F, 1.0F + 3 * 0x1p-8F};
  const std::vector<std::uint16_t> one = {bf16_from_float(1.0F)};
  SerialParallel serial;
  const std::vector<float> y =
      run({.x = x.data(), .m = 2, .weight = {one.data(), Dtype::bf16, 1, 1}, .plan = {.lanes = 16}},
          serial);
  EXPECT_EQ(y[0], 1.0F);
  EXPECT_EQ(y[1], 1.0F + 0x1p-6F);
}

TEST_F(MatmulBf16Dot, SubnormalsAreZero) {
  const std::vector<float> x = {0x1p+100F};
  const std::vector<std::uint16_t> least = {1};  // 2^-133
  SerialParallel serial;
  const MatmulArguments arguments{
      .x = x.data(), .m = 1, .weight = {least.data(), Dtype::bf16, 1, 1}, .plan = {.lanes = 16}};
  EXPECT_EQ(run(arguments, serial)[0], 0.0F);
  float portable = 0.0F;
  MatmulArguments other = arguments;
  other.y = &portable;
  matmul(other, detect_isa(), serial);
  EXPECT_EQ(portable, 0x1p-33F);
}

TEST(MatmulBf16DotPlans, OnlyWhatItsVectorsHold) {
  EXPECT_TRUE(bf16_dot_accepts({.lanes = 16}));
  EXPECT_TRUE(bf16_dot_accepts({.lanes = 64, .accumulator = Accumulator::bf16}));
  EXPECT_FALSE(bf16_dot_accepts({.lanes = 8}));
  EXPECT_FALSE(bf16_dot_accepts({.lanes = 128}));
  EXPECT_FALSE(bf16_dot_accepts({.lanes = 32, .accumulator = Accumulator::f64}));
  EXPECT_FALSE(bf16_dot_accepts({.lanes = 32, .accumulator = Accumulator::kahan}));
}

}  // namespace
}  // namespace driftscope
