// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "tests/compare/synthetic.h"

namespace driftscope {
namespace {

using test::find;
using test::Row;
using test::Script;

const Row kRow{4.0F, 1.0F, 0.0F, -1.0F};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Script run_of(int steps, const Row& b) {
  Script script;
  script.facts = test::facts_of(4, steps);
  for (int step = 0; step < steps; ++step) script.add(kRow, b);
  return script;
}

std::optional<bool> holds(const Comparison& comparison, Tier tier) {
  const TierCheck* check = find(comparison, tier);
  return check == nullptr ? std::nullopt : check->holds;
}

TEST(Tiers, EveryTierIsStatedInOrder) {
  const ComparisonPointer comparison = run_of(2, kRow).run();
  std::vector<Tier> tiers;
  for (const TierCheck& check : comparison->tiers) tiers.push_back(check.tier);
  EXPECT_EQ(tiers, (std::vector<Tier>{Tier::bitwise, Tier::tolerance, Tier::token, Tier::semantic,
                                      Tier::different, Tier::inconclusive}));
}

TEST(Tiers, Bitwise) {
  const ComparisonPointer comparison = run_of(3, kRow).run();
  EXPECT_EQ(comparison->verdict, Tier::bitwise);
  EXPECT_EQ(comparison->verdict_text, "bitwise: all 3 steps have the same bits");
  for (const Tier tier : {Tier::bitwise, Tier::tolerance, Tier::token, Tier::semantic}) {
    EXPECT_EQ(holds(*comparison, tier), true) << name_of(tier);
  }
  EXPECT_EQ(holds(*comparison, Tier::different), false);
  EXPECT_EQ(holds(*comparison, Tier::inconclusive), false);
}

TEST(Tiers, ASignOfZeroIsAnotherBit) {
  const ComparisonPointer comparison = run_of(3, {4.0F, 1.0F, -0.0F, -1.0F}).run();
  EXPECT_EQ(holds(*comparison, Tier::bitwise), false);
  EXPECT_EQ(comparison->verdict, Tier::tolerance);
}

TEST(Tiers, ToleranceFollowsThePolicy) {
  Script script = run_of(3, {4.0F, 1.0F, 0.0F, -1.25F});
  EXPECT_EQ(script.run()->verdict, Tier::token);  // 0.25 is beyond 1e-3
  script.policy.max_abs_tolerance = 0.25;
  script.policy.kl_tolerance = 1.0;
  EXPECT_EQ(script.run()->verdict, Tier::tolerance);
  script.policy.kl_tolerance = 1e-9;
  EXPECT_EQ(holds(*script.run(), Tier::tolerance), false);
  script.policy.kl_tolerance = -1.0;  // switched off
  EXPECT_EQ(holds(*script.run(), Tier::tolerance), true);
  script.policy.max_abs_tolerance = -1.0;
  EXPECT_EQ(holds(*script.run(), Tier::tolerance), std::nullopt);
}

TEST(Tiers, OneStepBeyondTheLimitIsEnough) {
  Script script = run_of(3, kRow);
  script.forced[1].logits[3] = -1.25F;
  const ComparisonPointer comparison = script.run();
  EXPECT_EQ(holds(*comparison, Tier::tolerance), false);
  EXPECT_NE(find(*comparison, Tier::tolerance)->detail.find("first exceeded at step 1"),
            std::string::npos);
}

TEST(Tiers, WithinToleranceTheTextsMayPart) {
  Script script = run_of(3, kRow);
  script.policy.max_abs_tolerance = 1.0;
  script.policy.kl_tolerance = 1.0;
  script.facts.planned_steps = 4;
  script.add({4.0F, 3.75F, 0.0F, -1.0F}, {3.75F, 4.0F, 0.0F, -1.0F});
  const ComparisonPointer comparison = script.run();
  EXPECT_EQ(comparison->verdict, Tier::tolerance);
  EXPECT_EQ(holds(*comparison, Tier::token), false);
  EXPECT_NE(comparison->verdict_text.find("the texts part at step 3"), std::string::npos);
}

TEST(Tiers, Different) {
  const ComparisonPointer comparison = run_of(3, {1.0F, 4.0F, 0.0F, -1.0F}).run();
  EXPECT_EQ(comparison->verdict, Tier::different);
  EXPECT_EQ(holds(*comparison, Tier::token), false);
  EXPECT_EQ(comparison->verdict_text.substr(0, 41), "different: the texts part at step 0: A go");
}

TEST(Tiers, SemanticHoldsOnlyForEqualTexts) {
  // Tokens 0 and 26 have the same text.
  Script script;
  script.facts = test::facts_of(27, 1);
  Row a(27, 0.0F), b(27, 0.0F);
  a[0] = 4.0F;
  b[26] = 4.0F;
  script.add(a, b);
  ComparisonPointer comparison = script.run();
  EXPECT_EQ(comparison->verdict, Tier::semantic);
  script.facts.piece = nullptr;  // texts unknown
  comparison = script.run();
  EXPECT_EQ(holds(*comparison, Tier::semantic), std::nullopt);
  EXPECT_EQ(comparison->verdict, Tier::different);
}

TEST(Tiers, InconclusiveWherePromptsDiffer) {
  Script script = run_of(3, kRow);
  script.facts.prompt_b.pop_back();
  EXPECT_EQ(script.run()->verdict, Tier::inconclusive);
}

TEST(Tiers, InconclusiveWithoutSteps) {
  ComparisonBuilder builder(test::facts_of(4, 3), {});
  EXPECT_EQ(builder.snapshot(TraceState::complete)->verdict, Tier::inconclusive);
}

TEST(Tiers, InconclusiveWithoutALane) {
  Script script = run_of(3, kRow);
  script.b.clear();
  const ComparisonPointer no_free_lane = script.run();
  EXPECT_EQ(no_free_lane->verdict, Tier::inconclusive);
  EXPECT_EQ(holds(*no_free_lane, Tier::bitwise), std::nullopt);
  script = run_of(3, kRow);
  script.forced.clear();
  EXPECT_EQ(script.run()->verdict, Tier::inconclusive);
}

TEST(Tiers, ARunThatIsNotCompletePassesNothing) {
  Script script = run_of(3, kRow);
  script.facts.planned_steps = 10;
  for (const TraceState state : {TraceState::partial, TraceState::interrupted}) {
    script.state = state;
    const ComparisonPointer comparison = script.run();
    EXPECT_EQ(comparison->verdict, Tier::inconclusive);
    EXPECT_EQ(holds(*comparison, Tier::bitwise), std::nullopt);
    EXPECT_EQ(holds(*comparison, Tier::token), std::nullopt);
    EXPECT_NE(find(*comparison, Tier::bitwise)->detail.find("3 steps of 10 planned"),
              std::string::npos);
  }
}

TEST(Tiers, WhatFailedInAPartialRunHasFailed) {
  Script script = run_of(3, {1.0F, 4.0F, 0.0F, -1.0F});
  script.facts.planned_steps = 10;
  script.state = TraceState::interrupted;
  const ComparisonPointer comparison = script.run();
  EXPECT_EQ(comparison->verdict, Tier::different);
  EXPECT_NE(comparison->verdict_text.find("step 0"), std::string::npos);
}

TEST(Tiers, MissingForcedRowsLeaveTheRestOpen) {
  Script script = run_of(4, kRow);
  script.forced.resize(2);
  const ComparisonPointer comparison = script.run();
  EXPECT_EQ(holds(*comparison, Tier::bitwise), std::nullopt);
  EXPECT_EQ(holds(*comparison, Tier::tolerance), std::nullopt);
  EXPECT_EQ(holds(*comparison, Tier::token), true);
  EXPECT_EQ(comparison->verdict, Tier::token);
}

TEST(Tiers, NanLeavesToleranceOpen) {
  Script script = run_of(3, kRow);
  script.forced[1].logits[3] = kNan;
  const ComparisonPointer comparison = script.run();
  EXPECT_EQ(holds(*comparison, Tier::bitwise), false);
  EXPECT_EQ(holds(*comparison, Tier::tolerance), std::nullopt);
  EXPECT_EQ(comparison->verdict, Tier::token);
}

TEST(Tiers, MaskedTokensAreNoObstacle) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  Script script;
  script.facts = test::facts_of(4, 1);
  script.add({4.0F, 1.0F, 0.0F, -inf}, {4.0F, 1.0F, 0x1p-20F, -inf});
  EXPECT_EQ(holds(*script.run(), Tier::tolerance), true);
  script.forced[0].logits = {4.0F, 1.0F, -inf, 0x1p-20F};  // as many, but others
  EXPECT_EQ(holds(*script.run(), Tier::tolerance), std::nullopt);
}

TEST(Tiers, OtherNumbersOfTokensAreNotEqualTexts) {
  Script script = run_of(4, kRow);
  script.b.resize(2);  // B was asked for fewer steps: no divergence, no equality
  const ComparisonPointer comparison = script.run();
  EXPECT_EQ(holds(*comparison, Tier::token), std::nullopt);
  EXPECT_NE(comparison->verdict, Tier::bitwise);
}

TEST(Names, ReadBack) {
  for (const Tier tier : {Tier::bitwise, Tier::tolerance, Tier::token, Tier::semantic,
                          Tier::different, Tier::inconclusive}) {
    EXPECT_EQ(tier_from_name(name_of(tier)), tier);
  }
  for (const FlipCause cause : {FlipCause::tie_break, FlipCause::near_tie, FlipCause::excess_drift,
                                FlipCause::input, FlipCause::sampler, FlipCause::unexplained}) {
    EXPECT_EQ(flip_cause_from_name(name_of(cause)), cause);
  }
  for (const Severity severity :
       {Severity::info, Severity::notice, Severity::warning, Severity::error}) {
    EXPECT_EQ(severity_from_name(name_of(severity)), severity);
  }
  EXPECT_FALSE(tier_from_name("pass"));
}

}  // namespace
}  // namespace driftscope
