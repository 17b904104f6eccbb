// SPDX-License-Identifier: Apache-2.0
// Sums small enough to follow by hand, chosen so that every other order gives another result.
#include "kernels/plan/reduction_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/plan/plan_policy.h"

namespace driftscope {
namespace {

constexpr float kBig = 0x1p+24F;  // kBig + 1 is a tie and rounds back to kBig; kBig + 2 is exact

float sum(const ReductionPlan& plan, const std::vector<float>& terms) {
  return reduce_sum(plan, terms.data(), static_cast<std::int64_t>(terms.size()));
}
std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST(ReductionPlan, OneLaneAddsInRisingOrder) {
  EXPECT_EQ(sum({.lanes = 1}, {kBig, 1, 1}), kBig);  // each 1 is lost
  EXPECT_EQ(sum({.lanes = 1}, {1, 1, kBig}), kBig + 2);
}

TEST(ReductionPlan, ElementKBelongsToLaneKModL) {
  // Lane 0: kBig, -kBig; lane 1: 1, 1. Any other assignment loses a 1.
  EXPECT_EQ(sum({.lanes = 2}, {kBig, 1, -kBig, 1}), 2.0F);
  EXPECT_EQ(sum({.lanes = 1}, {kBig, 1, -kBig, 1}), 1.0F);
}

TEST(ReductionPlan, ButterflyAddsTheFarHalfFirst) {
  // Lanes kBig, 1, 1, 1: butterfly (kBig + 1) + (1 + 1) = kBig + 2; sequential loses every 1.
  EXPECT_EQ(sum({.lanes = 4}, {kBig, 1, 1, 1}), kBig + 2);
  EXPECT_EQ(sum({.lanes = 4, .lane_combine = LaneCombine::sequential}, {kBig, 1, 1, 1}), kBig);
  // Lanes kBig, 1, -kBig, 1: distance 2 cancels kBig before anything is lost.
  EXPECT_EQ(sum({.lanes = 4}, {kBig, 1, -kBig, 1}), 2.0F);
  EXPECT_EQ(sum({.lanes = 4, .lane_combine = LaneCombine::sequential}, {kBig, 1, -kBig, 1}), 1.0F);
}

TEST(ReductionPlan, ChunksAreContiguousAndTheLastMayBeShort) {
  // ceil(5 / 2) = 3: chunks {kBig, -kBig, 1} and {1, 1}.
  EXPECT_EQ(sum({.lanes = 1, .split_k = 2}, {kBig, -kBig, 1, 1, 1}), 3.0F);
  // ceil(4 / 3) = 2: chunks {kBig, 1}, {1, 1} and an empty one.
  EXPECT_EQ(sum({.lanes = 1, .split_k = 3}, {kBig, 1, 1, 1}), kBig + 2);
}

TEST(ReductionPlan, SplitCombinesDiffer) {
  // One term a chunk. Sequential: ((kBig + 1) + 1) + 1; tree: (kBig + 1) + (1 + 1).
  const std::vector<float> terms = {kBig, 1, 1, 1};
  EXPECT_EQ(sum({.lanes = 1, .split_k = 4}, terms), kBig);
  EXPECT_EQ(sum({.lanes = 1, .split_k = 4, .split_combine = SplitCombine::tree}, terms), kBig + 2);
  // Five chunks: the tree joins chunk 4 last: ((1 + 1) + (1 + 1)) + kBig.
  EXPECT_EQ(
      sum({.lanes = 1, .split_k = 5, .split_combine = SplitCombine::tree}, {1, 1, 1, 1, kBig}),
      kBig + 4);
}

TEST(ReductionPlan, ArrivalFollowsTheSeededPermutation) {
  const std::vector<float> terms = {kBig, 1, -kBig, 1, 3, -2};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    float expected = 0.0F;
    const std::vector<int> order = arrival_order(seed, 6);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const float term = terms[static_cast<std::size_t>(order[i])];
      expected = i == 0 ? term : expected + term;
    }
    EXPECT_EQ(sum({.lanes = 1,
                   .split_k = 6,
                   .split_combine = SplitCombine::arrival,
                   .arrival_seed = seed},
                  terms),
              expected);
  }
}

