// SPDX-License-Identifier: Apache-2.0
// Every variant gives the bits of the scalar definition.
#include <array>
#include <limits>

#include "attention_support.h"

namespace driftscope::testing {
namespace {

constexpr std::array kKinds = {AttentionKind::eager, AttentionKind::flash,
                               AttentionKind::split_kv_count, AttentionKind::split_kv_size};
constexpr std::array kCombines = {SplitCombine::sequential, SplitCombine::tree,
                                  SplitCombine::arrival};

// Compares every variant with the scalar one; two ways of cutting the work for each.
void expect_same_bits(const AttentionProblem& problem, const std::string& what) {
  const std::vector<float> expected = problem.run(Isa::scalar);
  for (const AttentionVariant& variant : attention_variants()) {
    if (!variant.portable || !isa_supported(variant.isa)) continue;
    EXPECT_EQ(bit_difference(expected, problem.run(variant.isa)), "") << variant.name << what;
    BackwardParallel many(7);
    EXPECT_EQ(bit_difference(expected, problem.run_rows(variant.isa, 0, problem.shape.rows, many)),
              "")
        << variant.name << " on 7 workers" << what;
  }
}

class AttentionKindBits : public ::testing::TestWithParam<AttentionKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, AttentionKindBits, ::testing::ValuesIn(kKinds));

TEST_P(AttentionKindBits, AreTheScalarOnesForOddShapes) {
  constexpr std::array<AttentionShape, 7> kShapes = {{
      {.rows = 1, .first_position = 0, .heads = 1, .kv_heads = 1, .head_dim = 1},
      {.rows = 5, .first_position = 0, .heads = 2, .kv_heads = 1, .head_dim = 7},
      {.rows = 33, .first_position = 2, .heads = 3, .kv_heads = 3, .head_dim = 20},
      {.rows = 1, .first_position = 130, .heads = 14, .kv_heads = 2, .head_dim = 64},
      {.rows = 70, .first_position = 31, .heads = 7, .kv_heads = 1, .head_dim = 64},
      {.rows = 6, .first_position = 64, .heads = 4, .kv_heads = 2, .head_dim = 128},
      {.rows = 3, .first_position = 40, .heads = 2, .kv_heads = 2, .head_dim = 80},
  }};
  for (const AttentionShape& shape : kShapes) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
      AttentionProblem problem(shape, dtype, 11, 2.0F);
      problem.arguments.kind = GetParam();
      problem.arguments.tile = 48;
      problem.arguments.output_dtype = dtype;
      expect_same_bits(problem, " head_dim " + std::to_string(shape.head_dim) + " kv " +
                                    std::string(dtype_name(dtype)));
    }
  }
}

// The scores are the same code for every kind, so one kind is enough here.
void expect_same_bits_under(const ReductionPlan& plan) {
  AttentionProblem problem(
      {.rows = 3, .first_position = 30, .heads = 3, .kv_heads = 1, .head_dim = 72}, Dtype::bf16,
      12);
  problem.arguments.tile = 16;
  problem.arguments.score_plan = plan;
  expect_same_bits(problem, " " + to_string(plan));
}

TEST(AttentionBits, AreTheScalarOnesForEveryScorePlan) {
  for (const int lanes : {1, 2, 8, 16, 32, 64, 128}) {
    for (const auto lane_combine : {LaneCombine::butterfly, LaneCombine::sequential}) {
      expect_same_bits_under({.lanes = lanes, .lane_combine = lane_combine});
      for (const SplitCombine combine : kCombines) {
        for (const Accumulator accumulator :
             {Accumulator::f32, Accumulator::f64, Accumulator::kahan, Accumulator::bf16}) {
          expect_same_bits_under({.lanes = lanes,
                                  .split_k = 5,
                                  .lane_combine = lane_combine,
                                  .split_combine = combine,
                                  .accumulator = accumulator,
                                  .arrival_seed = 5});
        }
      }
    }
  }
  // More lanes and more splits than elements: padding and empty chunks.
  expect_same_bits_under({.lanes = 1024});
  expect_same_bits_under({.lanes = 2, .split_k = 80, .split_combine = SplitCombine::tree});
}

