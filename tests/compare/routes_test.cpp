// SPDX-License-Identifier: Apache-2.0
// Routes of a mixture of experts, by hand: what counts as a flip, and what is said about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/compare/rounding_bound.h"
#include "analysis/compare/route_tracker.h"
#include "analysis/compare/verdict_block.h"
#include "tests/compare/synthetic.h"

namespace driftscope::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two layers with routers, 3 and 7; two of eight experts each.
RouteSpec spec() { return {.layers = {3, 7}, .experts = 8, .chosen = 2}; }

struct Routed {
  std::vector<std::int32_t> experts;
  std::vector<float> margins;
};

Result<void> give(TraceSink& sink, Lane lane, std::int64_t step, const Routed& routed,
                  std::int32_t token = 1) {
  static const Row row{0.0F, 2.0F, 1.0F};
  const std::vector<float> weights(routed.experts.size(), 0.5F);
  StepRecord record;
  record.lane = lane;
  record.step = step;
  record.choice = record.emitted = TokenId{token};
  record.logits = row;
  record.routes = {routed.experts, weights, routed.margins};
  return sink.accept(record);
}

class TrackerSink final : public TraceSink {
 public:
  explicit TrackerSink(RouteSpec spec) : tracker(std::move(spec)) {}
  Result<void> accept(const StepRecord& record) override { return tracker.accept(record); }
  RouteTracker tracker;
};

const Routed kUsual{{5, 1, 0, 2}, {0.5F, 0.25F}};

TEST(RouteTracker, OrderByWeightIsNoFlipAnotherExpertIs) {
  TrackerSink sink(spec());
  ASSERT_TRUE(give(sink, Lane::a, 0, kUsual));
  ASSERT_TRUE(give(sink, Lane::b_forced, 0, {{1, 5, 2, 0}, {0.5F, 0.25F}}));
  EXPECT_TRUE(sink.tracker.result().flips.empty());
  EXPECT_EQ(sink.tracker.result().decisions, 2);
  ASSERT_TRUE(give(sink, Lane::a, 1, kUsual));
  ASSERT_TRUE(give(sink, Lane::b_forced, 1, {{1, 5, 3, 2}, {0.5F, 0.0004F}}));
  ASSERT_EQ(sink.tracker.result().flips.size(), 1U);
  const RouteFlip& flip = sink.tracker.result().flips[0];
  EXPECT_EQ(flip.step, 1);
  EXPECT_EQ(flip.layer, 7);
  EXPECT_EQ(flip.only_a, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(flip.only_b, (std::vector<std::int32_t>{3}));
  EXPECT_EQ(flip.margin_a, 0.25);
  EXPECT_EQ(flip.margin_b, double{0.0004F});
}

TEST(RouteTracker, TheOrderOfLanesChangesNothing) {
  const Routed other{{4, 6, 0, 2}, {0.5F, 0.25F}};
  TrackerSink first(spec());
  TrackerSink last(spec());
  for (std::int64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(give(first, Lane::a, step, kUsual));
    ASSERT_TRUE(give(first, Lane::b_forced, step, other));
    ASSERT_TRUE(give(last, Lane::b_forced, step, other));
  }
  for (std::int64_t step = 0; step < 3; ++step) ASSERT_TRUE(give(last, Lane::a, step, kUsual));
  ASSERT_EQ(first.tracker.result().flips.size(), 3U);
  ASSERT_EQ(last.tracker.result().flips.size(), 3U);
  EXPECT_EQ(last.tracker.result().flips[2].step, 2);
  EXPECT_EQ(last.tracker.result().flips[2].only_b, (std::vector<std::int32_t>{4, 6}));
}

// The row of the step where the texts part is the last that both computed from the same tokens.
TEST(RouteTracker, FreeLanesAreComparedUntilTheyPart) {
  const Routed other{{4, 6, 0, 2}, {0.5F, 0.25F}};
  TrackerSink sink(spec());
  for (std::int64_t step = 0; step < 4; ++step) {
    ASSERT_TRUE(give(sink, Lane::a, step, kUsual, 1));
    ASSERT_TRUE(give(sink, Lane::b, step, other, step == 1 ? 2 : 1));
  }
  EXPECT_EQ(sink.tracker.result().decisions_free, 4);
  EXPECT_EQ(sink.tracker.result().flips_free.size(), 2U);
  EXPECT_EQ(sink.tracker.result().decisions, 0);
}

TEST(RouteTracker, RoutesOfAnotherSizeAreMalformed) {
  TrackerSink sink(spec());
  const auto given = give(sink, Lane::a, 0, {{1, 2}, {0.5F}});
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().kind, ErrorKind::malformed);
  TrackerSink dense(RouteSpec{});
  EXPECT_TRUE(give(dense, Lane::a, 0, {}));
}

