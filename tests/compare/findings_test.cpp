// SPDX-License-Identifier: Apache-2.0
// Every finding, and that it stays away where it has no ground.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/compare/synthetic.h"

namespace driftscope {
namespace {

using test::find;
using test::Row;
using test::Script;

const Row kRow{4.0F, 1.0F, 0.0F, -1.0F};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Script same_rows(int steps) {
  Script script;
  script.facts = test::facts_of(4, steps);
  for (int step = 0; step < steps; ++step) script.add(kRow, kRow);
  return script;
}
// The last step of `script` gets B's row.
ComparisonPointer with_last(Script script, const Row& b) {
  script.add(kRow, b);
  script.facts.planned_steps += 1;
  return script.run();
}
nlohmann::json evidence(const Finding* finding) {
  return finding == nullptr ? nlohmann::json() : nlohmann::json::parse(finding->evidence);
}
std::set<std::string> ids(const Comparison& comparison) {
  std::set<std::string> result;
  for (const Finding& finding : comparison.findings) result.insert(finding.id);
  return result;
}

TEST(Findings, OfIdenticalRuns) {
  const ComparisonPointer comparison = same_rows(3).run();
  EXPECT_EQ(ids(*comparison), (std::set<std::string>{"control_zero", "identical"}));
  EXPECT_EQ(find(*comparison, "identical")->text,
            "The logits of A and B have the same bits at all 3 steps compared");
  EXPECT_EQ(find(*comparison, "control_zero")->severity, Severity::info);
}

TEST(Findings, DriftWithoutFlip) {
  // d = -0.5 on the best and +0.25 on the second, margin 3: headroom 3 / 0.75.
  const ComparisonPointer comparison = with_last(same_rows(2), {3.5F, 1.25F, 0.0F, -1.0F});
  const Finding* finding = find(*comparison, "drift_without_flip");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(evidence(finding)["max_abs"], 0.5);
  EXPECT_EQ(evidence(finding)["step"], 2);
  EXPECT_EQ(evidence(finding)["least_headroom"], 4.0);
  EXPECT_EQ(find(*comparison, "identical"), nullptr);
  EXPECT_EQ(find(*comparison, "first_flip"), nullptr);
}

TEST(Findings, FlipAndDivergence) {
  Script script = same_rows(3);
  script.add(kRow, {1.0F, 4.0F, 0.0F, -1.0F});
  script.add(kRow, kRow);
  script.facts.planned_steps = 5;
  const ComparisonPointer comparison = script.run();
  EXPECT_EQ(evidence(find(*comparison, "first_divergence"))["step"], 3);
  EXPECT_EQ(evidence(find(*comparison, "first_divergence"))["token_a"], 0);
  EXPECT_EQ(evidence(find(*comparison, "first_divergence"))["token_b"], 1);
  EXPECT_EQ(evidence(find(*comparison, "first_divergence"))["margin_a"], 3.0);
  EXPECT_EQ(evidence(find(*comparison, "first_flip"))["step"], 3);
  EXPECT_EQ(find(*comparison, "flips_count")->text,
            "After A's own tokens, B chooses differently at 1 of 5 steps (20%)");
  EXPECT_EQ(find(*comparison, "divergence_at_step_0"), nullptr);
  EXPECT_EQ(find(*comparison, "drift_without_flip"), nullptr);
  const Finding* largest = find(*comparison, "largest_drift");
  ASSERT_NE(largest, nullptr);
  EXPECT_EQ(evidence(largest)["step"], 3);
  EXPECT_EQ(evidence(largest)["drift_excess"], "inf");  // no drift anywhere else
  EXPECT_EQ(largest->severity, Severity::warning);
}

TEST(Findings, DivergenceAtTheFirstStep) {
  const ComparisonPointer comparison = with_last(same_rows(0), {1.0F, 4.0F, 0.0F, -1.0F});
  EXPECT_NE(find(*comparison, "divergence_at_step_0"), nullptr);
}

TEST(Findings, Inputs) {
  Script script = same_rows(2);
  script.facts.prompt_b.push_back(TokenId{3});
  EXPECT_EQ(find(*script.run(), "prompt_ids_differ")->severity, Severity::error);
  script = same_rows(2);
  script.facts.model_sha256_b = std::string(64, 'b');
  EXPECT_NE(find(*script.run(), "checkpoints_differ"), nullptr);
  script.facts.model_sha256_b.clear();  // unknown is not different
  EXPECT_EQ(find(*script.run(), "checkpoints_differ"), nullptr);
  script = same_rows(2);
  script.facts.config_b.lm_head_dtype = WeightDtype::f16;
  EXPECT_NE(find(*script.run(), "weights_rounded_differently"), nullptr);
}

TEST(Findings, NanAndInfinity) {
  const ComparisonPointer nan = with_last(same_rows(2), {4.0F, kNan, 0.0F, kNan});
  EXPECT_EQ(evidence(find(*nan, "nan_in_logits")),
            (nlohmann::json{{"first_step", 2}, {"steps", 1}, {"entries_a", 0}, {"entries_b", 2}}));
  EXPECT_EQ(find(*nan, "infinity_in_logits"), nullptr);
  const ComparisonPointer infinite = with_last(same_rows(1), {kInf, 1.0F, 0.0F, -1.0F});
  EXPECT_EQ(evidence(find(*infinite, "infinity_in_logits"))["entries_b"], 1);
  EXPECT_EQ(find(*infinite, "nan_in_logits"), nullptr);
}

TEST(Findings, ControlThatIsNotZero) {
  Script script = same_rows(2);
  script.control[1].logits[2] = 0.5F;
  const ComparisonPointer comparison = script.run();
  const Finding* finding = find(*comparison, "control_not_zero");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::error);
  EXPECT_EQ(evidence(finding)["max_abs"], 0.5);
}

TEST(Findings, EndsAndInterruptions) {
  Script script = same_rows(3);
  script.facts.planned_steps = 10;
  script.stop_a = script.stop_b = "end_of_sequence";
  const ComparisonPointer ended = script.run();
  EXPECT_EQ(find(*ended, "lane_ended_early")->text,
            "A ended after 3 of 10 steps (end_of_sequence)");
  EXPECT_EQ(find(*ended, "interrupted"), nullptr);
  script.state = TraceState::interrupted;
  EXPECT_EQ(find(*script.run(), "interrupted")->text,
            "The run was interrupted: 3 steps of 10 planned were compared");
  script.state = TraceState::partial;
  EXPECT_NE(find(*script.run(), "partial"), nullptr);
}

Script tapped(int steps) {
  Script script = same_rows(steps);
  script.facts.taps = {{-1, "embedding", 2},
                       {0, "attn_out", 2},
                       {0, "layer_output", 2},
                       {1, "attn_out", 2},
                       {1, "layer_output", 2}};
  for (auto* lane : {&script.a, &script.forced}) {
    for (test::Record& record : *lane) {
      for (const TapSpec& spec : script.facts.taps) {
        record.taps[{spec.layer, spec.operation}] = {3.0F, 4.0F};
      }
    }
  }
  return script;
}

TEST(Findings, WhereDriftBegins) {
  Script script = tapped(3);
  // At step 1 in layer 1's attention by one unit, and 100 times as much in its output.
  script.forced[1].taps[{1, "attn_out"}][0] = 3.0F + 0x1p-22F;
  script.forced[1].taps[{1, "layer_output"}][0] = 3.0F + 100.0F * 0x1p-22F;
  // Step 2 begins earlier in the network, but later in time.
  script.forced[2].taps[{0, "attn_out"}][1] = 5.0F;
  const ComparisonPointer comparison = script.run();
  const auto begins = evidence(find(*comparison, "first_tap_drift"));
  EXPECT_EQ(begins["step"], 1);
  EXPECT_EQ(begins["layer"], 1);
  EXPECT_EQ(begins["operation"], "attn_out");
  EXPECT_EQ(begins["max_abs"], 0x1p-22);
  EXPECT_EQ(begins["max_ulp"], 1.0);
  EXPECT_EQ(find(*comparison, "identical")->severity, Severity::info);  // of the logits
  EXPECT_EQ(find(*comparison, Tier::bitwise)->holds, false);
}

// The output projection's own sum is no tap: logits that differ where every tap agrees say so.
TEST(Findings, DriftThatBeginsAtTheOutputProjection) {
  Script script = tapped(3);
  script.forced[1].logits = script.a[1].logits;
  script.forced[1].logits[2] += 0x1p-20F;
  script.forced[2].taps[{1, "layer_output"}][0] = 3.5F;
  const ComparisonPointer comparison = script.run();
  std::vector<const Finding*> begins;
  for (const Finding& finding : comparison->findings) {
    if (finding.id == "first_tap_drift") begins.push_back(&finding);
  }
  ASSERT_EQ(begins.size(), 2U);
  EXPECT_EQ(evidence(begins[0])["operation"], "lm_head");
  EXPECT_EQ(evidence(begins[0])["step"], 1);
  EXPECT_EQ(evidence(begins[0])["different_entries"], 1.0);
  EXPECT_NE(begins[0]->text.find("output projection (lm_head), step 1: 1 of "), std::string::npos)
      << begins[0]->text;
  EXPECT_EQ(evidence(begins[1])["step"], 2);
  EXPECT_EQ(evidence(begins[1])["layer"], 1);
}

TEST(Findings, UnitsAreThoseOfTheCoarserActivationType) {
  Script script = tapped(2);
  script.facts.config_b.activation_dtype = Dtype::bf16;
  script.forced[1].taps[{0, "attn_out"}][0] = 3.0F + 0x1p-6F;  // bf16 has 7 bits below 2^1
  EXPECT_NE(find(*script.run(), "first_tap_drift")->text.find(", 1 unit in the last place of bf16"),
            std::string::npos);
  script.forced[1].taps[{0, "attn_out"}][0] = -3.0F;  // across zero a count of units says nothing
  EXPECT_EQ(find(*script.run(), "first_tap_drift")->text.find("unit"), std::string::npos);
}

TEST(Findings, EqualBitsAndAnotherDraw) {
  Script script = tapped(3);
  script.forced[2].choice = TokenId{1};
  const ComparisonPointer comparison = script.run();
  EXPECT_EQ(find(*comparison, Tier::bitwise)->holds, false);
  EXPECT_EQ(find(*comparison, Tier::bitwise)->detail,
            "the logits of all 3 steps have the same bits, but the choices part at step 2");
}

TEST(Findings, WhereDriftGrowsMost) {
  Script script = tapped(2);
  script.forced[1].logits = {3.5F, 1.25F, 0.0F, -1.0F};
  script.forced[1].taps[{0, "attn_out"}][0] = 3.0F + 1.0F / 64.0F;
  script.forced[1].taps[{0, "layer_output"}][0] = 3.0F + 1.0F / 32.0F;  // 2 times
  script.forced[1].taps[{1, "attn_out"}][0] = 3.0F + 1.0F / 2.0F;       // 16 times
  script.forced[1].taps[{1, "layer_output"}][0] = 3.0F + 1.0F;          // 2 times
  const auto jump = evidence(find(*script.run(), "tap_jump"));
  EXPECT_EQ(jump["step"], 1);
  EXPECT_EQ(jump["layer"], 1);
  EXPECT_EQ(jump["operation"], "attn_out");
  EXPECT_NEAR(jump["growth"].get<double>(), 16.0, 1e-12);
}

TEST(Findings, NothingAboutTapsWithoutDrift) {
  const ComparisonPointer comparison = tapped(2).run();
  EXPECT_EQ(find(*comparison, "first_tap_drift"), nullptr);
  EXPECT_EQ(find(*comparison, "tap_jump"), nullptr);
}

TEST(Findings, EvidenceIsAlwaysAnObject) {
  for (const auto& comparison :
       {same_rows(2).run(), with_last(same_rows(2), {1.0F, 4.0F, kNan, kInf}),
        same_rows(0).run()}) {
    for (const Finding& finding : comparison->findings) {
      EXPECT_TRUE(nlohmann::json::parse(finding.evidence).is_object()) << finding.id;
      EXPECT_FALSE(finding.text.empty()) << finding.id;
      EXPECT_EQ(finding.text.find('\n'), std::string::npos) << finding.id;
    }
  }
}

}  // namespace
}  // namespace driftscope
