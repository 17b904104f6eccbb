// SPDX-License-Identifier: Apache-2.0
#include "kernels/layernorm/layernorm.h"

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
  std::vector<float> bias;    // [width]
  LayerNormArguments arguments = {};

  [[nodiscard]] LayerNormArguments filled(const float* from, float* y) const {
    LayerNormArguments call = arguments;
    call.x = from;
    call.weight = weight.data();
    call.bias = bias.data();
    call.y = y;
    call.rows = rows;
    call.width = static_cast<std::int64_t>(weight.size());
    return call;
  }
  [[nodiscard]] std::vector<float> run(Isa isa, int workers = 1) const {
    std::vector<float> y(x.size());
    BackwardParallel parallel(workers);
    layernorm(filled(x.data(), y.data()), isa, parallel);
    return y;
  }
};

NormProblem random_problem(std::int64_t rows, std::int64_t width, float range) {
  Values values(static_cast<std::uint64_t>(rows * 1000 + width));
  return {.rows = rows,
          .x = values.uniform(rows * width, range),
          .weight = values.uniform(width, 2.0F),
          .bias = values.uniform(width, 1.0F)};
}

void expect_everywhere(const NormProblem& problem, const std::vector<float>& expected) {
  for (const LayerNormVariant& variant : layernorm_variants()) {
    if (!isa_supported(variant.isa)) continue;
    EXPECT_EQ(bit_difference(problem.run(variant.isa), expected), "") << variant.name;
  }
}

TEST(LayerNorm, TakesOffTheMeanAndDividesByTheDeviation) {
  // Mean 4, differences -3 and 3, variance 9.
  expect_everywhere(
      {.x = {1.0F, 7.0F},
       .weight = {1.0F, 2.0F},
       .bias = {0.5F, -1.0F},
       .arguments = {.epsilon = 0.0F}},
      {std::fma(-3.0F * (1.0F / 3.0F), 1.0F, 0.5F), std::fma(3.0F * (1.0F / 3.0F), 2.0F, -1.0F)});
  // Epsilon is added to the variance: 9 + 7 = 16.
  expect_everywhere({.x = {1.0F, 7.0F},
                     .weight = {1.0F, 2.0F},
                     .bias = {0.5F, -1.0F},
                     .arguments = {.epsilon = 7.0F}},
                    {-0.25F, 0.5F});
}

TEST(LayerNorm, RoundsOnceAtTheEnd) {
  // Differences ±3 over a deviation of 4, times 3: ±2.25. With 2^-9 that is exact in f32, and in
  // bf16 (steps of 2^-6) ±2.25.
  NormProblem problem{.x = {1.0F, 7.0F},
                      .weight = {3.0F, 3.0F},
                      .bias = {0x1p-9F, 0x1p-9F},
                      .arguments = {.epsilon = 7.0F}};
  expect_everywhere(problem, {-2.25F + 0x1p-9F, 2.25F + 0x1p-9F});
  problem.arguments.output_dtype = Dtype::bf16;
  expect_everywhere(problem, {-2.25F, 2.25F});
}

TEST(LayerNorm, TheSumsFollowThePlan) {
  // One lane: 2^24 + 1 + 1 - 2^24 = 0. Two lanes: (2^24 + 1) + (1 - 2^24) = 1, mean 1/4, which the
  // two small numbers show. The weight undoes the scale of 2^-23.5 about.
  NormProblem problem{.x = {16777216.0F, 1.0F, 1.0F, -16777216.0F},
                      .weight = {0x1p24F, 0x1p24F, 0x1p24F, 0x1p24F},
                      .bias = {0.0F, 0.0F, 0.0F, 0.0F},
                      .arguments = {.epsilon = 0.0F}};
  const auto expected = [](float mean) {
    const std::array<float, 4> x = {16777216.0F, 1.0F, 1.0F, -16777216.0F};
    std::array<float, 4> d{};
    for (std::size_t i = 0; i < 4; ++i) d[i] = x[i] - mean;
    // Two squares of 2^48 swallow the small ones in any order.
    const float scale = 1.0F / std::sqrt(0x1p49F / 4.0F);
    std::vector<float> y;
    for (const float value : d) y.push_back(value * scale * 0x1p24F);
    return y;
  };
  problem.arguments.plan = {.lanes = 1};
  expect_everywhere(problem, expected(0.0F));
  problem.arguments.plan = {.lanes = 2};
  expect_everywhere(problem, expected(0.25F));
}

TEST(LayerNorm, ANanMakesItsRowNanAndNoOther) {
  NormProblem problem = random_problem(3, 20, 1.0F);
  problem.x[25] = std::numeric_limits<float>::quiet_NaN();
  for (const LayerNormVariant& variant : layernorm_variants()) {
    if (!isa_supported(variant.isa)) continue;
    const std::vector<float> y = problem.run(variant.isa);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 20 == 1) << i;
    EXPECT_EQ(bit_difference(y, problem.run(Isa::scalar)), "");
  }
}

