// SPDX-License-Identifier: Apache-2.0
// Soft-capped scores and attention sinks.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "attention_support.h"

namespace driftscope::testing {
namespace {

constexpr std::array kKinds = {AttentionKind::eager, AttentionKind::flash,
                               AttentionKind::split_kv_count, AttentionKind::split_kv_size};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<Isa> isas() {
  std::vector<Isa> result;
  for (const AttentionVariant& variant : attention_variants()) {
    if (isa_supported(variant.isa)) result.push_back(variant.isa);
  }
  return result;
}

class AttentionCapSink : public ::testing::TestWithParam<AttentionKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, AttentionCapSink, ::testing::ValuesIn(kKinds));

// Two keys with scores 1e6 and 2e6, or any others: far beyond the cap they are one score.
TEST_P(AttentionCapSink, ACapMakesFarScoresEqual) {
  AttentionProblem problem({.rows = 1, .first_position = 1, .head_dim = 1}, Dtype::f32, 1);
  problem.arguments.kind = GetParam();
  problem.set_q({1.0F});
  problem.set_k({1e6F, 2e6F});
  problem.set_v({3.0F, 5.0F});
  for (const Isa isa : isas()) {
    problem.arguments.softcap = 0.0F;
    EXPECT_EQ(problem.run(isa), std::vector<float>{5.0F});
    problem.arguments.softcap = 50.0F;
    EXPECT_EQ(problem.run(isa), std::vector<float>{4.0F});
  }
}

// Scores 3 · 1/2 and 0 under a cap of 2; the value is the first key's weight.
TEST_P(AttentionCapSink, TheCapIsAppliedAfterTheScale) {
  AttentionProblem problem({.rows = 1, .first_position = 1, .head_dim = 1}, Dtype::f32, 1);
  problem.arguments.kind = GetParam();
  problem.arguments.scale = 0.5F;
  problem.arguments.softcap = 2.0F;
  problem.set_q({1.0F});
  problem.set_k({3.0F, 0.0F});
  problem.set_v({1.0F, 0.0F});
  const double score = 2.0 * std::tanh(1.5 / 2.0);
  for (const Isa isa : isas()) {
    EXPECT_NEAR(problem.run(isa)[0], 1.0 / (1.0 + std::exp(-score)), 4e-7) << isa_name(isa);
  }
}

TEST_P(AttentionCapSink, ASinkOfTheSameScoreTakesHalf) {
  // One key; a sink equal to its score takes half of the weight, and adds nothing to the sum.
  AttentionProblem problem({.rows = 1, .heads = 2, .kv_heads = 1, .head_dim = 1}, Dtype::f32, 1);
  problem.arguments.kind = GetParam();
  problem.set_q({1.0F, 1.0F});
  problem.set_k({0.25F});
  problem.set_v({6.0F});
  const std::vector<float> sinks = {0.25F, -kInfinity};  // of each head its own
  problem.arguments.sinks = sinks.data();
  for (const Isa isa : isas()) {
    EXPECT_EQ(problem.run(isa), (std::vector<float>{3.0F, 6.0F})) << isa_name(isa);
  }
  const std::vector<float> great = {500.0F, 0.25F};
  problem.arguments.sinks = great.data();
  for (const Isa isa : isas()) {
    EXPECT_EQ(problem.run(isa), (std::vector<float>{0.0F, 3.0F})) << isa_name(isa);
  }
}

TEST_P(AttentionCapSink, ASinkOfMinusInfinityChangesNothing) {
  AttentionProblem problem(
      {.rows = 9, .first_position = 60, .heads = 4, .kv_heads = 2, .head_dim = 24}, Dtype::f32, 3,
      2.0F);
  problem.arguments.kind = GetParam();
  problem.arguments.tile = 16;
  // In eager the sink is one term more of the softmax's sum; one lane makes it the last.
  problem.arguments.sum_plan.lanes = 1;
  const std::vector<float> sinks(4, -kInfinity);
  for (const Isa isa : isas()) {
    problem.arguments.sinks = nullptr;
    const std::vector<float> without = problem.run(isa);
    problem.arguments.sinks = sinks.data();
    EXPECT_EQ(bit_difference(problem.run(isa), without), "") << isa_name(isa);
  }
}

// bf16 scores 3.5 and a sink of 3.5078125 (a tie to even: 3.515625 or 3.5): the sink enters
// rounded, 3.5, and takes half; unrounded it takes more.
TEST(AttentionSink, EagerRoundsTheSinkAsItsScores) {
  AttentionProblem problem({.rows = 1, .head_dim = 1}, Dtype::f32, 1);
  problem.arguments.kind = AttentionKind::eager;
  problem.set_q({1.0F});
  problem.set_k({3.5F});
  problem.set_v({2.0F});
  const std::vector<float> sink = {3.5078125F};
  problem.arguments.sinks = sink.data();
  for (const Isa isa : isas()) {
    problem.arguments.score_dtype = Dtype::bf16;
    EXPECT_EQ(problem.run(isa), std::vector<float>{1.0F}) << isa_name(isa);
    problem.arguments.score_dtype = Dtype::f32;
    EXPECT_LT(problem.run(isa)[0], 1.0F) << isa_name(isa);
  }
}

// 2^-8 - 2.03125 = -2.02734375 lies between the bf16 values (steps of 2^-6) -2.015625 and -2.03125,
// nearer to the second.
TEST(AttentionSink, EagerRoundsTheDifferencesToTheScoresType) {
  AttentionProblem problem({.rows = 1, .head_dim = 1}, Dtype::f32, 1);
  problem.arguments.kind = AttentionKind::eager;
  problem.arguments.score_dtype = Dtype::bf16;
  problem.set_q({1.0F});
  problem.set_k({0.00390625F});
  problem.set_v({1.0F});
  const std::vector<float> sink = {2.03125F};
  problem.arguments.sinks = sink.data();
  const double e = std::exp(-2.03125);
  for (const Isa isa : isas()) {
    EXPECT_NEAR(problem.run(isa)[0], e / (e + 1.0), 1e-7) << isa_name(isa);
  }
}

// Softmax weights move by at most twice the largest error of a score; with u = 2^-24, D = head_dim,
// N = visible keys + sink, S = the largest |q·k| · scale taken over sums of absolute terms and V
// the largest |v|: a score is off by (D + 2) u S, under a cap by u (S + 4 cap) more (quotient, tanh
// within 2 ulp, product); exponentials, sums, factors and quotient add fewer than 3 N + 16
// roundings.
TEST_P(AttentionCapSink, StaysWithinItsBound) {
  const AttentionShape shape{
      .rows = 11, .first_position = 40, .heads = 4, .kv_heads = 2, .head_dim = 24};
  const std::vector<float> sinks = {0.5F, 3.0F, -2.0F, 12.0F};
  for (const float cap : {0.0F, 3.0F}) {
    for (const std::int64_t window : {0, 6}) {
      for (const SplitCombine combine :
           {SplitCombine::sequential, SplitCombine::tree, SplitCombine::arrival}) {
        AttentionProblem problem(shape, Dtype::f32, 29, 2.0F);
        problem.arguments.kind = GetParam();
        problem.arguments.tile = 8;
        problem.arguments.splits = 5;
        problem.arguments.scale = 0.2F;
        problem.arguments.softcap = cap;
        problem.arguments.window = window;
        problem.arguments.split_combine = combine;
        problem.arguments.sinks = sinks.data();
        const double u = unit_roundoff(Dtype::f32);
        const double score = 24 * 2.0 * 2.0 * 0.2;
        const double of_score = (26 * score + (cap > 0 ? score + 4.0 * double{cap} : 0.0)) * u;
        const double bound = 1.01 * 2.0 * (2 * of_score + (3 * 52 + 16) * u);
        const std::vector<double> exact = problem.reference();
        for (const Isa isa : isas()) {
          const std::vector<float> y = problem.run(isa);
          for (std::size_t i = 0; i < y.size(); ++i) {
            EXPECT_LE(std::abs(double{y[i]} - exact[i]), bound) << isa_name(isa) << " " << i;
          }
        }
        // The reference knows both: taking one away moves it far beyond the bound.
        problem.arguments.sinks = nullptr;
        const std::vector<double> without = problem.reference();
        double moved = 0.0;
        for (std::size_t i = 0; i < exact.size(); ++i) {
          moved = std::max(moved, std::abs(without[i] - exact[i]));
        }
        EXPECT_GT(moved, 100 * bound);
      }
    }
  }
}

TEST_P(AttentionCapSink, BitsAreTheScalarOnes) {
  const AttentionShape shape{
      .rows = 9, .first_position = 37, .heads = 4, .kv_heads = 2, .head_dim = 20};
  const std::vector<float> sinks = {0.5F, 3.0F, -2.0F, 12.0F};
  for (const Dtype softmax : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
    for (const Dtype other : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
      for (const SplitCombine combine :
           {SplitCombine::sequential, SplitCombine::tree, SplitCombine::arrival}) {
        for (const Accumulator accumulator : {Accumulator::f32, Accumulator::f64}) {
          for (const std::int64_t window : {0, 1, 33}) {
            AttentionProblem problem(shape, KvDtype::f32, 31, 3.0F);
            problem.arguments.kind = GetParam();
            problem.arguments.tile = 10;
            problem.arguments.splits = 5;
            problem.arguments.window = window;
            problem.arguments.softcap = 3.0F;
            problem.arguments.sinks = sinks.data();
            problem.arguments.split_combine = combine;
            problem.arguments.score_plan = {.lanes = 8, .accumulator = accumulator};
            problem.arguments.softmax_dtype = softmax;
            problem.arguments.score_dtype = other;
            problem.arguments.probability_dtype = other;
            problem.arguments.output_dtype = other;
            const std::vector<float> expected = problem.run(Isa::scalar);
            for (const Isa isa : isas()) {
              BackwardParallel many(3);
              EXPECT_EQ(bit_difference(expected, problem.run_rows(isa, 0, shape.rows, many)), "")
                  << isa_name(isa) << " softmax " << dtype_name(softmax) << " window " << window;
            }
          }
        }
      }
    }
  }
}

TEST_P(AttentionCapSink, BitsAreTheScalarOnesForEveryCacheType) {
  const AttentionShape shape{
      .rows = 5, .first_position = 44, .heads = 4, .kv_heads = 2, .head_dim = 32};
  const std::vector<float> sinks = {0.5F, 3.0F, -2.0F, 1.0F};
  for (const KvDtype dtype : {KvDtype::f16, KvDtype::bf16, KvDtype::fp8_e4m3, KvDtype::int8}) {
    AttentionProblem problem(shape, dtype, 41, 2.0F);
    problem.arguments.kind = GetParam();
    problem.arguments.softcap = 4.0F;
    problem.arguments.sinks = sinks.data();
    const std::vector<float> expected = problem.run(Isa::scalar);
    for (const Isa isa : isas()) {
      EXPECT_EQ(bit_difference(expected, problem.run(isa)), "") << isa_name(isa);
    }
  }
}

// A query alone has the bits that it has in its prompt, for the kinds that promise it.
TEST_P(AttentionCapSink, RowsDoNotDependOnTheCall) {
  if (!attention_is_batch_invariant(GetParam())) GTEST_SKIP() << "splits move with the call";
  AttentionProblem problem(
      {.rows = 40, .first_position = 0, .heads = 4, .kv_heads = 2, .head_dim = 24}, Dtype::f32, 37,
      2.0F);
  const std::vector<float> sinks = {0.5F, 3.0F, -2.0F, 1.0F};
  problem.arguments.kind = GetParam();
  problem.arguments.tile = 16;
  problem.arguments.softcap = 5.0F;
  problem.arguments.sinks = sinks.data();
  SerialParallel serial;
  for (const Isa isa : isas()) {
    const std::vector<float> all = problem.run(isa);
    for (std::int64_t row = 0; row < 40; row += 13) {
      const std::vector<float> wanted(all.begin() + row * 96, all.begin() + (row + 1) * 96);
      EXPECT_EQ(bit_difference(problem.run_rows(isa, row, 1, serial), wanted), "") << row;
    }
  }
}

}  // namespace
}  // namespace driftscope::testing
