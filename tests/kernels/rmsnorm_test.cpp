// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm/rmsnorm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "operation_support.h"

namespace driftscope::testing {
namespace {

struct NormProblem {
  std::int64_t rows = 1;
  std::vector<float> x;       // [rows, width]
  std::vector<float> weight;  // [width]
  RmsNormArguments arguments = {};

  [[nodiscard]] RmsNormArguments filled(float* y) const {
    RmsNormArguments call = arguments;
    call.x = x.data();
    call.weight = weight.data();
    call.y = y;
    call.rows = rows;
    call.width = static_cast<std::int64_t>(weight.size());
    return call;
  }
  [[nodiscard]] std::vector<float> run(Isa isa, int workers = 1) const {
    std::vector<float> y(x.size());
    BackwardParallel parallel(workers);
    rmsnorm(filled(y.data()), isa, parallel);
    return y;
  }
};

NormProblem random_problem(std::int64_t rows, std::int64_t width, float range) {
  Values values(static_cast<std::uint64_t>(rows * 1000 + width));
  NormProblem problem;
  problem.rows = rows;
  problem.x = values.uniform(rows * width, range);
  problem.weight = values.uniform(width, 2.0F);
  return problem;
}

void expect_everywhere(const NormProblem& problem, const std::vector<float>& expected) {
  for (const RmsNormVariant& variant : rmsnorm_variants()) {
    if (!isa_supported(variant.isa)) continue;
    EXPECT_EQ(bit_difference(problem.run(variant.isa), expected), "") << variant.name;
  }
}

TEST(RmsNorm, DividesByTheRootOfTheMeanSquare) {
  // Mean square 25, scale 1/5 in f32.
  expect_everywhere({.x = {1.0F, 7.0F}, .weight = {1.0F, 2.0F}, .arguments = {.epsilon = 0.0F}},
                    {0.2F, 7.0F * 0.2F * 2.0F});
  // Epsilon is added to the mean: 4 + 5 = 9.
  expect_everywhere({.x = {2.0F, -2.0F}, .weight = {3.0F, 1.0F}, .arguments = {.epsilon = 5.0F}},
                    {2.0F * (1.0F / 3.0F) * 3.0F, -2.0F * (1.0F / 3.0F)});
}

TEST(RmsNorm, RoundsWhereItSays) {
  // x² + epsilon = 1, so the scale is 1 and x = 1/2 + 2^-9 is what gets rounded. bf16 steps at
  // 1/2 are 2^-8: x is a tie and goes to 1/2 (even).
  const float x = 0.5F + 0x1p-9F;
  NormProblem problem{.x = {x}, .weight = {1.0F + 0x1p-7F}, .arguments = {.epsilon = 1.0F - x * x}};
  expect_everywhere(problem, {x * (1.0F + 0x1p-7F)});  // 18 bits: exact
  // Rounded once, at the end: 1/2 + 3/2 · 2^-8 + 2^-16 is just above a tie, up to 2^-7.
  problem.arguments.output_dtype = Dtype::bf16;
  expect_everywhere(problem, {0.5F + 0x1p-7F});
  // Rounded in between as well: 1/2 · (1 + 2^-7) = 1/2 + 2^-8, a bf16 value.
  problem.arguments.normalised_dtype = Dtype::bf16;
  expect_everywhere(problem, {0.5F + 0x1p-8F});
}

TEST(RmsNorm, SumFollowsThePlan) {
  // Squares: 2^24, then 62 ones, then 0. One lane loses every one: mean 2^18, scale 2^-9.
  NormProblem problem;
  problem.x.assign(64, 1.0F);
  problem.x.front() = 4096.0F;
  problem.x.back() = 0.0F;
  problem.weight.assign(64, 1.0F);
  problem.arguments.epsilon = 0.0F;
  const auto scaled_by = [&](float scale) {
    std::vector<float> y = problem.x;
    for (float& value : y) value *= scale;
    return y;
  };
  problem.arguments.plan = {.lanes = 1};
  expect_everywhere(problem, scaled_by(0x1p-9F));
  // 64 lanes, one square each. Lane 0 adds lane 32 (1, lost), then what lanes 16, 8, 4 and 2 have
  // gathered (2, 4, 8, 16), then lane 1 (31, lane 63 being 0): 2^24 + 30 + 31 is a tie between 60
  // and 62, and the even significand is that of 2^24 + 60.
  problem.arguments.plan = {.lanes = 64};
  expect_everywhere(problem, scaled_by(1.0F / std::sqrt((16777216.0F + 60.0F) / 64.0F)));
  // f64 statistics keep all 62, and round the scale once.
  problem.arguments.plan = {.lanes = 32, .accumulator = Accumulator::f64};
  const double mean = (16777216.0 + 62.0) / 64.0;
  expect_everywhere(problem, scaled_by(static_cast<float>(1.0 / std::sqrt(mean))));
}

TEST(RmsNorm, ANanMakesItsRowNanAndNoOther) {
  NormProblem problem = random_problem(3, 20, 1.0F);
  problem.x[25] = std::numeric_limits<float>::quiet_NaN();
  for (const RmsNormVariant& variant : rmsnorm_variants()) {
    if (!isa_supported(variant.isa)) continue;
    const std::vector<float> y = problem.run(variant.isa);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 20 == 1) << i;
    EXPECT_EQ(bit_difference(y, problem.run(Isa::scalar)), "");
  }
}

TEST(RmsNorm, BitsAreTheScalarOnes) {
  const std::array plans = {
      ReductionPlan{},
      ReductionPlan{.lanes = 1},
      ReductionPlan{.lanes = 4},
      ReductionPlan{.lanes = 8, .lane_combine = LaneCombine::sequential},
      ReductionPlan{.lanes = 16, .split_k = 3},
      ReductionPlan{.lanes = 64},
      ReductionPlan{.lanes = 256, .split_k = 2, .split_combine = SplitCombine::tree},
      ReductionPlan{.split_k = 5, .split_combine = SplitCombine::arrival, .arrival_seed = 3},
      ReductionPlan{.split_k = 4, .accumulator = Accumulator::bf16},
      ReductionPlan{.accumulator = Accumulator::kahan},
      ReductionPlan{.split_k = 2, .accumulator = Accumulator::f64}};
  for (const std::int64_t width : {1, 7, 8, 17, 64, 100, 896}) {
    for (const ReductionPlan& plan : plans) {
      for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
        NormProblem problem = random_problem(5, width, 3.0F);
        problem.arguments.plan = plan;
        problem.arguments.normalised_dtype = dtype;
        problem.arguments.output_dtype = dtype;
        const std::vector<float> expected = problem.run(Isa::scalar);
        for (const RmsNormVariant& variant : rmsnorm_variants()) {
          if (!isa_supported(variant.isa)) continue;
          EXPECT_EQ(bit_difference(problem.run(variant.isa, 4), expected), "")
              << variant.name << " width " << width << " " << to_string(plan);
        }
      }
    }
  }
}

