// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <thread>

#include "analysis/compare/row_pairing.h"
#include "tests/compare/synthetic.h"

namespace driftscope {
namespace {

using test::Record;
using test::Script;

// Everything a reader can see, bits of numbers included.
std::string dump(const Comparison& c) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  std::string text = fmt::format("{}|{}|{}|{}|{}\n", c.verdict_text, c.tokens_equal, c.steps.size(),
                                 c.control.steps, bits(c.control.max_abs));
  for (const auto& step : c.steps) {
    text += fmt::format("{} {} {} {} {}:", step->step, step->token_a.value, step->choice_b.value,
                        step->token_b ? step->token_b->value : -1, step->flips.size());
    for (const double value : step->metrics.values) text += fmt::format(" {:x}", bits(value));
    text += '\n';
  }
  for (const LaneView& lane : c.lanes) {
    text += fmt::format("{} {} {}:", lane_name(lane.lane), trace_state_name(lane.state), lane.stop);
    for (const TokenId token : lane.tokens) text += fmt::format(" {}", token.value);
    text += '\n';
  }
  for (const TapDrift& tap : c.taps) {
    text += fmt::format("{} {}:", tap.spec.layer, tap.spec.operation);
    for (const double value : tap.rms) text += fmt::format(" {:x}", bits(value));
    text += '\n';
  }
  for (const Finding& finding : c.findings) text += finding.text + finding.evidence + '\n';
  for (const TierCheck& tier : c.tiers) text += tier.detail + '\n';
  for (const TokenPiece& piece : c.pieces)
    text += fmt::format("{}={} ", piece.id.value, piece.bytes);
  return text;
}

Script random_run(unsigned seed, std::size_t steps) {
  std::mt19937 random(seed);
  Script script;
  script.facts = test::facts_of(50, static_cast<std::int64_t>(steps));
  script.facts.taps = {{-1, "embedding", 4}, {0, "layer_output", 4}, {1, "layer_output", 4}};
  script.facts.lanes = {Lane::a, Lane::b, Lane::b_forced, Lane::control};
  for (std::size_t step = 0; step < steps; ++step) {
    test::Row a(50), b(50);
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<float>(random() % 1000U) / 100.0F;
      b[i] = a[i] + static_cast<float>(random() % 100U) / 1000.0F;
    }
    script.add(a, b);
    for (const auto& spec : script.facts.taps) {
      const float drift = spec.layer < 0 ? 0.0F : 0.001F * static_cast<float>(random() % 10U);
      script.a.back().taps[{spec.layer, spec.operation}] = {1.0F, 2.0F, 3.0F, 4.0F};
      script.forced.back().taps[{spec.layer, spec.operation}] = {1.0F + drift, 2.0F, 3.0F, 4.0F};
    }
  }
  return script;
}

// Whole lanes one after another, in the given order.
ComparisonPointer deliver_lane_by_lane(const Script& script, std::vector<Lane> order) {
  ComparisonBuilder builder(script.facts, script.policy);
  const std::map<Lane, const std::vector<Record>*> lanes{{Lane::a, &script.a},
                                                         {Lane::b, &script.b},
                                                         {Lane::b_forced, &script.forced},
                                                         {Lane::control, &script.control}};
  for (const Lane lane : order) {
    const auto& records = *lanes.at(lane);
    for (std::size_t i = 0; i < records.size(); ++i) {
      EXPECT_TRUE(test::deliver(builder, lane, static_cast<std::int64_t>(i), records[i]));
    }
  }
  for (const Lane lane : order) builder.finish_lane(lane, TraceState::complete, "steps");
  return builder.snapshot(TraceState::complete);
}

TEST(Builder, OrderOfArrivalChangesNothing) {
  const Script script = random_run(3, 12);
  const std::string expected = dump(*script.run());
  using enum Lane;
  for (const auto& order : std::vector<std::vector<Lane>>{{a, b, b_forced, control},
                                                          {control, b_forced, b, a},
                                                          {b, control, a, b_forced},
                                                          {b_forced, a, control, b}}) {
    EXPECT_EQ(dump(*deliver_lane_by_lane(script, order)), expected);
  }
}

TEST(Builder, RowsAreLetGoOncePaired) {
  const Script script = random_run(8, 3);
  ComparisonBuilder builder(script.facts, script.policy);
  for (std::int64_t step = 0; step < 3; ++step) {
    const auto i = static_cast<std::size_t>(step);
    // Once A first, once the others first.
    if (step == 1) {
      ASSERT_TRUE(test::deliver(builder, Lane::b_forced, step, script.forced[i]));
      ASSERT_TRUE(test::deliver(builder, Lane::control, step, script.control[i]));
      EXPECT_EQ(builder.rows_waiting(), 2U);
      ASSERT_TRUE(test::deliver(builder, Lane::a, step, script.a[i]));
    } else {
      ASSERT_TRUE(test::deliver(builder, Lane::a, step, script.a[i]));
      EXPECT_EQ(builder.rows_waiting(), 2U);  // for b_forced and for control
      ASSERT_TRUE(test::deliver(builder, Lane::b_forced, step, script.forced[i]));
      ASSERT_TRUE(test::deliver(builder, Lane::control, step, script.control[i]));
    }
    EXPECT_EQ(builder.rows_waiting(), 0U);
  }
}

