// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/rounding_bound.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/compare/synthetic.h"

namespace driftscope {
namespace {

ExperimentFacts differing() {
  ExperimentFacts facts = test::facts_of(100, 10);
  facts.config_b.matmul_plan.split_k = 4;
  return facts;
}

TEST(Gamma, IsThatOfTheProbabilisticAnalysis) {
  // gamma_n = exp(4 sqrt(n) u + n u^2 / (1 - u)) - 1
  const double u = 0x1p-24;
  EXPECT_DOUBLE_EQ(probabilistic_gamma(100.0, u), std::expm1(40.0 * u + 100.0 * u * u / (1.0 - u)));
  EXPECT_EQ(probabilistic_gamma(0.0, u), 0.0);
}

TEST(RoundingBound, IsZeroWhereNoKnobCanChangeABit) {
  ExperimentFacts facts = test::facts_of(100, 10);
  EXPECT_TRUE(rounding_bound(facts, 20).known);
  EXPECT_EQ(rounding_bound(facts, 20).relative, 0.0);
  facts.config_b.threads = 3;
  facts.config_b.isa = IsaChoice::scalar;
  facts.config_b.sampling.seed = 5;
  facts.config_b.neighbours = 4;  // batch composition does not matter under invariant plans
  EXPECT_EQ(rounding_bound(facts, 20).relative, 0.0);
  facts.config_a.matmul_policy = facts.config_b.matmul_policy = PlanPolicy::shape_dependent;
  EXPECT_GT(rounding_bound(facts, 20).relative, 0.0);
}

TEST(RoundingBound, IsUnknownForOtherWeightsOrUnknownSizes) {
  ExperimentFacts facts = differing();
  EXPECT_TRUE(rounding_bound(facts, 20).known);
  facts.layers = 0;
  EXPECT_FALSE(rounding_bound(facts, 20).known);
  facts = differing();
  facts.model_sha256_b = std::string(64, 'b');
  EXPECT_FALSE(rounding_bound(facts, 20).known);
  facts = differing();
  facts.config_a.weight_dtype = WeightDtype::f16;
  EXPECT_FALSE(rounding_bound(facts, 20).known);
}

TEST(RoundingBound, GrowsWithDepthLengthAndCoarseness) {
  const double base = rounding_bound(differing(), 20).relative;
  ExperimentFacts deeper = differing();
  deeper.layers *= 4;
  EXPECT_GT(rounding_bound(deeper, 20).relative, base);
  ExperimentFacts wider = differing();
  wider.hidden *= 16;
  EXPECT_GT(rounding_bound(wider, 20).relative, base);
  EXPECT_GT(rounding_bound(differing(), 2000).relative, base);
  ExperimentFacts coarser = differing();
  coarser.config_b.activation_dtype = Dtype::bf16;
  EXPECT_GT(rounding_bound(coarser, 20).relative, 100.0 * base);
}

TEST(RoundingBound, IsSymmetricInTheSides) {
  const ExperimentFacts facts = differing();
  ExperimentFacts swapped = facts;
  std::swap(swapped.config_a, swapped.config_b);
  EXPECT_DOUBLE_EQ(rounding_bound(facts, 20).relative, rounding_bound(swapped, 20).relative);
}

TEST(RoundingBound, LongerChainsRoundMore) {
  ExperimentFacts sequential = differing();
  sequential.config_a.matmul_plan.lanes = 1;
  EXPECT_GT(rounding_bound(sequential, 20).contributions[0].relative,
            rounding_bound(differing(), 20).contributions[0].relative);
}

TEST(RoundingBound, OneSourceByHand) {
  // Rounding of activations, 15 places a layer and one at the head, u = 2^-8 on both sides, two
  // layers: growth^2 = (3/1)^2 + (3/2)^2 = 11.25; 4 sqrt(11.25 * 15 + 1) * 2 * 2^-8.
  ExperimentFacts facts = differing();
  facts.config_a.activation_dtype = facts.config_b.activation_dtype = Dtype::bf16;
  const RoundingBound bound = rounding_bound(facts, 20);
  double squares = 0.0;
  bool found = false;
  for (const RoundingContribution& source : bound.contributions) {
    squares += source.relative * source.relative;
    if (source.source != "rounding of activations") continue;
    found = true;
    EXPECT_DOUBLE_EQ(source.relative, 4.0 * std::sqrt(11.25 * 15.0 + 1.0) * 0x1p-7);
  }
  EXPECT_TRUE(found);
  EXPECT_NEAR(bound.relative, std::sqrt(squares), 1e-12);  // independent sources add in squares
}

TEST(RoundingBound, OnlyTheLogitsRoundingCountsWhereOnlyThatDiffers) {
  ExperimentFacts facts = test::facts_of(100, 10);
  facts.config_a.activation_dtype = facts.config_b.activation_dtype = Dtype::bf16;
  facts.config_b.logits_dtype = Dtype::bf16;
  // f32 on one side, bf16 on the other, one place at the head, lambda = 4.
  EXPECT_DOUBLE_EQ(rounding_bound(facts, 20).relative, 4.0 * (0x1p-24 + 0x1p-8));
}

TEST(Weights, EffectiveDtype) {
  EXPECT_EQ(effective_dtype(WeightDtype::checkpoint, Dtype::bf16), Dtype::bf16);
  EXPECT_EQ(effective_dtype(WeightDtype::f32, Dtype::bf16), Dtype::bf16);
  EXPECT_EQ(effective_dtype(WeightDtype::f16, Dtype::bf16), Dtype::f16);
  EXPECT_EQ(effective_dtype(WeightDtype::bf16, Dtype::f32), Dtype::bf16);
}

}  // namespace
}  // namespace driftscope
