// SPDX-License-Identifier: Apache-2.0
// Every cause, by rows that have it for a reason that can be checked by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/compare/synthetic.h"

namespace driftscope {
namespace {

using test::Row;
using test::Script;

constexpr float kSmall = 0x1p-11F;

// Twenty steps with a pairwise drift of 2^-10 between the best two, under f32 and two policies.
Script usual_run() {
  Script script;
  script.facts = test::facts_of(6, 21);
  script.facts.config_b.matmul_policy = PlanPolicy::shape_dependent;
  for (int step = 0; step < 20; ++step) {
    script.add({4.0F, 1.0F, 0.5F, 0.0F, -1.0F, -2.0F},
               {4.0F + kSmall, 1.0F - kSmall, 0.5F, 0.0F, -1.0F, -2.0F});
  }
  return script;
}

// The divergence of the last step that is added to `script`.
Divergence last_flip(Script script, const Row& a, const Row& b) {
  script.add(a, b);
  const ComparisonPointer comparison = script.run();
  EXPECT_TRUE(comparison->first_divergence);
  if (!comparison->first_divergence) return {};
  EXPECT_EQ(comparison->first_divergence->step, 20);
  EXPECT_EQ(comparison->tokens_equal, 20);
  EXPECT_TRUE(comparison->first_flip);
  EXPECT_EQ(comparison->first_flip->cause, comparison->first_divergence->cause);
  return *comparison->first_divergence;
}

TEST(Cause, NearTieByTheRunsPairwiseDrift) {
  const Divergence flip = last_flip(usual_run(), {4.0F, 4.0F - kSmall, 0.5F, 0.0F, -1.0F, -2.0F},
                                    {4.0F - kSmall, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F});
  EXPECT_EQ(flip.cause, FlipCause::near_tie) << flip.reason;
  EXPECT_EQ(flip.token_a, TokenId{0});
  EXPECT_EQ(flip.token_b, TokenId{1});
  EXPECT_EQ(flip.margin_a, 0x1p-11);
  EXPECT_EQ(flip.margin_b, 0x1p-11);
  EXPECT_EQ(flip.gap_a, 0x1p-11);
  EXPECT_EQ(flip.gap_b, 0x1p-11);
  EXPECT_EQ(flip.p95_pair_drift, 0x1p-10);
  // centred_rms: usually of (s, -s, 0 …), here of the same; both sqrt(2 / 6) s
  EXPECT_EQ(flip.drift, flip.usual_drift);
  EXPECT_EQ(flip.drift_excess, 1.0);
  EXPECT_GT(flip.rounding_bound, flip.drift);
  EXPECT_NE(flip.reason.find("near-tie: margin 0.000488, within 2 times 0.000977, the 95th "
                             "percentile of how far this run's drift moves two tokens"),
            std::string::npos)
      << flip.reason;
}

// Under bf16, drift moves the other tokens by 1/32 while the best two stay: the run's pairwise
// drift says little, units in the last place do.
Script bf16_run() {
  Script script = usual_run();
  script.facts.config_a.activation_dtype = Dtype::bf16;
  script.facts.config_b.activation_dtype = Dtype::bf16;
  script.a.clear();
  script.forced.clear();
  script.b.clear();
  script.control.clear();
  for (int step = 0; step < 20; ++step) {
    script.add({4.0F, 1.0F, 0.5F, 0.0F, -1.0F, -2.0F},
               {4.0F, 1.0F - kSmall, 0.53125F, -0.03125F, -1.03125F, -1.96875F});
  }
  return script;
}

TEST(Cause, NearTieByUnitsInTheLastPlace) {
  // One bf16 unit at 4 is 2^-5: a margin of 1/16 is two of them.
  const Divergence flip = last_flip(bf16_run(), {4.0F, 3.9375F, 0.5F, 0.0F, -1.0F, -2.0F},
                                    {3.96875F, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F});
  EXPECT_EQ(flip.cause, FlipCause::near_tie) << flip.reason;
  EXPECT_EQ(flip.tie_ulps, 2.0);
  EXPECT_NE(flip.reason.find("2 units in the last place of bf16"), std::string::npos)
      << flip.reason;
}

TEST(Cause, TheFlipsOwnDriftIsNoScaleForItsMargin) {
  // One step only: its drift of 2 * 2^-4 between the two would pass for a near-tie by itself. The
  // margin is thousands of f32 units, and no other step says what drift is usual.
  Script script;
  script.facts = test::facts_of(6, 1);
  script.facts.layers = 0;  // no bound either
  script.add({4.0F, 4.0F - 0x1p-4F, 0.5F, 0.0F, -1.0F, -2.0F},
             {4.0F - 0x1p-4F, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F});
  const Divergence flip = *script.run()->first_divergence;
  EXPECT_TRUE(std::isnan(flip.p95_pair_drift));
  EXPECT_EQ(flip.cause, FlipCause::unexplained) << flip.reason;
}

TEST(Cause, ThresholdsAreThoseOfThePolicy) {
  Script script = bf16_run();
  script.policy.near_tie_ulps = 1.0;
  EXPECT_EQ(last_flip(script, {4.0F, 3.9375F, 0.5F, 0.0F, -1.0F, -2.0F},
                      {3.96875F, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F})
                .cause,
            FlipCause::unexplained);
  script.policy.excess_factor = 0.5;
  EXPECT_EQ(last_flip(script, {4.0F, 3.9375F, 0.5F, 0.0F, -1.0F, -2.0F},
                      {3.96875F, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F})
                .cause,
            FlipCause::excess_drift);
}

TEST(Cause, UnexplainedWhereTheMarginIsWideAndTheDriftOrdinary) {
  // A margin of 1/4 is 8 bf16 units and far beyond the pairwise drift of the other steps.
  const Divergence flip = last_flip(bf16_run(), {4.0F, 3.75F, 0.5F, 0.0F, -1.0F, -2.0F},
                                    {3.875F, 3.90625F, 0.5F, 0.0F, -1.0F, -2.0F});
  EXPECT_EQ(flip.cause, FlipCause::unexplained) << flip.reason;
  EXPECT_LT(flip.drift_excess, 4.0);
  EXPECT_LT(flip.drift, flip.rounding_bound);
}

TEST(Cause, ExcessDriftAgainstTheRun) {
  // Ten times the usual drift; the margin alone would pass for a near-tie.
  const Divergence flip = last_flip(bf16_run(), {4.0F, 3.9375F, 0.5F, 0.0F, -1.0F, -2.0F},
                                    {3.96875F, 4.0F, 0.8125F, -0.3125F, -1.3125F, -1.6875F});
  EXPECT_EQ(flip.cause, FlipCause::excess_drift) << flip.reason;
  EXPECT_GT(flip.drift_excess, 4.0);
  EXPECT_NE(flip.reason.find("look for a fault, not for rounding"), std::string::npos);
}

TEST(Cause, ExcessDriftThatOtherStepsShareSaysSo) {
  // Two of twenty earlier steps drift as much: the rule stands, the sentence names them.
  Script script = bf16_run();
  for (const std::size_t step : {3U, 8U}) {
    script.forced[step].logits = {4.0F, 1.0F, 0.8125F, -0.3125F, -1.3125F, -1.6875F};
  }
  const Divergence flip = last_flip(script, {4.0F, 3.9375F, 0.5F, 0.0F, -1.0F, -2.0F},
                                    {3.96875F, 4.0F, 0.8125F, -0.3125F, -1.3125F, -1.6875F});
  EXPECT_EQ(flip.cause, FlipCause::excess_drift) << flip.reason;
  EXPECT_NE(flip.reason.find("2 other steps drift at least half as much"), std::string::npos)
      << flip.reason;
}

TEST(Cause, ExcessDriftBeyondTheBoundThoughUsualInThisRun) {
  // f32 on both sides: a drift of 0.1 at every step is ordinary in this run and far beyond
  // rounding.
  Script script = usual_run();
  for (test::Record& record : script.forced) record.logits[5] += 0.25F;
  const Divergence flip = last_flip(script, {4.0F, 4.0F - kSmall, 0.5F, 0.0F, -1.0F, -2.0F},
                                    {4.0F - kSmall, 4.0F, 0.5F, 0.0F, -1.0F, -1.75F});
  EXPECT_EQ(flip.cause, FlipCause::excess_drift) << flip.reason;
  EXPECT_NEAR(flip.drift_excess, 1.0, 0.01);
  EXPECT_GT(flip.drift, flip.rounding_bound);
}

TEST(Cause, AnyDriftIsExcessWhereNoKnobDiffersThatChangesBits) {
  Script script = usual_run();
  script.facts.config_b.matmul_policy = PlanPolicy::invariant;
  script.facts.config_b.threads = 2;
  const Divergence flip = last_flip(script, {4.0F, 4.0F - kSmall, 0.5F, 0.0F, -1.0F, -2.0F},
                                    {4.0F - kSmall, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F});
  EXPECT_EQ(flip.cause, FlipCause::excess_drift) << flip.reason;
  EXPECT_EQ(flip.rounding_bound, 0.0);
  EXPECT_NE(flip.reason.find("no knob differs that could change a bit"), std::string::npos);
}

TEST(Cause, WithoutTheModelsSizesTheBoundIsNotUsed) {
  Script script = usual_run();
  script.facts.layers = 0;
  const Divergence flip = last_flip(script, {4.0F, 4.0F - kSmall, 0.5F, 0.0F, -1.0F, -2.0F},
                                    {4.0F - kSmall, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F});
  EXPECT_EQ(flip.cause, FlipCause::near_tie);
  EXPECT_NE(flip.reason.find("no a-priori rounding bound is known"), std::string::npos);
}

// The bound is meant to be wide. A reader must not take "within" for a proof.
TEST(Cause, AWideBoundSaysWhatItLeavesOpen) {
  Script script = usual_run();
  script.facts.config_a.activation_dtype = Dtype::bf16;
  script.facts.config_b.activation_dtype = Dtype::bf16;
  const Divergence flip = last_flip(script, {4.0F, 4.0F - kSmall, 0.5F, 0.0F, -1.0F, -2.0F},
                                    {4.0F - kSmall, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F});
  ASSERT_EQ(flip.cause, FlipCause::near_tie) << flip.reason;
  ASSERT_GT(flip.rounding_bound, 10.0 * flip.usual_drift);
  EXPECT_NE(flip.reason.find("it cannot exclude a fault that is alike at every step"),
            std::string::npos)
      << flip.reason;
}

TEST(Cause, TieBreakAtAMarginOfZero) {
  const Divergence flip = last_flip(usual_run(), {4.0F, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F},
                                    {4.0F - kSmall, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F});
  EXPECT_EQ(flip.cause, FlipCause::tie_break) << flip.reason;
  EXPECT_EQ(flip.gap_a, 0.0);
}

TEST(Cause, TieBreakAfterTheRoundingOfTheLogits) {
  Script script = usual_run();
  script.facts.config_b.logits_dtype = Dtype::bf16;
  // B's bf16 logits are equal, so the lower id wins; A's differ by less than bf16 can tell.
  const Divergence flip = last_flip(script, {4.0F - kSmall, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F},
                                    {4.0F, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F});
  EXPECT_EQ(flip.cause, FlipCause::tie_break) << flip.reason;
  EXPECT_NE(flip.reason.find("equal after rounding to bf16"), std::string::npos) << flip.reason;
}

TEST(Cause, TieBreakInBOnly) {
  const Divergence flip = last_flip(usual_run(), {4.0F - kSmall, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F},
                                    {4.0F, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F});
  EXPECT_EQ(flip.cause, FlipCause::tie_break) << flip.reason;
  EXPECT_EQ(flip.margin_b, 0.0);
  EXPECT_EQ(flip.gap_a, 0x1p-11);
}

TEST(Cause, InputWherePromptsCheckpointsOrWeightsDiffer) {
  const Row a{4.0F, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F};
  const Row b{4.0F - kSmall, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F};
  Script prompts = usual_run();
  prompts.facts.prompt_b.push_back(TokenId{9});
  EXPECT_EQ(last_flip(prompts, a, b).cause, FlipCause::input);

  Script checkpoints = usual_run();
  checkpoints.facts.model_sha256_b = std::string(64, 'b');
  const Divergence flip = last_flip(checkpoints, a, b);
  EXPECT_EQ(flip.cause, FlipCause::input);
  EXPECT_EQ(flip.reason, "input: the checkpoints differ (sha256 aaaaaaaaaaaa and bbbbbbbbbbbb)");
  EXPECT_EQ(flip.rounding_bound, 0.0);

  Script weights = usual_run();
  weights.facts.config_b.weight_dtype = WeightDtype::bf16;
  EXPECT_EQ(last_flip(weights, a, b).cause, FlipCause::input);
  // Widening a bf16 checkpoint changes no value.
  weights.facts.stored_dtype = Dtype::bf16;
  EXPECT_EQ(last_flip(weights, a, b).cause, FlipCause::tie_break);
}

TEST(Cause, InputWhereWeightsAreQuantisedDifferently) {
  const Row a{4.0F, 3.0F, 0.5F, 0.0F, -1.0F, -2.0F};
  const Row b{3.0F, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F};
  Script script = usual_run();
  script.facts.config_b.quantisation = Quantisation::int4_symmetric;
  Divergence flip = last_flip(script, a, b);
  EXPECT_EQ(flip.cause, FlipCause::input) << flip.reason;
  EXPECT_NE(flip.reason.find("quantised differently (none and int4_symmetric)"), std::string::npos)
      << flip.reason;

  script.facts.config_a.quantisation = Quantisation::int4_symmetric;
  script.facts.config_a.quantisation_group = 32;
  flip = last_flip(script, a, b);
  EXPECT_EQ(flip.cause, FlipCause::input) << flip.reason;
  EXPECT_NE(flip.reason.find("group 32 and 128"), std::string::npos) << flip.reason;

  // W8A8 and W8A16 hold the same codes: only the activations are rounded differently.
  script.facts.config_a.quantisation = Quantisation::int8_w8a16;
  script.facts.config_b.quantisation = Quantisation::int8_w8a8;
  flip = last_flip(script, a, b);
  EXPECT_NE(flip.cause, FlipCause::input) << flip.reason;
}

TEST(Cause, SamplerWhereTheBitsAgree) {
  Script script = usual_run();
  script.facts.config_a.sampling.temperature = script.facts.config_b.sampling.temperature = 0.8;
  script.facts.config_b.sampling.seed = 7;
  const Row row{2.0F, 1.9F, 0.5F, 0.0F, -1.0F, -2.0F};
  script.add(row, row);
  script.forced.back().choice = script.b.back().choice = script.b.back().emitted = TokenId{1};
  const ComparisonPointer comparison = script.run();
  ASSERT_TRUE(comparison->first_divergence);
  EXPECT_EQ(comparison->first_divergence->cause, FlipCause::sampler);
  EXPECT_NE(comparison->first_divergence->reason.find("sampling settings are not equal"),
            std::string::npos);
}

TEST(Cause, SamplerWhereSettingsAreEqualPointsAtSharedState) {
  Script script = usual_run();
  script.facts.config_a.sampling.temperature = script.facts.config_b.sampling.temperature = 0.8;
  const Row row{2.0F, 1.9F, 0.5F, 0.0F, -1.0F, -2.0F};
  script.add(row, row);
  script.forced.back().choice = script.b.back().choice = script.b.back().emitted = TokenId{1};
  const Divergence flip = *script.run()->first_divergence;
  EXPECT_EQ(flip.cause, FlipCause::sampler);
  EXPECT_NE(flip.reason.find("random state shared between requests"), std::string::npos);
}

TEST(Cause, TieBreakWhereTheBitsAgreeAndTheOrderAmongEqualsDiffers) {
  Script script = usual_run();
  const Row row{2.0F, 2.0F, 0.5F, 0.0F, -1.0F, -2.0F};
  script.add(row, row);
  script.forced.back().choice = script.b.back().choice = script.b.back().emitted = TokenId{1};
  EXPECT_EQ(script.run()->first_divergence->cause, FlipCause::tie_break);
}

// Drawn tokens: margins are not the scale, the share of draws that part is.
TEST(Cause, DrawsThatPartWithinOrdinaryDriftAreTheSamplers) {
  Script script = usual_run();
  script.facts.config_a.sampling.temperature = script.facts.config_b.sampling.temperature = 1.0;
  script.add({2.0F, 1.5F, 0.5F, 0.0F, -1.0F, -2.0F},
             {2.0F + kSmall, 1.5F - kSmall, 0.5F, 0.0F, -1.0F, -2.0F});
  script.forced.back().choice = script.b.back().choice = script.b.back().emitted = TokenId{1};
  const Divergence flip = *script.run()->first_divergence;
  EXPECT_EQ(flip.cause, FlipCause::sampler) << flip.reason;
  EXPECT_NE(flip.reason.find("total variation"), std::string::npos);

  // The same draw with drift out of the ordinary asks for a fault.
  script.forced.back().logits[4] += 1.0F;
  EXPECT_EQ(script.run()->first_divergence->cause, FlipCause::excess_drift);
}

TEST(Cause, ADivergenceCarriesTheRowsInFlight) {
  Script script = usual_run();
  script.add({4.0F, 4.0F - kSmall, 0.5F, 0.0F, -1.0F, -2.0F},
             {4.0F - kSmall, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F});
  script.a.back().rows_in_flight = 1;
  script.forced.back().rows_in_flight = 8;
  const Divergence flip = *script.run()->first_divergence;
  EXPECT_EQ(flip.rows_a, 1);
  EXPECT_EQ(flip.rows_b, 8);
}

TEST(Cause, SamplerWhereOneSideStops) {
  Script script = usual_run();
  script.a.resize(18);
  script.control.resize(18);
  script.forced.resize(18);
  script.stop_a = "stop_string";
  const ComparisonPointer comparison = script.run();
  ASSERT_TRUE(comparison->first_divergence);
  const Divergence& end = *comparison->first_divergence;
  EXPECT_EQ(end.step, 18);
  EXPECT_FALSE(end.token_a);
  EXPECT_EQ(end.token_b, TokenId{0});
  EXPECT_EQ(end.cause, FlipCause::sampler);
  EXPECT_TRUE(std::isnan(end.margin_a));
  EXPECT_EQ(
      end.reason,
      "sampler: A ended after 18 tokens (stop_string) and B went on after the same tokens: the "
      "rules for stopping differ");
}

TEST(Cause, ALaneThatWasCutShortHasNotParted) {
  Script script = usual_run();
  script.b.resize(18);
  EXPECT_FALSE(script.run()->first_divergence);  // stopped at its number of steps
  script.stop_b = "end_of_sequence";
  EXPECT_TRUE(script.run()->first_divergence);
  script.state = TraceState::interrupted;
  EXPECT_FALSE(script.run()->first_divergence);
}

TEST(Cause, AFlipOfTheForcedLaneAfterTheTextsParted) {
  // The free lanes part at step 0; later rows of the forced lane are still compared.
  Script script = usual_run();
  script.b[0].emitted = TokenId{3};
  script.add({4.0F, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F},
             {4.0F - kSmall, 4.0F, 0.5F, 0.0F, -1.0F, -2.0F});
  const ComparisonPointer comparison = script.run();
  EXPECT_EQ(comparison->first_divergence->step, 0);
  EXPECT_EQ(comparison->first_flip->step, 20);
  EXPECT_EQ(comparison->first_flip->cause, FlipCause::tie_break);
}

TEST(Cause, TheGapToADistantTokenCountsNotTheMargin) {
  // A's second is 2^-11 below, but B chose the third, 1/4 below: no near-tie.
  const Divergence flip = last_flip(bf16_run(), {4.0F, 4.0F - kSmall, 3.75F, 0.0F, -1.0F, -2.0F},
                                    {3.875F, 3.875F, 3.90625F, 0.0F, -1.0F, -2.0F});
  EXPECT_EQ(flip.margin_a, 0x1p-11);
  EXPECT_EQ(flip.gap_a, 0.25);
  EXPECT_EQ(flip.cause, FlipCause::unexplained) << flip.reason;
}

}  // namespace
}  // namespace driftscope