TEST(Builder, RowsWhosePartnerWillNotComeAreLetGo) {
  const Script script = random_run(9, 2);
  ComparisonBuilder builder(script.facts, script.policy);
  ASSERT_TRUE(test::deliver(builder, Lane::a, 0, script.a[0]));
  builder.finish_lane(Lane::b_forced, TraceState::interrupted, "cancelled");
  builder.finish_lane(Lane::control, TraceState::interrupted, "cancelled");
  EXPECT_EQ(builder.rows_waiting(), 0U);
  ASSERT_TRUE(test::deliver(builder, Lane::a, 1, script.a[1]));
  EXPECT_EQ(builder.rows_waiting(), 0U);
}

TEST(Builder, TwoThreadsGiveEqualSnapshots) {
  const Script script = random_run(4, 12);
  std::string first, second;
  std::thread one([&] { first = dump(*script.run()); });
  std::thread two([&] { second = dump(*script.run()); });
  one.join();
  two.join();
  EXPECT_EQ(first, second);
}

TEST(Builder, SnapshotsDoNotChangeAfterwards) {
  const Script script = random_run(5, 6);
  ComparisonBuilder builder(script.facts, script.policy);
  ASSERT_TRUE(test::deliver(builder, Lane::a, 0, script.a[0]));
  ASSERT_TRUE(test::deliver(builder, Lane::b_forced, 0, script.forced[0]));
  const ComparisonPointer early = builder.snapshot(TraceState::partial);
  const std::string before = dump(*early);
  ASSERT_TRUE(test::deliver(builder, Lane::b, 0, script.b[0]));
  ASSERT_TRUE(test::deliver(builder, Lane::a, 1, script.a[1]));
  ASSERT_TRUE(test::deliver(builder, Lane::b_forced, 1, script.forced[1]));
  const ComparisonPointer later = builder.snapshot(TraceState::partial);
  EXPECT_EQ(dump(*early), before);
  EXPECT_EQ(early->steps.size(), 1U);
  EXPECT_EQ(later->steps.size(), 2U);
  EXPECT_LT(early->generation, later->generation);
  EXPECT_FALSE(early->steps[0]->token_b);
  EXPECT_EQ(later->steps[0]->token_b, script.b[0].emitted);
}

TEST(Builder, PairsTheForcedRowWithAsRow) {
  Script script;
  script.facts = test::facts_of(3, 1);
  script.add({3.0F, 1.0F, 0.0F}, {1.0F, 3.0F, 0.0F});
  const auto builder = script.builder();
  ASSERT_EQ(builder->compared_steps(), 1);
  const auto step = builder->step(0);
  EXPECT_EQ(step->token_a, TokenId{0});
  EXPECT_EQ(step->choice_b, TokenId{1});
  EXPECT_TRUE(step->flipped);
  EXPECT_EQ(metric_value(step->metrics, "max_abs"), 2.0);
  EXPECT_EQ(builder->step(1), nullptr);
  EXPECT_EQ(builder->step(-1), nullptr);
}

TEST(Builder, TapDriftByHand) {
  Script script;
  script.facts = test::facts_of(2, 1);
  script.facts.taps = {{0, "attn_out", 2}, {0, "layer_output", 2}, {1, "layer_output", 2}};
  script.add({1.0F, 0.0F}, {1.0F, 0.0F});
  script.a[0].taps = {{{0, "attn_out"}, {3.0F, 4.0F}},
                      {{0, "layer_output"}, {3.0F, 4.0F}},
                      {{1, "layer_output"}, {0.0F, 0.0F}}};
  script.forced[0].taps = {{{0, "attn_out"}, {3.0F, 4.0F}},
                           {{0, "layer_output"}, {3.0F, 4.5F}},
                           {{1, "layer_output"}, {0.0F, 0.0F}}};
  const ComparisonPointer comparison = script.run();
  ASSERT_EQ(comparison->taps.size(), 3U);
  EXPECT_EQ(comparison->taps[0].max_abs, std::vector<double>{0.0});
  const TapDrift& output = comparison->taps[1];
  EXPECT_EQ(output.max_abs, std::vector<double>{0.5});
  EXPECT_EQ(output.rms[0], std::sqrt(0.25 / 2.0));
  EXPECT_EQ(output.relative_rms[0], 0.1);   // 0.5 of length 5
  EXPECT_EQ(output.max_ulp[0], 1048576.0);  // 0.5 in units of 2^-21, the f32 spacing in [4, 8)
  EXPECT_EQ(comparison->taps[2].relative_rms, std::vector<double>{0.0});
}

