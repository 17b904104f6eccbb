// SPDX-License-Identifier: Apache-2.0
#include "kernels/softmax/softmax.h"

#include <array>
#include <cmath>
#include <limits>

#include "operation_support.h"

namespace driftscope::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::array kDtypes = {Dtype::f32, Dtype::f64, Dtype::f16, Dtype::bf16};

std::vector<float> run(const std::vector<float>& x, Isa isa, const ReductionPlan& plan = {},
                       Dtype compute = Dtype::f32, Dtype output = Dtype::f32) {
  std::vector<float> y = x;  // in place
  softmax_row(y.data(), y.data(), static_cast<std::int64_t>(y.size()), plan, compute, output, isa);
  return y;
}

void expect_everywhere(const std::vector<float>& x, const std::vector<float>& expected,
                       Dtype compute = Dtype::f32, Dtype output = Dtype::f32) {
  for (const SoftmaxVariant& variant : softmax_variants()) {
    if (!isa_supported(variant.isa)) continue;
    EXPECT_EQ(bit_difference(run(x, variant.isa, {}, compute, output), expected), "")
        << variant.name << " " << dtype_name(compute);
  }
}

TEST(Softmax, KnownValues) {
  for (const Dtype compute : kDtypes) {
    expect_everywhere({3.0F, 3.0F, 3.0F, 3.0F}, {0.25F, 0.25F, 0.25F, 0.25F}, compute);
    expect_everywhere({7.0F}, {1.0F}, compute);
    expect_everywhere({-kInfinity, 5.0F, 5.0F}, {0.0F, 0.5F, 0.5F}, compute);
  }
  // exp(-200) is below half the least subnormal f32.
  expect_everywhere({1000.0F, 800.0F}, {1.0F, 0.0F});
}

TEST(Softmax, RoundsWhereItSays) {
  // 1/3 in bf16 is 0x3eab = 0.333984375.
  const std::vector<float> three(3, 1.0F);
  expect_everywhere(three, std::vector<float>(3, 1.0F / 3.0F));
  expect_everywhere(three, std::vector<float>(3, 0.333984375F), Dtype::bf16);
  expect_everywhere(three, std::vector<float>(3, 0.333984375F), Dtype::f32, Dtype::bf16);
  // A sum of 257 ones is 256 in bf16 (steps of 2, the tie to even).
  const std::vector<float> many(257, 0.0F);
  expect_everywhere(many, std::vector<float>(257, 1.0F / 256.0F), Dtype::bf16);
  expect_everywhere(many, std::vector<float>(257, 1.0F / 257.0F), Dtype::f32);
  expect_everywhere(many, std::vector<float>(257, 1.0F / 257.0F), Dtype::f64);
}

TEST(Softmax, WhatHasNoAnswerIsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& x :
       {std::vector<float>{1.0F, nan, 2.0F}, std::vector<float>{kInfinity, 0.0F},
        std::vector<float>{-kInfinity, -kInfinity}, std::vector<float>(40, nan)}) {
    for (const Dtype compute : kDtypes) {
      for (const SoftmaxVariant& variant : softmax_variants()) {
        if (!isa_supported(variant.isa)) continue;
        const std::vector<float> y = run(x, variant.isa, {}, compute);
        EXPECT_TRUE(std::isnan(y.front())) << variant.name;
        EXPECT_EQ(bit_difference(y, run(x, Isa::scalar, {}, compute)), "") << variant.name;
      }
    }
  }
}

TEST(Softmax, BitsAreTheScalarOnes) {
  const std::array plans = {
      ReductionPlan{},
      ReductionPlan{.lanes = 1},
      ReductionPlan{.lanes = 8},
      ReductionPlan{.lanes = 16, .lane_combine = LaneCombine::sequential},
      ReductionPlan{.lanes = 64, .split_k = 3, .split_combine = SplitCombine::tree},
      ReductionPlan{.split_k = 4, .split_combine = SplitCombine::arrival, .arrival_seed = 9},
      ReductionPlan{.split_k = 2, .accumulator = Accumulator::f16},
      ReductionPlan{.accumulator = Accumulator::kahan}};
  for (const std::int64_t count : {1, 2, 9, 31, 64, 333}) {
    const std::vector<float> x = Values(static_cast<std::uint64_t>(count)).uniform(count, 30.0F);
    for (const ReductionPlan& plan : plans) {
      for (const Dtype compute : kDtypes) {
        for (const Dtype output : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
          const std::vector<float> expected = run(x, Isa::scalar, plan, compute, output);
          for (const SoftmaxVariant& variant : softmax_variants()) {
            if (!isa_supported(variant.isa)) continue;
            EXPECT_EQ(bit_difference(run(x, variant.isa, plan, compute, output), expected), "")
                << variant.name << " count " << count << " " << to_string(plan);
          }
        }
      }
    }
  }
}

TEST(Softmax, PlansDifferInBitsOnOrdinaryInputs) {
  const std::vector<float> x = Values(4).uniform(500, 2.0F);
  EXPECT_NE(bit_difference(run(x, Isa::scalar, {.lanes = 1}), run(x, Isa::scalar, {.lanes = 32})),
            "");
}

// Relative error of y, u = 2^-24, inputs in [-range, range]: the difference is rounded, at most
// 2 range u in the exponent; exp is within 1 ulp (2 u); so a term is off by r = (2 range + 2) u,
// the sum by r + n u, the quotient by u more: 2 r + (n + 1) u. With f64 what is left is the
// rounding to f32: u. 1% covers the higher orders.
TEST(Softmax, StaysWithinItsBound) {
  constexpr double kRange = 20.0;
  const std::vector<float> x = Values(5).uniform(200, static_cast<float>(kRange));
  std::vector<double> exact(x.size());
  softmax_reference(x.data(), exact.data(), 200);
  const double u = unit_roundoff(Dtype::f32);
  for (const SoftmaxVariant& variant : softmax_variants()) {
    if (!isa_supported(variant.isa)) continue;
    const std::vector<float> single = run(x, variant.isa);
    const std::vector<float> wide = run(x, variant.isa, {}, Dtype::f64);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double bound = 1.01 * (2 * (2 * kRange + 2) + 201) * u * exact[i];
      EXPECT_LE(std::abs(single[i] - exact[i]), bound) << variant.name;
      EXPECT_LE(std::abs(wide[i] - exact[i]), 1.01 * u * exact[i]) << variant.name;
    }
  }
}

}  // namespace
}  // namespace driftscope::testing
