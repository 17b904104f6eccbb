// SPDX-License-Identifier: Apache-2.0
// What attention computes: cases worked out by hand, the f64 reference within a derived bound,
// and what each kind promises about its bits.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "attention_support.h"

namespace driftscope::testing {
namespace {

constexpr std::array kKinds = {AttentionKind::eager, AttentionKind::flash,
                               AttentionKind::split_kv_count, AttentionKind::split_kv_size};
constexpr float kTwo24 = 16777216.0F;  // 2^24 + 1 rounds to 2^24 in f32

std::vector<Isa> isas() {
  std::vector<Isa> result;
  for (const AttentionVariant& variant : attention_variants()) {
    if (isa_supported(variant.isa)) result.push_back(variant.isa);
  }
  return result;
}

// One query at the last of v.size() positions with q = 0: every score is 0, every weight equal.
AttentionProblem equal_weights(const std::vector<float>& v, AttentionKind kind) {
  const auto keys = static_cast<std::int64_t>(v.size());
  AttentionProblem problem({.rows = 1, .first_position = keys - 1, .head_dim = 1}, Dtype::f32, 1);
  problem.set_q({0.0F});
  problem.set_v(v);
  problem.arguments.kind = kind;
  return problem;
}

void expect_everywhere(const AttentionProblem& problem, const std::vector<float>& expected) {
  for (const Isa isa : isas()) EXPECT_EQ(problem.run(isa), expected) << isa_name(isa);
}

TEST(Attention, OneKeyGivesItsValue) {
  for (const AttentionKind kind : kKinds) {
    AttentionProblem problem({.rows = 1, .head_dim = 5}, Dtype::f32, 2);
    const std::vector<float> v = {1.0F, -0.3F, 7e-20F, 3e20F, 0.1F};
    problem.set_v(v);
    problem.arguments.kind = kind;
    expect_everywhere(problem, v);
  }
}

TEST(Attention, EqualScoresGiveTheMean) {
  for (const AttentionKind kind : kKinds) {
    expect_everywhere(equal_weights({1.0F, 2.0F, 5.0F, 8.0F}, kind), {4.0F});
  }
}

TEST(Attention, AFarLowerScoreWeighsExactlyNothing) {
  // exp(-200) is below half the least subnormal f32. With tiles of one key the first tile is
  // rescaled by exactly 0 when its score is the lower one.
  for (const AttentionKind kind : kKinds) {
    for (const std::int64_t tile : {1, 2}) {
      AttentionProblem problem({.rows = 1, .first_position = 1, .head_dim = 1}, Dtype::f32, 1);
      problem.arguments.kind = kind;
      problem.arguments.tile = tile;
      problem.set_q({1.0F});
      problem.set_v({3.0F, 5.0F});
      problem.set_k({-200.0F, 0.0F});
      expect_everywhere(problem, {5.0F});
      problem.set_k({0.0F, -200.0F});
      expect_everywhere(problem, {3.0F});
    }
  }
}

TEST(Attention, ValuesAreAddedInRisingOrderOfKeys) {
  // Rising: 2^24 + 1 = 2^24, + 1 = 2^24, - 2^24 = 0. The other order keeps both ones.
  expect_everywhere(equal_weights({kTwo24, 1.0F, 1.0F, -kTwo24}, AttentionKind::flash), {0.0F});
  expect_everywhere(equal_weights({kTwo24, -kTwo24, 1.0F, 1.0F}, AttentionKind::flash), {0.5F});
  // Eager weighs by 1/4, exact, so the same sums.
  expect_everywhere(equal_weights({kTwo24, 1.0F, 1.0F, -kTwo24}, AttentionKind::eager), {0.0F});
  expect_everywhere(equal_weights({kTwo24, -kTwo24, 1.0F, 1.0F}, AttentionKind::eager), {0.5F});
}

TEST(Attention, SplitsAreSummedApartAndMerged) {
  // (2^24 + 1 = 2^24) + (1 - 2^24 = -16777215) = 1, over a denominator of 4.
  AttentionProblem by_size =
      equal_weights({kTwo24, 1.0F, 1.0F, -kTwo24}, AttentionKind::split_kv_size);
  by_size.arguments.tile = 2;
  expect_everywhere(by_size, {0.25F});
  AttentionProblem by_count =
      equal_weights({kTwo24, 1.0F, 1.0F, -kTwo24}, AttentionKind::split_kv_count);
  by_count.arguments.splits = 2;
  expect_everywhere(by_count, {0.25F});
}

TEST(Attention, MergeOrderIsTheStatedOne) {
  // Splits of one key. Sequential: ((2^24 + 1) + 1) - 2^24 = 0.
  // Tree: (2^24 + 1) + (1 - 2^24) = 1.
  const std::vector<float> v = {kTwo24, 1.0F, 1.0F, -kTwo24};
  AttentionProblem problem = equal_weights(v, AttentionKind::split_kv_size);
  problem.arguments.tile = 1;
  expect_everywhere(problem, {0.0F});
  problem.arguments.split_combine = SplitCombine::tree;
  expect_everywhere(problem, {0.25F});
  problem.arguments.split_combine = SplitCombine::arrival;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    problem.arguments.sum_plan.arrival_seed = seed;
    const std::vector<int> order = arrival_order(seed, 4);
    float sum = v[static_cast<std::size_t>(order[0])];
    for (std::size_t i = 1; i < 4; ++i) sum += v[static_cast<std::size_t>(order[i])];
    expect_everywhere(problem, {sum / 4.0F});
  }
}

TEST(Attention, ScoresFollowTheirPlan) {
  // q·k of key 1: one lane gives ((2^24 + 1) + 1) - 2^24 = 0, two lanes or two chunks give
  // (2^24 + 1) + (1 - 2^24) = 1. With scale 200 that is a score equal to key 0's, or one that
  // leaves key 0 no weight.
  AttentionProblem problem({.rows = 1, .first_position = 1, .head_dim = 4}, Dtype::f32, 1);
  problem.arguments.scale = 200.0F;
  problem.set_q({1.0F, 1.0F, 1.0F, 1.0F});
  problem.set_k({0, 0, 0, 0, kTwo24, 1.0F, 1.0F, -kTwo24});
  problem.set_v({2, 2, 2, 2, 4, 4, 4, 4});
  for (const AttentionKind kind : kKinds) {
    problem.arguments.kind = kind;
    problem.arguments.score_plan = {.lanes = 1};
    expect_everywhere(problem, {3, 3, 3, 3});
    problem.arguments.score_plan = {.lanes = 1, .split_k = 2};
    expect_everywhere(problem, {4, 4, 4, 4});
    problem.arguments.score_plan = {.lanes = 2};
    expect_everywhere(problem, {4, 4, 4, 4});
  }
}

TEST(Attention, RoundingPointsOfEager) {
  // Two equal keys of three: probability 1/3, in bf16 0x3eab = 0.333984375. Three of them times 1
  // are 1.001953125 exactly; in bf16 (steps of 1/128) 1.
  AttentionProblem problem = equal_weights({1.0F, 1.0F, 1.0F}, AttentionKind::eager);
  problem.arguments.probability_dtype = Dtype::bf16;
  expect_everywhere(problem, {1.001953125F});
  problem.arguments.output_dtype = Dtype::bf16;
  expect_everywhere(problem, {1.0F});
  // Scores 256 and 257 in bf16 are both 256 (steps of 2, the tie to even): equal weights.
  AttentionProblem scored({.rows = 1, .first_position = 1, .head_dim = 1}, Dtype::f32, 1);
  scored.arguments.kind = AttentionKind::eager;
  scored.arguments.score_dtype = Dtype::bf16;
  scored.set_q({1.0F});
  scored.set_k({256.0F, 257.0F});
  scored.set_v({1.0F, 3.0F});
  expect_everywhere(scored, {2.0F});
}

TEST(Attention, ASlidingWindowSeesItsLastKeysOnly) {
  for (const AttentionKind kind : kKinds) {
    for (const auto combine :
         {SplitCombine::sequential, SplitCombine::tree, SplitCombine::arrival}) {
      AttentionProblem problem = equal_weights({1e30F, 1e30F, 1e30F, 2.0F, 4.0F}, kind);
      problem.arguments.window = 2;
      problem.arguments.split_combine = combine;
      for (const std::int64_t tile : {1, 2, 3, 64}) {
        problem.arguments.tile = tile;
        problem.arguments.splits = static_cast<int>(tile);
        expect_everywhere(problem, {3.0F});
      }
    }
  }
}

TEST(Attention, QueryHeadsReadTheHeadOfTheirGroup) {
  for (const AttentionKind kind : kKinds) {
    AttentionProblem problem({.rows = 1, .heads = 6, .kv_heads = 3, .head_dim = 1}, Dtype::f32, 3);
    problem.arguments.kind = kind;
    problem.set_v({10.0F, 20.0F, 30.0F});
    expect_everywhere(problem, {10.0F, 10.0F, 20.0F, 20.0F, 30.0F, 30.0F});
  }
}

TEST(Attention, ANanReachesTheQueriesThatSeeItAndNoOther) {
  for (const AttentionKind kind : kKinds) {
    AttentionProblem problem({.rows = 40, .head_dim = 2}, Dtype::f32, 4);
    std::vector<float> k = Values(5).uniform(80, 1.0F);
    k[2 * 17] = std::numeric_limits<float>::quiet_NaN();
    problem.set_k(k);
    problem.arguments.kind = kind;
    problem.arguments.tile = 8;
    for (const Isa isa : isas()) {
      const std::vector<float> y = problem.run(isa);
      for (std::size_t i = 0; i < y.size(); ++i) {
        EXPECT_EQ(std::isnan(y[i]), i >= 2 * 17) << isa_name(isa) << " element " << i;
      }
    }
  }
}

// Bound of |y - exact| for queries, keys and values in [-range, range].
// With u = 2^-24, n keys in T tiles or splits, d = head_dim, A = scale · d · range² >= abs(score):
//  - a score is a sum of d products and one multiplication: off by at most (d + 1) u A, plus
//    2 u_s A where it is stored in a 16-bit type twice;
//  - its weight exp(s - m): the difference is rounded (u · 2A), exp is within 1 ulp (2 u);
//  - each rescaling or merge multiplies by such an exp, with one rounding of its own:
//    T (2 u A + 3 u);
//  - a probability is rounded to u_p (eager).
//  Together the relative error of a weight is r = (d + 1) u A + 2 u_s A + (T + 1)(2 u A + 3 u) +
//  u_p. The sums of n weighted values and of n weights add n u each, the division u. y is a
//  weighted mean of values of size range, so abs(y - exact) <= (2 (r + n u) + u + u_y) range, to
//  first order; 1% covers the higher orders.
double error_bound(const AttentionProblem& problem, double range) {
  const AttentionArguments& arguments = problem.arguments;
  const AttentionShape& shape = problem.shape;
  const double u = unit_roundoff(Dtype::f32);
  const double n = static_cast<double>(shape.first_position + shape.rows);
  const double d = static_cast<double>(shape.head_dim);
  const bool eager = arguments.kind == AttentionKind::eager;
  const double tiles = eager ? 0.0
                       : arguments.kind == AttentionKind::split_kv_count
                           ? arguments.splits
                           : std::ceil(n / static_cast<double>(arguments.tile));
  const double score = std::abs(double{arguments.scale}) * d * range * range;
  double r = (d + 1) * u * score + (tiles + 1) * (2 * u * score + 3 * u);
  if (eager && arguments.score_dtype != Dtype::f32) {
    r += 2 * unit_roundoff(arguments.score_dtype) * score;
  }
  if (eager && arguments.probability_dtype != Dtype::f32) {
    r += unit_roundoff(arguments.probability_dtype);
  }
  const double rounding =
      arguments.output_dtype == Dtype::f32 ? 0.0 : unit_roundoff(arguments.output_dtype);
  return 1.01 * (2 * (r + n * u) + u + rounding) * range;
}

void expect_within_bound(const AttentionProblem& problem, double range) {
  const std::vector<double> exact = problem.reference();
  const double bound = error_bound(problem, range);
  for (const Isa isa : isas()) {
    const std::vector<float> y = problem.run(isa);
    double worst = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i) worst = std::max(worst, std::abs(y[i] - exact[i]));
    EXPECT_LE(worst, bound) << isa_name(isa);
  }
}

