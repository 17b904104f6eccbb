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
  ReferenceCheck check(true);
  EXPECT_FALSE(check.accept(Lane::a, 0, row({1.0F, 2.0F, 3.0F, 4.0F})));
  EXPECT_FALSE(check.accept(Lane::b_forced, 0, row({3.0F, 4.0F, 5.0F, 6.0F})));
  const auto errors = check.accept(Lane::reference, 0, row({1.5F, 1.5F, 3.5F, 3.5F}));
  ASSERT_TRUE(errors);
  EXPECT_EQ(errors->error_a, 0.5);  // -0.5, 0.5, -0.5, 0.5: mean 0
  EXPECT_EQ(errors->error_b, 0.5);  // the same, shifted by 2: softmax ignores a common shift
  EXPECT_EQ(check.rows_waiting(), 0U);
}

TEST(ReferenceCheck, KeepsRowsOnlyWhileTheirStepCanBecomeComplete) {
  ReferenceCheck check(true);
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

  ReferenceCheck none(false);
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

}  // namespace
}  // namespace driftscope