ExperimentFacts routed_facts(std::int64_t steps) {
  ExperimentFacts facts = facts_of(3, steps);
  facts.routes = spec();
  return facts;
}

TEST(RouteFindings, NameLayerStepExpertsAndMargins) {
  ComparisonBuilder builder(routed_facts(3), {});
  const Routed flipped{{3, 1, 0, 2}, {0.0004F, 0.25F}};
  for (std::int64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(give(builder, Lane::a, step, kUsual));
    ASSERT_TRUE(give(builder, Lane::b_forced, step, step == 2 ? flipped : kUsual));
    ASSERT_TRUE(give(builder, Lane::b, step, step == 2 ? flipped : kUsual));
  }
  EXPECT_TRUE(builder.route_flips(1).empty());
  EXPECT_EQ(builder.route_flips(2).size(), 1U);
  const auto comparison = builder.snapshot(TraceState::complete);
  const Finding* finding = find(*comparison, "route_flips");
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->text, HasSubstr("the router chose expert 3 instead of expert 5 in layer 3 "
                                       "at step 2, router margin 0.5 in A and 0.0004 in B"));
  EXPECT_THAT(finding->text, HasSubstr("1 of 6 router decisions differ, at 1 of 3 steps"));
  const auto evidence = nlohmann::json::parse(finding->evidence);
  EXPECT_EQ(evidence["flips"], 1);
  EXPECT_EQ(evidence["first"]["layer"], 3);
  EXPECT_EQ(evidence["first"]["only_b"], nlohmann::json({3}));
  EXPECT_THAT(verdict_block(*comparison, false),
              HasSubstr("routes        After A's own tokens the router"));
  ASSERT_NE(find(*comparison, "route_flips_free"), nullptr);
  EXPECT_EQ(find(*comparison, "routes_equal"), nullptr);
}

// The router's dtype enters the a-priori bound of mixtures only.
TEST(RouteBound, CountsTheRoutersDtype) {
  ExperimentFacts facts = routed_facts(4);
  facts.config_a.router_dtype = Dtype::bf16;
  const double mixture = rounding_bound(facts, 6).relative;
  facts.config_a.router_dtype = Dtype::f32;
  facts.config_a.matmul_plan.lanes = 8;  // so that there is a bound at all
  const double narrow = rounding_bound(facts, 6).relative;
  // One bf16 rounding, 2^-8 relative, in each of two layers with growth 3 and 1.5.
  EXPECT_GT(mixture, std::sqrt(9.0 + 2.25) * 0x1p-8);
  EXPECT_LT(narrow, 0x1p-8);
}

TEST(RouteFindings, EqualRoutesAreSaidAndDenseModelsSayNothing) {
  ComparisonBuilder equal(routed_facts(2), {});
  ComparisonBuilder dense(facts_of(3, 2), {});
  for (std::int64_t step = 0; step < 2; ++step) {
    for (const Lane lane : {Lane::a, Lane::b_forced, Lane::b}) {
      ASSERT_TRUE(give(equal, lane, step, kUsual));
      ASSERT_TRUE(give(dense, lane, step, {}));
    }
  }
  const auto same = equal.snapshot(TraceState::complete);
  const Finding* finding = find(*same, "routes_equal");
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->text, HasSubstr("all 4 decisions"));
  EXPECT_EQ(find(*same, "route_flips"), nullptr);
  const auto silent = dense.snapshot(TraceState::complete);
  for (const Finding& said : silent->findings) EXPECT_THAT(said.id, Not(HasSubstr("route")));
}

}  // namespace
}  // namespace driftscope::test