TEST(Attention, StaysWithinTheBoundOfItsOrder) {
  for (const AttentionKind kind : kKinds) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      AttentionProblem problem(
          {.rows = 9, .first_position = 150, .heads = 4, .kv_heads = 2, .head_dim = 48}, dtype, 6,
          1.5F);
      problem.arguments.kind = kind;
      problem.arguments.scale = 0.14F;
      problem.arguments.tile = 32;
      expect_within_bound(problem, 1.5);
      problem.arguments.softmax_dtype = Dtype::f64;
      expect_within_bound(problem, 1.5);
      problem.arguments.softmax_dtype = Dtype::f32;
      problem.arguments.score_dtype = Dtype::bf16;
      problem.arguments.probability_dtype = Dtype::bf16;
      problem.arguments.output_dtype = Dtype::bf16;
      expect_within_bound(problem, 1.5);
    }
  }
}

AttentionProblem ordinary(AttentionKind kind) {
  AttentionProblem problem(
      {.rows = 37, .first_position = 60, .heads = 4, .kv_heads = 2, .head_dim = 64}, Dtype::bf16,
      7);
  problem.arguments.kind = kind;
  problem.arguments.scale = 0.125F;
  problem.arguments.tile = 16;
  return problem;
}

// Negative control: the kinds are different orders, or nothing here tells them apart.
TEST(Attention, KindsDifferInBitsOnOrdinaryInputs) {
  for (const Isa isa : isas()) {
    for (const AttentionKind a : kKinds) {
      for (const AttentionKind b : kKinds) {
        if (a == b) continue;
        EXPECT_NE(bit_difference(ordinary(a).run(isa), ordinary(b).run(isa)), "");
      }
    }
  }
}

