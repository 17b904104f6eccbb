// SPDX-License-Identifier: Apache-2.0
// Errors against exact arithmetic, and what they say of a drift: by hand.
#include "analysis/compare/reference_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/compare/synthetic.h"

namespace driftscope {
namespace {

StoredRowPointer row(std::vector<float> logits) {
  auto stored = std::make_shared<StoredRow>();
  stored->logits = std::move(logits);
  return stored;
}

TEST(ReferenceCheck, ErrorsAreCentredDistancesFromTheReference) {
  ReferenceCheck check(References::shared);
  EXPECT_FALSE(check.accept(Lane::a, 0, row({1.0F, 2.0F, 3.0F, 4.0F})));
  EXPECT_FALSE(check.accept(Lane::b_forced, 0, row({3.0F, 4.0F, 5.0F, 6.0F})));
  const auto errors = check.accept(Lane::reference, 0, row({1.5F, 1.5F, 3.5F, 3.5F}));
  ASSERT_TRUE(errors);
  EXPECT_EQ(errors->a.centred_rms, 0.5);  // -0.5, 0.5, -0.5, 0.5: mean 0
  EXPECT_EQ(errors->a.max_abs, 0.5);
  // The same, shifted by 2: softmax ignores a common shift.
  EXPECT_EQ(errors->b.centred_rms, 0.5);
  EXPECT_EQ(errors->b.max_abs, 2.5);
  EXPECT_NEAR(errors->b.kl, errors->a.kl, 1e-15);
  EXPECT_FALSE(errors->weights);
  EXPECT_EQ(check.rows_waiting(), 0U);
}

// Where each side has its own reference, B is measured against B's.
TEST(ReferenceCheck, SplitsWeightsFromArithmetic) {
  ReferenceCheck check(References::of_each_side);
  EXPECT_FALSE(check.accept(Lane::a, 0, row({0.5F, 0.0F})));
  EXPECT_FALSE(check.accept(Lane::reference, 0, row({0.0F, 0.0F})));
  EXPECT_FALSE(check.accept(Lane::b_forced, 0, row({3.0F, 0.25F})));
  EXPECT_EQ(check.rows_waiting(), 3U);
  const auto errors = check.accept(Lane::reference_b, 0, row({3.0F, 0.0F}));
  ASSERT_TRUE(errors);
  EXPECT_EQ(errors->a.max_abs, 0.5);
  EXPECT_EQ(errors->b.max_abs, 0.25);
  ASSERT_TRUE(errors->weights);
  EXPECT_EQ(errors->weights->max_abs, 3.0);
  // p = (1/2, 1/2), q = (e^3, 1) / (e^3 + 1): log((e^3 + 1)^2 / (4 e^3)) / 2.
  const double e3 = std::exp(3.0);
  EXPECT_NEAR(errors->weights->kl, 0.5 * std::log((e3 + 1) * (e3 + 1) / (4 * e3)), 1e-14);
  EXPECT_EQ(check.rows_waiting(), 0U);
}

TEST(ReferenceCheck, KeepsRowsOnlyWhileTheirStepCanBecomeComplete) {
  ReferenceCheck check(References::shared);
  const auto any = row({1.0F, 2.0F});
  EXPECT_FALSE(check.accept(Lane::a, 0, any));
  EXPECT_FALSE(check.accept(Lane::reference, 0, any));
  EXPECT_FALSE(check.accept(Lane::a, 1, any));
  EXPECT_EQ(check.rows_waiting(), 3U);
  check.stop_waiting(Lane::reference);  // step 1 will have no reference, step 0 has it
  EXPECT_EQ(check.rows_waiting(), 2U);
  EXPECT_FALSE(check.accept(Lane::a, 2, any));
  EXPECT_EQ(check.rows_waiting(), 2U);
  EXPECT_TRUE(check.accept(Lane::b_forced, 0, any));

  ReferenceCheck none(References::none);
  EXPECT_FALSE(none.accept(Lane::a, 0, any));
  EXPECT_EQ(none.rows_waiting(), 0U);
}

TEST(NoiseEnvelope, IsTheSmallerOfBothPredictions) {
  // Equal precision: from A 3 sqrt 2, from B 4 sqrt 2.
  EXPECT_DOUBLE_EQ(noise_envelope(3.0, 4.0, 0.5, 0.5), 3.0 * std::sqrt(2.0));
  // B is expected to be twice as far off: from A 3 sqrt 5, from B 4 sqrt 1.25.
  EXPECT_DOUBLE_EQ(noise_envelope(3.0, 4.0, 0.5, 1.0), 4.0 * std::sqrt(1.25));
  // A fault of B does not widen it.
  EXPECT_DOUBLE_EQ(noise_envelope(3.0, 400.0, 0.5, 0.5), 3.0 * std::sqrt(2.0));
  EXPECT_TRUE(std::isnan(noise_envelope(3.0, 4.0, 0.5, 2.5)));  // too far apart to predict
  EXPECT_TRUE(std::isnan(noise_envelope(3.0, 4.0, 0.0, 0.0)));
}

// Twenty steps in which A and B are each `a` and `b` from exact, on different entries.
test::Script script_of(float a, float b) {
  test::Script script;
  script.facts = test::facts_of(4, 20);
  script.facts.config_b.matmul_policy = PlanPolicy::shape_dependent;
  script.facts.lanes = {Lane::a, Lane::b, Lane::b_forced, Lane::control, Lane::reference};
  for (int step = 0; step < 20; ++step) {
    script.add({4.0F + a, 1.0F - a, 0.0F, -1.0F}, {4.0F, 1.0F, b, -1.0F - b});
    script.reference.push_back({{4.0F, 1.0F, 0.0F, -1.0F}, TokenId{0}, TokenId{0}, {}, 0, {}});
  }
  return script;
}

TEST(NoiseRatio, OfHonestRoundingIsAboutOne) {
  const auto comparison = script_of(0x1p-12F, 0x1p-12F).run();
  ASSERT_TRUE(comparison->reference.present);
  EXPECT_EQ(comparison->reference.steps, 20);
  const double error = 0x1p-12 * std::sqrt(0.5);  // two of four entries
  EXPECT_DOUBLE_EQ(comparison->reference.error_a, error);
  EXPECT_DOUBLE_EQ(comparison->reference.error_b, error);
  const auto& metrics = comparison->steps[3]->metrics;
  // The derivation expects both sides within a factor of 4, so the envelope is known.
  ASSERT_FALSE(std::isnan(metric_value(metrics, "noise_ratio")));
  EXPECT_LT(metric_value(metrics, "noise_ratio"), 2.0);
  for (const Finding& finding : comparison->findings) EXPECT_NE(finding.id, "noise_excess");
}

// Alike at every step, so nothing in the run is out of the ordinary, and far within the a-priori
// bound: only the reference shows that one side is not merely rounding.
TEST(NoiseRatio, FindsAFaultThatIsAlikeAtEveryStep) {
  const auto comparison = script_of(0x1p-12F, 0x1p-6F).run();
  const Finding* excess = nullptr;
  for (const Finding& finding : comparison->findings) {
    if (finding.id == "noise_excess") excess = &finding;
  }
  ASSERT_NE(excess, nullptr);
  EXPECT_NE(excess->text.find("At 20 of 20 steps"), std::string::npos) << excess->text;
  EXPECT_NE(excess->text.find("B is the side"), std::string::npos) << excess->text;
}

TEST(NoiseRatio, NamesTheSideOfTheStepsInQuestion) {
  test::Script script = script_of(0x1p-11F, 0x1p-12F);  // A is usually further off
  script.forced[7].logits = {4.0F, 1.0F, 0.25F, -1.25F};
  script.forced[7].choice = TokenId{0};
  const auto comparison = script.run();
  const Finding* excess = test::find(*comparison, "noise_excess");
  ASSERT_NE(excess, nullptr);
  EXPECT_NE(excess->text.find("At 1 of 20 steps"), std::string::npos) << excess->text;
  EXPECT_NE(excess->text.find("B is the side"), std::string::npos) << excess->text;
}

// Both sides read the same int4 codes: their distance from the checkpoint is no noise of either.
TEST(NoiseRatio, IsNotKnownWhereBothSidesShareACoarserRounding) {
  for (const auto& change : std::vector<void (*)(RunConfig&)>{
           [](RunConfig& config) { config.quantisation = Quantisation::int4_symmetric; },
           [](RunConfig& config) { config.kv_dtype = KvDtype::fp8_e4m3; },
           [](RunConfig& config) { config.rope_table_dtype = RopeTableDtype::bf16; }}) {
    test::Script script = script_of(0x1p-12F, 0x1p-12F);
    change(script.facts.config_a);
    change(script.facts.config_b);
    const auto comparison = script.run();
    EXPECT_TRUE(comparison->reference.present);
    EXPECT_FALSE(comparison->reference.shared_rounding.empty());
    for (const auto& step : comparison->steps) {
      EXPECT_TRUE(std::isnan(metric_value(step->metrics, "noise_ratio")));
    }
  }
}

// Two checkpoints: what f64 over the one makes of f64 over the other, apart from what each side's
// arithmetic adds.
TEST(DriftSplit, ComesFromTheReferencesOfBothSides) {
  test::Script script = script_of(0x1p-12F, 0x1p-10F);
  EXPECT_EQ(script.run()->split.steps, 0);
  EXPECT_EQ(test::find(*script.run(), "drift_split"), nullptr);
  script.facts.model_sha256_a = "aaaa";
  script.facts.model_sha256_b = "bbbb";
  script.facts.lanes.push_back(Lane::reference_b);
  for (std::size_t step = 0; step < 20; ++step) {
    const float shift = step == 7 ? 0.75F : 0.5F;
    for (float& value : script.forced[step].logits) value += value == 4.0F ? shift : 0.0F;
    script.reference_b.push_back(
        {{4.0F + shift, 1.0F, 0.0F, -1.0F}, TokenId{0}, TokenId{0}, {}, 0, {}});
  }
  const auto comparison = script.run();
  const DriftSplit& split = comparison->split;
  EXPECT_EQ(split.steps, 20);
  EXPECT_EQ(split.weights.max_abs, 0.75);
  EXPECT_EQ(split.arithmetic_a.max_abs, 0x1p-12);
  EXPECT_EQ(split.arithmetic_b.max_abs, 0x1p-10);
  EXPECT_DOUBLE_EQ(split.weights.drift, 0.5 * std::sqrt(3.0) / 4.0);  // one of four entries
  EXPECT_DOUBLE_EQ(comparison->reference.error_b, 0x1p-10 * std::sqrt(0.5));
  EXPECT_GT(split.weights.mean_kl, 1000 * split.arithmetic_b.mean_kl);
  const Finding* finding = test::find(*comparison, "drift_split");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->text.find("nearly all of it is the weights"), std::string::npos);
  EXPECT_EQ(test::find(*comparison, "noise_excess"), nullptr);  // it is not noise
}

TEST(Drift, WithoutAnyCauseIsAnError) {
  test::Script script = script_of(0x1p-12F, 0x1p-12F);
  script.facts.config_b = script.facts.config_a;
  script.facts.config_b.threads = 1;
  const auto comparison = script.run();
  const Finding* finding = test::find(*comparison, "drift_without_cause");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::error);
  for (const auto& step : comparison->steps) {
    EXPECT_TRUE(std::isnan(metric_value(step->metrics, "noise_ratio")));
  }
  EXPECT_EQ(test::find(*script_of(0x1p-12F, 0x1p-12F).run(), "drift_without_cause"), nullptr);
}

// A that does not repeat itself proves nothing, whatever agrees.
TEST(Control, ThatFailsMakesTheVerdictInconclusive) {
  test::Script script = script_of(0.0F, 0.0F);
  script.control[3].logits[1] += 0.5F;
  const auto comparison = script.run();
  EXPECT_EQ(comparison->verdict, Tier::inconclusive);
  for (const TierCheck& check : comparison->tiers) {
    if (check.tier == Tier::inconclusive) continue;
    EXPECT_NE(check.holds, true) << name_of(check.tier);
  }
}

}  // namespace
}  // namespace driftscope