TEST_P(AttentionKindBits, DoNotDependOnThreads) {
  AttentionProblem problem(
      {.rows = 90, .first_position = 11, .heads = 14, .kv_heads = 2, .head_dim = 64}, Dtype::bf16,
      18);
  problem.arguments.kind = GetParam();
  problem.arguments.split_combine = SplitCombine::tree;
  const std::vector<float> expected = problem.run(detect_isa());
  for (const int workers : {2, 5}) {
    ThreadedParallel threads(workers);
    for (int repeat = 0; repeat < 3; ++repeat) {
      EXPECT_EQ(bit_difference(expected, problem.run_rows(detect_isa(), 0, 90, threads)), "");
      EXPECT_EQ(bit_difference(problem.run_rows(detect_isa(), 89, 1, threads),
                               problem.run_rows(detect_isa(), 89, 1, threads)),
                "");
    }
  }
}

TEST_P(AttentionKindBits, AreTheScalarOnesForEveryRoundingPoint) {
  const AttentionShape shape{
      .rows = 19, .first_position = 50, .heads = 4, .kv_heads = 2, .head_dim = 32};
  for (const Dtype softmax : {Dtype::f32, Dtype::f64, Dtype::f16, Dtype::bf16}) {
    for (const Dtype other : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
      for (const SplitCombine combine : kCombines) {
        AttentionProblem problem(shape, Dtype::f32, 13, 3.0F);
        problem.arguments.kind = GetParam();
        problem.arguments.tile = 7;
        problem.arguments.splits = 5;
        problem.arguments.scale = 0.3F;
        problem.arguments.split_combine = combine;
        problem.arguments.sum_plan = {.lanes = 8, .split_k = 2, .arrival_seed = 21};
        problem.arguments.softmax_dtype = softmax;
        problem.arguments.score_dtype = other;
        problem.arguments.probability_dtype = other;
        problem.arguments.output_dtype = other;
        expect_same_bits(problem, " softmax " + std::string(dtype_name(softmax)) + " other " +
                                      std::string(dtype_name(other)) + " " +
                                      std::string(name_of(combine)));
      }
    }
  }
}

TEST_P(AttentionKindBits, AreTheScalarOnesUnderEveryWindow) {
  const AttentionShape shape{
      .rows = 40, .first_position = 37, .heads = 3, .kv_heads = 1, .head_dim = 24};
  for (const std::int64_t window : {1, 2, 5, 31, 32, 33, 76, 77, 1000}) {
    for (const SplitCombine combine : kCombines) {
      AttentionProblem problem(shape, Dtype::f16, 14);
      problem.arguments.kind = GetParam();
      problem.arguments.window = window;
      problem.arguments.tile = 10;
      problem.arguments.splits = 9;
      problem.arguments.split_combine = combine;
      expect_same_bits(problem, " window " + std::to_string(window));
    }
  }
}

TEST_P(AttentionKindBits, AreTheScalarOnesWithNanAndInfinity) {
  const AttentionShape shape{
      .rows = 12, .first_position = 20, .heads = 2, .kv_heads = 1, .head_dim = 16};
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    AttentionProblem problem(shape, Dtype::f32, 15);
    problem.arguments.kind = GetParam();
    problem.arguments.tile = 8;
    std::vector<float> k = Values(16).uniform(32 * 16, 1.0F);
    std::vector<float> v = Values(17).uniform(32 * 16, 1.0F);
    k[25 * 16 + 3] = bad;
    v[28 * 16 + 5] = bad;
    problem.set_k(k);
    problem.set_v(v);
    expect_same_bits(problem, " with " + std::to_string(bad));
  }
}

}  // namespace
}  // namespace driftscope::testing