TEST(ReductionPlan, ArrivalOrderIsAPermutationAndAFunctionOfTheSeed) {
  for (const int count : {1, 2, 7, 64}) {
    std::vector<int> order = arrival_order(3, count);
    EXPECT_EQ(order, arrival_order(3, count));
    std::sort(order.begin(), order.end());
    std::vector<int> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
  EXPECT_NE(arrival_order(1, 64), arrival_order(2, 64));
  // Fisher-Yates on splitmix64(seed 0), whose first output is 0xe220a8397b1dcdaf (odd): with two
  // elements, index 1 is swapped with 1, so nothing moves.
  EXPECT_EQ(arrival_order(0, 2), (std::vector<int>{0, 1}));
}

TEST(ReductionPlan, F64RoundsOnceAtTheEnd) {
  EXPECT_EQ(sum({.lanes = 1, .accumulator = Accumulator::f64}, {kBig, 1, 1, 1}), kBig + 4);
  // kBig + 3 is a tie in f32 between kBig + 2 and kBig + 4: to even, kBig + 4.
  EXPECT_EQ(sum({.lanes = 2, .split_k = 2, .accumulator = Accumulator::f64}, {kBig, 1, -kBig, 1}),
            2.0F);
}

TEST(ReductionPlan, KahanKeepsWhatPlainSumsLose) {
  // (kBig, 0); +1: y = 1, t = kBig, c = -1; +1: y = 1 + 1 = 2, t = kBig + 2, c = 0.
  EXPECT_EQ(sum({.lanes = 1, .accumulator = Accumulator::kahan}, {kBig, 1, 1}), kBig + 2);
  // Two lanes (kBig, c = 0) and (1, 0): y = 1, t = kBig, c = -1; the result kBig - (-1) = kBig.
  EXPECT_EQ(sum({.lanes = 2, .accumulator = Accumulator::kahan}, {kBig, 1}), kBig);
  // Three chunks of one: (kBig, -1) after the second; y = 1 - (-1 + 0) = 2: kBig + 2.
  EXPECT_EQ(sum({.lanes = 1, .split_k = 3, .accumulator = Accumulator::kahan}, {kBig, 1, 1}),
            kBig + 2);
}

TEST(ReductionPlan, SixteenBitAccumulatorsRoundChunksAndTheirSums) {
  // bf16 holds 8 bits: inside a chunk f32 (256 + 1 = 257), then 257 is a tie: to even, 256.
  EXPECT_EQ(sum({.lanes = 1, .accumulator = Accumulator::bf16}, {256, 1}), 256.0F);
  // 259 lies between 258 and 260, a tie: to even, 260.
  EXPECT_EQ(sum({.lanes = 1, .accumulator = Accumulator::bf16}, {256, 1, 1, 1}), 260.0F);
  // Split in two: {256, 1} gives 256, {1, 1} gives 2, their sum 258 is exact.
  EXPECT_EQ(sum({.lanes = 1, .split_k = 2, .accumulator = Accumulator::bf16}, {256, 1, 1, 1}),
            258.0F);
  // Four chunks in turn: 256, 257 -> 256, 256, 256. As a tree: 256 + 2.
  EXPECT_EQ(sum({.lanes = 1, .split_k = 4, .accumulator = Accumulator::bf16}, {256, 1, 1, 1}),
            256.0F);
  EXPECT_EQ(sum({.lanes = 1,
                 .split_k = 4,
                 .split_combine = SplitCombine::tree,
                 .accumulator = Accumulator::bf16},
                {256, 1, 1, 1}),
            258.0F);
  // f16 holds 11 bits and overflows at 65520.
  EXPECT_EQ(sum({.lanes = 1, .accumulator = Accumulator::f16}, {2048, 1}), 2048.0F);
  EXPECT_EQ(sum({.lanes = 1, .accumulator = Accumulator::f16}, {65504, 16}),
            std::numeric_limits<float>::infinity());
}

TEST(ReductionPlan, ProductsAreFused) {
  // x·x = 1 + 2^-11 + 2^-24: the last bit is lost by a rounded product, kept by a fused one.
  const float x = 1.0F + 0x1p-12F;
  const float terms_x[2] = {-1.0F - 0x1p-11F, x};
  const float terms_w[2] = {1.0F, x};
  EXPECT_EQ(reduce_dot({.lanes = 1}, terms_x, terms_w, 2), 0x1p-24F);
}

TEST(ReductionPlan, SignsOfZero) {
  // Lanes start at +0, so -0 terms give +0; so does a sum of nothing.
  EXPECT_EQ(bits(sum({.lanes = 1}, {-0.0F, -0.0F})), bits(0.0F));
  EXPECT_EQ(bits(sum({.lanes = 4}, {})), bits(0.0F));
  // A product that underflows to -0 stays -0 in a full step and is +0 once padding is added.
  const float x[1] = {-0x1p-100F};
  const float w[1] = {0x1p-100F};
  EXPECT_EQ(bits(reduce_dot({.lanes = 1}, x, w, 1)), bits(-0.0F));
  const float x3[3] = {-0x1p-100F, -0x1p-100F, -0x1p-100F};
  const float w3[3] = {0x1p-100F, 0x1p-100F, 0x1p-100F};
  EXPECT_EQ(bits(reduce_dot({.lanes = 2}, x3, w3, 3)), bits(0.0F));
}

TEST(ReductionPlan, FewerTermsThanLanes) {
  EXPECT_EQ(sum({.lanes = 1024}, {1, 2, 3}), 6.0F);
  EXPECT_EQ(sum({.lanes = 32, .split_k = 8}, {1, 2, 3}), 6.0F);
  EXPECT_EQ(sum({.lanes = 64, .lane_combine = LaneCombine::sequential}, {5}), 5.0F);
}

TEST(ReductionPlan, NanIsCanonical) {
  const float nan = std::bit_cast<float>(0xffc12345U);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Accumulator accumulator :
       {Accumulator::f32, Accumulator::f64, Accumulator::kahan, Accumulator::bf16}) {
    EXPECT_EQ(bits(sum({.lanes = 2, .accumulator = accumulator}, {1, nan, 2})), 0x7fc00000U);
    EXPECT_EQ(bits(sum({.lanes = 1, .accumulator = accumulator}, {infinity, -infinity})),
              0x7fc00000U);
  }
}