TEST(LayerNorm, BitsAreTheScalarOnes) {
  const std::array plans = {
      ReductionPlan{},
      ReductionPlan{.lanes = 1},
      ReductionPlan{.lanes = 8, .lane_combine = LaneCombine::sequential},
      ReductionPlan{.lanes = 16, .split_k = 3},
      ReductionPlan{.lanes = 256, .split_k = 2, .split_combine = SplitCombine::tree},
      ReductionPlan{.split_k = 5, .split_combine = SplitCombine::arrival, .arrival_seed = 3},
      ReductionPlan{.split_k = 4, .accumulator = Accumulator::bf16},
      ReductionPlan{.accumulator = Accumulator::kahan},
      ReductionPlan{.split_k = 2, .accumulator = Accumulator::f64}};
  for (const std::int64_t width : {1, 7, 8, 17, 64, 100, 768}) {
    for (const ReductionPlan& plan : plans) {
      for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
        NormProblem problem = random_problem(5, width, 3.0F);
        problem.arguments.plan = plan;
        problem.arguments.output_dtype = dtype;
        const std::vector<float> expected = problem.run(Isa::scalar);
        for (const LayerNormVariant& variant : layernorm_variants()) {
          if (!isa_supported(variant.isa)) continue;
          EXPECT_EQ(bit_difference(problem.run(variant.isa, 4), expected), "")
              << variant.name << " width " << width << " " << to_string(plan);
        }
      }
    }
  }
}

TEST(LayerNorm, ARowOfABatchIsTheRowAloneAndMayReplaceItsInput) {
  const NormProblem batch = random_problem(50, 300, 1.0F);
  for (const LayerNormVariant& variant : layernorm_variants()) {
    if (!isa_supported(variant.isa)) continue;
    const std::vector<float> together = batch.run(variant.isa, 2);
    std::vector<float> both = batch.x;
    SerialParallel serial;
    variant.run(batch.filled(both.data(), both.data()), serial);
    EXPECT_EQ(bit_difference(both, together), "") << variant.name;
    for (std::ptrdiff_t row = 0; row < 50; ++row) {
      NormProblem alone = batch;
      alone.rows = 1;
      alone.x.assign(batch.x.begin() + row * 300, batch.x.begin() + (row + 1) * 300);
      const std::vector<float> expected(together.begin() + row * 300,
                                        together.begin() + (row + 1) * 300);
      EXPECT_EQ(bit_difference(alone.run(variant.isa), expected), "") << row;
    }
  }
}

// u = 2^-24, K = width, X the largest |x| and D the largest |d| of a row. The mean is off by
// (K + 1) u X at most, a difference by that and u more of itself: shift = (K + 3) u X. The variance
// is off by 2 D shift and by K u of itself; the root halves that, and division, epsilon, root and
// reciprocal round once each: relative = (K/2 + 4) u + D shift / variance. Two more roundings to y
// in f32 and one to its type; 1% covers the higher orders.
double bound_of(const NormProblem& problem, std::size_t row, std::size_t column, double exact) {
  const std::size_t width = problem.weight.size();
  const float* x = problem.x.data() + row * width;
  const auto k = static_cast<double>(width);
  double sum = 0.0, largest = 0.0, squares = 0.0, farthest = 0.0;
  for (std::size_t i = 0; i < width; ++i) {
    sum += double{x[i]};
    largest = std::max(largest, std::abs(double{x[i]}));
  }
  for (std::size_t i = 0; i < width; ++i) {
    const double d = double{x[i]} - sum / k;
    squares += d * d;
    farthest = std::max(farthest, std::abs(d));
  }
  const double u = unit_roundoff(Dtype::f32);
  const double variance = squares / k + double{problem.arguments.epsilon};
  const double shift = (k + 3) * u * largest;
  const double relative = (k / 2 + 4) * u + farthest * shift / variance;
  const double scaled = std::abs(double{problem.weight[column]}) / std::sqrt(variance);
  const double last = unit_roundoff(problem.arguments.output_dtype);
  return 1.01 * (scaled * (shift + farthest * (relative + 2 * u)) + (u + last) * std::abs(exact));
}

TEST(LayerNorm, StaysWithinTheBoundOfItsOrder) {
  for (const std::int64_t width : {3, 64, 768}) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      NormProblem problem = random_problem(6, width, 2.0F);
      problem.arguments.output_dtype = dtype;
      std::vector<double> exact(problem.x.size());
      layernorm_reference(problem.filled(problem.x.data(), nullptr), exact.data());
      const auto columns = static_cast<std::size_t>(width);
      for (const LayerNormVariant& variant : layernorm_variants()) {
        if (!isa_supported(variant.isa)) continue;
        const std::vector<float> y = problem.run(variant.isa);
        for (std::size_t i = 0; i < y.size(); ++i) {
          EXPECT_LE(std::abs(double{y[i]} - exact[i]),
                    bound_of(problem, i / columns, i % columns, exact[i]))
              << variant.name << " " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace driftscope::testing
