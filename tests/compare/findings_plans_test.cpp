// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "analysis/compare/comparison_builder.h"

namespace driftscope {
namespace {

const Finding* find_finding(const Comparison& comparison, std::string_view id) {
  for (const Finding& finding : comparison.findings) {
    if (finding.id == id) return &finding;
  }
  return nullptr;
}
const Finding* plans_finding(const Comparison& comparison) {
  return find_finding(comparison, "plans_differ");
}

ComparisonPointer compare(const RunConfig& a, const RunConfig& b) {
  ExperimentFacts facts;
  facts.vocabulary = 2;
  facts.hidden = 192;
  facts.intermediate = 512;
  facts.config_a = a;
  facts.config_b = b;
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

ComparisonPointer compare(PlanPolicy policy, std::int64_t neighbours_b) {
  RunConfig a;
  a.matmul_policy = policy;
  RunConfig b = a;
  b.neighbours = neighbours_b;
  return compare(a, b);
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

// 1024 outputs are wide: 1 row gives split 8 / 4 = 2, 8 rows 4 / 4 = 1.
TEST(PlanFinding, NamesTheOutputProjection) {
  ExperimentFacts facts;
  facts.vocabulary = 1024;
  facts.hidden = 192;
  facts.intermediate = 512;
  facts.config_a.matmul_policy = facts.config_b.matmul_policy = PlanPolicy::shape_dependent;
  facts.config_b.neighbours = 7;
  const auto comparison = ComparisonBuilder(facts, {}).snapshot(TraceState::complete);
  const Finding* finding = plans_finding(*comparison);
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(
      finding->text.find("output projection (lm_head, 1024 outputs of 192 terms): split-K from "
                         "2 to 1"),
      std::string::npos)
      << finding->text;
}

// The same rows on both sides: no order that the batch changed.
TEST(PlanFinding, AnAccumulatorIsNoOrder) {
  RunConfig a;
  RunConfig b;
  b.matmul_plan.accumulator = Accumulator::f64;
  const auto comparison = compare(a, b);
  const Finding* finding = plans_finding(*comparison);
  ASSERT_NE(finding, nullptr);
  EXPECT_TRUE(finding->text.starts_with(
      "The sums differ in the down projection (192 outputs of 512 terms): accumulator from f32 to "
      "f64"))
      << finding->text;
}

TEST(PlanFinding, SaysNothingWhereOnePlanServesEveryShape) {
  EXPECT_EQ(plans_finding(*compare(PlanPolicy::invariant, 7)), nullptr);
  EXPECT_EQ(plans_finding(*compare(PlanPolicy::shape_dependent, 0)), nullptr);
}

TEST(RankFinding, SaysWhereAndInWhatOrderPartialSumsMeet) {
  RunConfig a;
  RunConfig b;
  b.tensor_parallel = 4;
  b.all_reduce = AllReduce::ring;
  b.reduce_dtype = Dtype::bf16;
  const auto comparison = compare(a, b);
  const Finding* finding = find_finding(*comparison, "ranks_differ");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->text.find("one sum on one rank (A)"), std::string::npos) << finding->text;
  EXPECT_NE(finding->text.find("partial sums of 4 ranks that meet in a ring in bf16 (B)"),
            std::string::npos)
      << finding->text;
  EXPECT_EQ(plans_finding(*comparison), nullptr);  // one plan serves every shape
}

// The same sums in the same order: the ranks are told, a difference of plans is not.
TEST(RankFinding, AlignedTreesAreNamed) {
  RunConfig a;
  a.all_reduce = AllReduce::tree;
  a.tensor_parallel_invariant = true;
  RunConfig b = a;
  b.tensor_parallel = 2;
  const auto comparison = compare(a, b);
  const Finding* finding = find_finding(*comparison, "ranks_differ");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->text.find("one tree of sums"), std::string::npos) << finding->text;
  EXPECT_EQ(plans_finding(*comparison), nullptr);
}

// A share of 512 / 8 = 64 terms leaves room for 64 / 32 = 2 chunks, where 512 have 8.
TEST(RankFinding, PlansOfSharesAreThoseOfTheirShape) {
  RunConfig a;
  a.matmul_policy = PlanPolicy::shape_dependent;
  RunConfig b = a;
  b.tensor_parallel = 8;
  const auto comparison = compare(a, b);
  const Finding* plans = plans_finding(*comparison);
  ASSERT_NE(plans, nullptr);
  EXPECT_NE(plans->text.find("split-K from 8 to 2"), std::string::npos) << plans->text;
  EXPECT_NE(plans->text.find("1 row in flight on 1 rank (A) and 1 row in flight on 8 ranks (B)"),
            std::string::npos)
      << plans->text;
}

TEST(RankFinding, SaysNothingWhereRanksAreAlike) {
  RunConfig a;
  a.tensor_parallel = 4;
  EXPECT_EQ(find_finding(*compare(a, a), "ranks_differ"), nullptr);
  RunConfig one;
  RunConfig one_ring = one;
  one_ring.all_reduce = AllReduce::ring;  // nobody to add to
  EXPECT_EQ(find_finding(*compare(one, one_ring), "ranks_differ"), nullptr);
}

// Rows as recorded, step by step: 1 and 1, 1 and 8, 1 and 9.
TEST(PlanFinding, TakesTheRowsThatWereRecordedAndNamesTheStep) {
  ExperimentFacts facts;
  facts.vocabulary = 2;
  facts.hidden = 192;
  facts.intermediate = 512;
  facts.config_a.matmul_policy = facts.config_b.matmul_policy = PlanPolicy::shape_dependent;
  facts.config_b.neighbours = 100;  // not what was in flight
  ComparisonBuilder builder(facts, {});
  const std::array<float, 2> row{1.0F, 0.0F};
  const std::array<std::int64_t, 3> rows_b{1, 8, 9};
  for (std::int64_t step = 0; step < 3; ++step) {
    for (const Lane lane : {Lane::a, Lane::b_forced}) {
      StepRecord record;
      record.lane = lane;
      record.step = step;
      record.logits = row;
      record.rows_in_flight = lane == Lane::a ? 1 : rows_b[static_cast<std::size_t>(step)];
      EXPECT_TRUE(builder.accept(record));
    }
  }
  const auto comparison = builder.snapshot(TraceState::complete);
  const Finding* finding = plans_finding(*comparison);
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->text.find("decoding with 1 row in flight (A) and 8 (B) at step 1 changes"),
            std::string::npos)
      << finding->text;
  EXPECT_NE(finding->text.find("split-K from 8 to 4"), std::string::npos) << finding->text;
}

}  // namespace
}  // namespace driftscope