TEST(ReductionPlan, PiecesAgreeWithTheWhole) {
  std::vector<float> terms = {kBig, 1, -kBig, 1, 3, -2, 7, 0.5F};
  for (const LaneCombine combine : {LaneCombine::butterfly, LaneCombine::sequential}) {
    std::vector<float> lanes = terms;
    EXPECT_EQ(combine_lanes(combine, lanes.data(), 8),
              sum({.lanes = 8, .lane_combine = combine}, terms));
  }
  for (const SplitCombine combine :
       {SplitCombine::sequential, SplitCombine::tree, SplitCombine::arrival}) {
    for (const Accumulator accumulator : {Accumulator::f32, Accumulator::bf16, Accumulator::f16}) {
      const ReductionPlan plan{.lanes = 1,
                               .split_k = 8,
                               .split_combine = combine,
                               .accumulator = accumulator,
                               .arrival_seed = 4};
      std::vector<float> chunks = terms;
      const std::vector<int> order = arrival_order(4, 8);
      EXPECT_EQ(bits(combine_chunks(plan, chunks.data(), order.data())), bits(sum(plan, terms)));
    }
  }
}

TEST(ReductionPlan, NamesRoundTripAndTextIsStable) {
  for (const LaneCombine value : {LaneCombine::butterfly, LaneCombine::sequential}) {
    EXPECT_EQ(lane_combine_from_name(name_of(value)), value);
  }
  for (const SplitCombine value :
       {SplitCombine::sequential, SplitCombine::tree, SplitCombine::arrival}) {
    EXPECT_EQ(split_combine_from_name(name_of(value)), value);
  }
  for (const Accumulator value : {Accumulator::f32, Accumulator::f64, Accumulator::kahan,
                                  Accumulator::bf16, Accumulator::f16}) {
    EXPECT_EQ(accumulator_from_name(name_of(value)), value);
  }
  EXPECT_EQ(accumulator_from_name("fp32"), std::nullopt);
  EXPECT_EQ(to_string(ReductionPlan{.lanes = 32, .split_k = 4}),
            "lanes=32 split_k=4 butterfly sequential f32");
}

TEST(PlanPolicy, InvariantIgnoresTheShape) {
  const ReductionPlan base{.lanes = 32, .split_k = 2};
  for (const std::int64_t m : {1, 2, 8, 9, 64, 65, 4096}) {
    EXPECT_EQ(matmul_plan(PlanPolicy::invariant, base, m, 896, 896), base);
  }
}

TEST(PlanPolicy, ShapeDependentFollowsItsTable) {
  const ReductionPlan base{.lanes = 32, .accumulator = Accumulator::kahan};
  const auto plan = [&](std::int64_t m, std::int64_t k) {
    return matmul_plan(PlanPolicy::shape_dependent, base, m, 896, k);
  };
  EXPECT_EQ(plan(1, 896).split_k, 4);
  EXPECT_EQ(plan(2, 896).split_k, 2);
  EXPECT_EQ(plan(8, 896).split_k, 2);
  EXPECT_EQ(plan(9, 896).split_k, 1);
  EXPECT_EQ(plan(64, 896).lanes, 32);
  EXPECT_EQ(plan(65, 896).lanes, 16);
  EXPECT_EQ(plan(65, 896).split_k, 1);
  EXPECT_EQ(plan(1, 64).split_k, 2);  // K / lanes
  EXPECT_EQ(plan(1, 16).split_k, 1);
  EXPECT_EQ(plan(1, 896).accumulator, Accumulator::kahan);
}

TEST(PlanPolicy, NamesRoundTrip) {
  for (const PlanPolicy policy :
       {PlanPolicy::invariant, PlanPolicy::shape_dependent, PlanPolicy::vendor}) {
    EXPECT_EQ(plan_policy_from_name(name_of(policy)), policy);
  }
  EXPECT_EQ(plan_policy_from_name("cublas"), std::nullopt);
}

}  // namespace
}  // namespace driftscope