// With every key in one tile there is nothing to rescale and nothing to merge: flash and both
// splits are then one pass of maximum, weights and sums in rising order.
TEST(Attention, OneTileIsOneSplit) {
  AttentionProblem problem = ordinary(AttentionKind::flash);
  problem.arguments.tile = 97;
  for (const Isa isa : isas()) {
    problem.arguments.kind = AttentionKind::flash;
    const std::vector<float> flash = problem.run(isa);
    problem.arguments.kind = AttentionKind::split_kv_size;
    EXPECT_EQ(bit_difference(flash, problem.run(isa)), "");
    problem.arguments.kind = AttentionKind::split_kv_count;
    problem.arguments.splits = 1;
    EXPECT_EQ(bit_difference(flash, problem.run(isa)), "");
  }
}

// The rows of a problem computed in calls of `chunk` rows.
std::vector<float> run_in_chunks(const AttentionProblem& problem, Isa isa, std::int64_t chunk) {
  SerialParallel serial;
  std::vector<float> y;
  for (std::int64_t row = 0; row < problem.shape.rows; row += chunk) {
    const std::int64_t count = std::min(chunk, problem.shape.rows - row);
    const std::vector<float> part = problem.run_rows(isa, row, count, serial);
    y.insert(y.end(), part.begin(), part.end());
  }
  return y;
}

