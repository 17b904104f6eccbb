// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "analysis/compare/comparison_builder.h"

namespace driftscope {
namespace {

const Finding* plans_finding(const Comparison& comparison) {
  for (const Finding& finding : comparison.findings) {
    if (finding.id == "plans_differ") return &finding;
  }
  return nullptr;
}

ComparisonPointer compare(PlanPolicy policy, std::int64_t neighbours_b) {
  ExperimentFacts facts;
  facts.vocabulary = 2;
  facts.hidden = 192;
  facts.intermediate = 512;
  facts.config_a.matmul_policy = policy;
  facts.config_b.matmul_policy = policy;
  facts.config_b.neighbours = neighbours_b;
  ComparisonBuilder builder(facts, {});
  const std::array<float, 2> row{1.0F, 0.0F};
  for (const Lane lane : {Lane::a, Lane::b_forced}) {
    StepRecord record;
    record.lane = lane;
    record.logits = row;
    EXPECT_TRUE(builder.accept(record));
  }
  return builder.snapshot(TraceState::complete);
}

// By the table of plan_policy.cpp: 192 outputs are narrow, so 1 row gives split 8 and 8 rows
// split 4.
TEST(PlanFinding, NamesRowsInFlightAndTheSplitThatTheyChanged) {
  const auto comparison = compare(PlanPolicy::shape_dependent, 7);
  const Finding* finding = plans_finding(*comparison);
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->text.find("1 row in flight (A) and 8 (B)"), std::string::npos)
      << finding->text;
  EXPECT_NE(finding->text.find("split-K from 8 to 4"), std::string::npos) << finding->text;
}

TEST(PlanFinding, SaysNothingWhereOnePlanServesEveryShape) {
  EXPECT_EQ(plans_finding(*compare(PlanPolicy::invariant, 7)), nullptr);
  EXPECT_EQ(plans_finding(*compare(PlanPolicy::shape_dependent, 0)), nullptr);
}

}  // namespace
}  // namespace driftscope