TEST(Builder, TapsThatOneLaneLacksAreUndefined) {
  Script script;
  script.facts = test::facts_of(2, 1);
  script.facts.taps = {{0, "layer_output", 2}};
  script.add({1.0F, 0.0F}, {1.0F, 0.0F});
  script.a[0].taps = {{{0, "layer_output"}, {3.0F, 4.0F}}};
  EXPECT_TRUE(std::isnan(script.run()->taps[0].max_abs[0]));
}

TEST(Builder, RefusesGapsAndOtherLengths) {
  ComparisonBuilder builder(test::facts_of(2, 4), {});
  const Record row{{1.0F, 0.0F}, TokenId{0}, TokenId{0}, {}};
  ASSERT_TRUE(test::deliver(builder, Lane::a, 0, row));
  const auto gap = test::deliver(builder, Lane::a, 2, row);
  ASSERT_FALSE(gap);
  EXPECT_EQ(gap.error().kind, ErrorKind::malformed);
  EXPECT_EQ(gap.error().message,
            "lane a: step 2 came where step 1 was due; a lane's steps must come in order without "
            "gaps");
  const auto length =
      test::deliver(builder, Lane::b_forced, 0, {{1.0F, 0.0F, 0.0F}, TokenId{0}, TokenId{0}, {}});
  ASSERT_FALSE(length);
  EXPECT_EQ(length.error().kind, ErrorKind::inconclusive);
}

TEST(Builder, ControlMustRepeatEveryBit) {
  Script script = random_run(6, 5);
  ComparisonPointer comparison = script.run();
  EXPECT_TRUE(comparison->control.present);
  EXPECT_TRUE(comparison->control.bits_equal);
  EXPECT_EQ(comparison->control.steps, 5);
  EXPECT_EQ(comparison->control.max_abs, 0.0);

  script.control[3].logits[7] += 0.25F;
  comparison = script.run();
  EXPECT_FALSE(comparison->control.bits_equal);
  EXPECT_EQ(comparison->control.max_abs,
            double{script.control[3].logits[7]} - double{script.a[3].logits[7]});

  script = random_run(6, 5);
  script.control[2].logits[1] = -0.0F;
  script.a[2].logits[1] = 0.0F;
  comparison = script.run();
  EXPECT_FALSE(comparison->control.bits_equal);  // other bits, though no difference in size
  EXPECT_EQ(comparison->control.max_abs, 0.0);

  script.control.clear();
  EXPECT_FALSE(script.run()->control.present);
}

TEST(ControlCheck, KeepsFewRowsWhileNobodyAskedForControl) {
  ControlCheck check(ControlCheck::Retention::digests);
  const auto row = [](float value) {
    auto stored = std::make_shared<StoredRow>();
    stored->logits = {value, 1.0F};
    return stored;
  };
  for (std::int64_t step = 0; step < 100; ++step)
    check.accept_a(step, row(static_cast<float>(step)));
  EXPECT_EQ(check.rows_waiting(), 4U);
  for (std::int64_t step = 0; step < 100; ++step) {
    check.accept_control(step, row(static_cast<float>(step)));
  }
  EXPECT_EQ(check.compared(), 100);
  EXPECT_TRUE(check.bits_equal());
  EXPECT_EQ(check.rows_waiting(), 0U);
}

TEST(ControlCheck, DigestsTellThatARowDiffersButNotByHowMuch) {
  ControlCheck check(ControlCheck::Retention::digests);
  auto row = std::make_shared<StoredRow>();
  row->logits = {0.5F, 1.0F};
  for (std::int64_t step = 0; step < 10; ++step) check.accept_a(step, row);
  auto other = std::make_shared<StoredRow>(*row);
  other->logits[0] = std::nextafterf(0.5F, 1.0F);
  check.accept_control(0, other);
  EXPECT_FALSE(check.bits_equal());
  EXPECT_TRUE(std::isnan(check.max_abs()));
}

TEST(ControlCheck, KeepsNothingWhereNoControlWillCome) {
  ControlCheck check(ControlCheck::Retention::nothing);
  for (std::int64_t step = 0; step < 10; ++step) {
    check.accept_a(step, std::make_shared<StoredRow>());
  }
  EXPECT_EQ(check.rows_waiting(), 0U);
}

TEST(Builder, CoarsestDtypeOnThePath) {
  RunConfig a, b;
  EXPECT_EQ(coarsest_dtype(a, b), Dtype::f32);
  b.kv_dtype = KvDtype::f16;
  EXPECT_EQ(coarsest_dtype(a, b), Dtype::f16);
  a.logits_dtype = Dtype::bf16;
  EXPECT_EQ(coarsest_dtype(a, b), Dtype::bf16);
}

}  // namespace
}  // namespace driftscope