TEST(Attention, ChunkingChangesOnlyKindsThatSaySo) {
  for (const Isa isa : isas()) {
    for (const AttentionKind kind : kKinds) {
      for (const std::int64_t chunk : {1, 5, 20}) {
        const AttentionProblem problem = ordinary(kind);
        const std::string difference =
            bit_difference(problem.run(isa), run_in_chunks(problem, isa, chunk));
        EXPECT_EQ(difference.empty(), attention_is_batch_invariant(kind)) << difference;
      }
    }
  }
}

TEST(Attention, ChunkingMovesTheBoundariesOfAFixedSplitCount) {
  // Query 3 of {2^24, 1, 1, -2^24}. Alone: 4 keys in 4 splits, ((2^24 + 1) + 1) - 2^24 = 0. In a
  // call that goes on to key 7, splits of 2 keys: (2^24 + 1) + (1 - 2^24) = 1.
  AttentionProblem problem({.rows = 8, .head_dim = 1}, Dtype::f32, 1);
  problem.arguments.kind = AttentionKind::split_kv_count;
  problem.arguments.splits = 4;
  problem.set_q(std::vector<float>(8, 0.0F));
  problem.set_v({kTwo24, 1.0F, 1.0F, -kTwo24, 0.0F, 0.0F, 0.0F, 0.0F});
  SerialParallel serial;
  for (const Isa isa : isas()) {
    EXPECT_EQ(problem.run_rows(isa, 3, 1, serial).front(), 0.0F);
    EXPECT_EQ(problem.run(isa)[3], 0.25F);
  }
}

TEST(Attention, SequencesOfABatchDoNotTouchEachOther) {
  const AttentionProblem first({.rows = 3, .first_position = 50, .heads = 2, .head_dim = 16},
                               Dtype::f32, 8);
  const AttentionProblem second({.rows = 20, .first_position = 0, .heads = 2, .head_dim = 16},
                                Dtype::f32, 9);
  std::vector<float> y1(first.q.size());
  std::vector<float> y2(second.q.size());
  const std::array sequences = {AttentionSequence{.q = first.q.data(),
                                                  .q_stride = 32,
                                                  .k = first.k.data(),
                                                  .v = first.v.data(),
                                                  .rows = 3,
                                                  .first_position = 50,
                                                  .y = y1.data()},
                                AttentionSequence{},
                                AttentionSequence{.q = second.q.data(),
                                                  .q_stride = 32,
                                                  .k = second.k.data(),
                                                  .v = second.v.data(),
                                                  .rows = 20,
                                                  .first_position = 0,
                                                  .y = y2.data()}};
  for (const Isa isa : isas()) {
    AttentionArguments call = first.arguments;
    call.sequences = sequences;
    BackwardParallel parallel(3);
    attention(call, isa, parallel);
    EXPECT_EQ(bit_difference(y1, first.run(isa)), "");
    EXPECT_EQ(bit_difference(y2, second.run(isa)), "");
  }
}

}  // namespace
}  // namespace driftscope::testing