TEST(RmsNorm, ARowOfABatchIsTheRowAlone) {
  const NormProblem batch = random_problem(50, 896, 1.0F);
  for (const RmsNormVariant& variant : rmsnorm_variants()) {
    if (!isa_supported(variant.isa)) continue;
    const std::vector<float> together = batch.run(variant.isa, 2);
    for (std::ptrdiff_t row = 0; row < 50; ++row) {
      NormProblem alone = batch;
      alone.rows = 1;
      alone.x.assign(batch.x.begin() + row * 896, batch.x.begin() + (row + 1) * 896);
      const std::vector<float> expected(together.begin() + row * 896,
                                        together.begin() + (row + 1) * 896);
      EXPECT_EQ(bit_difference(alone.run(variant.isa), expected), "") << row;
    }
  }
}

TEST(RmsNorm, WorksInPlace) {
  const NormProblem problem = random_problem(4, 100, 1.0F);
  for (const RmsNormVariant& variant : rmsnorm_variants()) {
    if (!isa_supported(variant.isa)) continue;
    std::vector<float> both = problem.x;
    RmsNormArguments call = problem.filled(both.data());
    call.x = both.data();
    SerialParallel serial;
    variant.run(call, serial);
    EXPECT_EQ(bit_difference(both, problem.run(Isa::scalar)), "") << variant.name;
  }
}

// Relative error of an output, u = 2^-24, K = width: the sum of K squares is off by K u whatever
// its order (all terms are positive), the division and the addition of epsilon by u each; the root
// halves those and adds u, the reciprocal and the two multiplications add u each:
// (K / 2 + 5) u, then one unit roundoff for each rounding point. 1% covers the higher orders.
TEST(RmsNorm, StaysWithinTheBoundOfItsOrder) {
  for (const std::int64_t width : {3, 64, 896}) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      NormProblem problem = random_problem(6, width, 2.0F);
      problem.arguments.normalised_dtype = dtype;
      problem.arguments.output_dtype = dtype;
      std::vector<double> exact(problem.x.size());
      rmsnorm_reference(problem.filled(nullptr), exact.data());
      const double rounding = dtype == Dtype::f32 ? 0.0 : 2 * unit_roundoff(dtype);
      const double relative =
          1.01 * ((static_cast<double>(width) / 2 + 5) * unit_roundoff(Dtype::f32) + rounding);
      for (const RmsNormVariant& variant : rmsnorm_variants()) {
        if (!isa_supported(variant.isa)) continue;
        const std::vector<float> y = problem.run(variant.isa);
        for (std::size_t i = 0; i < y.size(); ++i) {
          EXPECT_LE(std::abs(y[i] - exact[i]), relative * std::abs(exact[i])) << variant.name;
        }
      }
    }
  }
}

TEST(AddResidual, RoundsTheSumOnce) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (!isa_supported(isa)) continue;
    SerialParallel serial;
    // bf16 steps at 1 are 2^-7: 2^-8 is a tie to 1 (even), 3 · 2^-8 one to 1 + 2^-6.
    std::vector<float> residual = {1.0F, 1.0F, std::numeric_limits<float>::quiet_NaN()};
    const std::vector<float> delta = {0x1p-8F, 3 * 0x1p-8F, 1.0F};
    add_residual(residual.data(), delta.data(), 3, Dtype::bf16, isa, serial);
    EXPECT_EQ(residual[0], 1.0F);
    EXPECT_EQ(residual[1], 1.0F + 0x1p-6F);
    EXPECT_TRUE(std::isnan(residual[2]));
  }
}

TEST(AddResidual, BitsAreTheScalarOnes) {
  for (const std::int64_t count : {1, 15, 16, 33, 40000}) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
      Values values(static_cast<std::uint64_t>(count));
      const std::vector<float> residual = values.uniform(count, 100.0F);
      const std::vector<float> delta = values.uniform(count, 1.0F);
      std::vector<float> expected = residual;
      SerialParallel serial;
      add_residual(expected.data(), delta.data(), count, dtype, Isa::scalar, serial);
      for (const Isa isa : {Isa::avx2, Isa::avx512}) {
        if (!isa_supported(isa)) continue;
        std::vector<float> sum = residual;
        BackwardParallel parallel(3);
        add_residual(sum.data(), delta.data(), count, dtype, isa, parallel);
        EXPECT_EQ(bit_difference(sum, expected), "") << isa_name(isa);
      }
    }
  }
}

}  // namespace
}  // namespace driftscope::testing
