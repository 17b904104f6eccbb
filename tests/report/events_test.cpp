// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "tests/report/sample_comparison.h"

namespace driftscope {
namespace {

using testing::SampleShape;

std::vector<std::uint64_t> bits_of(const std::vector<double>& values) {
  std::vector<std::uint64_t> bits;
  // One NaN is as good as another: metrics have no payload.
  for (const double value : values) {
    bits.push_back(value != value ? ~std::uint64_t{0} : std::bit_cast<std::uint64_t>(value));
  }
  return bits;
}

void expect_equal(const std::optional<Draw>& a, const std::optional<Draw>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (!a) return;
  EXPECT_EQ(bits_of({a->uniform, a->lower, a->upper}), bits_of({b->uniform, b->lower, b->upper}));
  EXPECT_EQ(a->candidates, b->candidates);
}

void expect_equal(const Divergence& a, const Divergence& b) {
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.token_a, b.token_a);
  EXPECT_EQ(a.token_b, b.token_b);
  EXPECT_EQ(a.cause, b.cause);
  EXPECT_EQ(a.reason, b.reason);
  EXPECT_EQ(a.rows_a, b.rows_a);
  EXPECT_EQ(a.rows_b, b.rows_b);
  EXPECT_EQ(bits_of({a.margin_a, a.margin_b, a.gap_a, a.gap_b, a.drift, a.usual_drift,
                     a.p95_pair_drift, a.drift_excess, a.tie_ulps, a.rounding_bound}),
            bits_of({b.margin_a, b.margin_b, b.gap_a, b.gap_b, b.drift, b.usual_drift,
                     b.p95_pair_drift, b.drift_excess, b.tie_ulps, b.rounding_bound}));
}

void expect_equal_steps(const Comparison& a, const Comparison& b) {
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    SCOPED_TRACE(i);
    const StepComparison& x = *a.steps[i];
    const StepComparison& y = *b.steps[i];
    EXPECT_EQ(x.step, y.step);
    EXPECT_EQ(x.token_a, y.token_a);
    EXPECT_EQ(x.choice_b, y.choice_b);
    EXPECT_EQ(x.token_b, y.token_b);
    EXPECT_EQ(x.flipped, y.flipped);
    EXPECT_EQ(bits_of(x.metrics.values), bits_of(y.metrics.values));
    EXPECT_EQ(x.metrics.max_abs_token, y.metrics.max_abs_token);
    EXPECT_EQ(x.metrics.top_a, y.metrics.top_a);
    EXPECT_EQ(x.metrics.top_b, y.metrics.top_b);
    EXPECT_EQ(x.metrics.health, y.metrics.health);
    EXPECT_EQ(x.flips, y.flips);
    EXPECT_EQ(x.rows_a, 1);  // as the sample says
    EXPECT_EQ(x.rows_b, 8 + x.step);
    EXPECT_EQ(x.rows_a, y.rows_a);
    EXPECT_EQ(x.rows_b, y.rows_b);
    expect_equal(x.draw_a, y.draw_a);
    expect_equal(x.draw_b, y.draw_b);
  }
}

void expect_equal_facts(const Comparison& a, const Comparison& b) {
  EXPECT_EQ(a.state, b.state);
  EXPECT_EQ(a.vocabulary, b.vocabulary);
  EXPECT_EQ(a.planned_steps, b.planned_steps);
  EXPECT_EQ(a.prompt_a, b.prompt_a);
  EXPECT_EQ(a.prompt_b, b.prompt_b);
  EXPECT_EQ(a.prompt_text, b.prompt_text);
  EXPECT_EQ(a.model_a, b.model_a);
  EXPECT_EQ(a.model_b, b.model_b);
  EXPECT_EQ(a.config_a_name, b.config_a_name);
  EXPECT_EQ(a.config_a_json, b.config_a_json);
  EXPECT_EQ(a.config_b_name, b.config_b_name);
  EXPECT_EQ(a.config_b_json, b.config_b_json);
  EXPECT_EQ(a.command, b.command);
  EXPECT_EQ(a.policy.top_k, b.policy.top_k);
  EXPECT_EQ(a.policy.max_abs_tolerance, b.policy.max_abs_tolerance);
  EXPECT_EQ(a.control.present, b.control.present);
  EXPECT_EQ(a.control.steps, b.control.steps);
  EXPECT_EQ(bits_of({a.control.max_abs}), bits_of({b.control.max_abs}));
  EXPECT_EQ(a.control.bits_equal, b.control.bits_equal);
  ASSERT_EQ(a.pieces.size(), b.pieces.size());
  for (std::size_t i = 0; i < a.pieces.size(); ++i) {
    EXPECT_EQ(a.pieces[i].id, b.pieces[i].id);
    EXPECT_EQ(a.pieces[i].bytes, b.pieces[i].bytes);
  }
  ASSERT_EQ(a.lanes.size(), b.lanes.size());
  for (std::size_t i = 0; i < a.lanes.size(); ++i) {
    EXPECT_EQ(a.lanes[i].lane, b.lanes[i].lane);
    EXPECT_EQ(a.lanes[i].state, b.lanes[i].state);
    EXPECT_EQ(a.lanes[i].stop, b.lanes[i].stop);
    EXPECT_EQ(a.lanes[i].tokens, b.lanes[i].tokens);
  }
}

void expect_equal_conclusions(const Comparison& a, const Comparison& b) {
  EXPECT_EQ(a.tokens_equal, b.tokens_equal);
  EXPECT_EQ(a.verdict, b.verdict);
  EXPECT_EQ(a.verdict_text, b.verdict_text);
  ASSERT_EQ(a.first_divergence.has_value(), b.first_divergence.has_value());
  if (a.first_divergence) expect_equal(*a.first_divergence, *b.first_divergence);
  ASSERT_EQ(a.first_flip.has_value(), b.first_flip.has_value());
  if (a.first_flip) expect_equal(*a.first_flip, *b.first_flip);
  ASSERT_EQ(a.envelope_difference.size(), b.envelope_difference.size());
  for (std::size_t i = 0; i < a.envelope_difference.size(); ++i) {
    EXPECT_EQ(a.envelope_difference[i].field, b.envelope_difference[i].field);
    EXPECT_EQ(a.envelope_difference[i].a, b.envelope_difference[i].a);
    EXPECT_EQ(a.envelope_difference[i].b, b.envelope_difference[i].b);
  }
  ASSERT_EQ(a.findings.size(), b.findings.size());
  for (std::size_t i = 0; i < a.findings.size(); ++i) {
    EXPECT_EQ(a.findings[i].id, b.findings[i].id);
    EXPECT_EQ(a.findings[i].text, b.findings[i].text);
    EXPECT_EQ(a.findings[i].evidence, b.findings[i].evidence);
  }
  ASSERT_EQ(a.taps.size(), b.taps.size());
  for (std::size_t i = 0; i < a.taps.size(); ++i) {
    EXPECT_EQ(a.taps[i].spec, b.taps[i].spec);
    EXPECT_EQ(bits_of(a.taps[i].max_abs), bits_of(b.taps[i].max_abs));
    EXPECT_EQ(bits_of(a.taps[i].rms), bits_of(b.taps[i].rms));
    EXPECT_EQ(bits_of(a.taps[i].relative_rms), bits_of(b.taps[i].relative_rms));
    EXPECT_EQ(bits_of(a.taps[i].max_ulp), bits_of(b.taps[i].max_ulp));
  }
  ASSERT_EQ(a.statistics.size(), b.statistics.size());
  for (std::size_t i = 0; i < a.statistics.size(); ++i) {
    EXPECT_EQ(a.statistics[i].metric, b.statistics[i].metric);
    EXPECT_EQ(bits_of({a.statistics[i].mean, a.statistics[i].p99, a.statistics[i].maximum}),
              bits_of({b.statistics[i].mean, b.statistics[i].p99, b.statistics[i].maximum}));
  }
}

// What a run prints: each step as soon as it is compared, so before the free lane has its token.
std::vector<std::string> event_lines(const SampleShape& shape, const ComparePolicy& policy,
                                     const Comparison& comparison) {
  const ExperimentFacts facts = testing::sample_facts(shape);
  const CaptureHeader header = testing::sample_header(shape);
  ComparisonBuilder builder(facts, policy);
  std::vector<std::string> lines{started_event(facts, policy)};
  std::int64_t sent = 0;
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    for (const Lane lane : {Lane::a, Lane::b_forced, Lane::b, Lane::control}) {
      EXPECT_TRUE(testing::emit_step(builder, header, lane, step));
      for (; sent < builder.compared_steps(); ++sent) {
        lines.push_back(step_event(*builder.step(sent), builder.tap_values(sent), facts.piece));
      }
    }
    lines.push_back(progress_event("decode", step + 1, shape.steps));
  }
  for (const Finding& finding : comparison.findings) lines.push_back(finding_event(finding));
  lines.push_back(done_event(comparison, "out/\xFF.h5", 1));
  return lines;
}

TEST(Events, RebuildTheComparisonBitForBit) {
  const SampleShape shape;
  const ComparePolicy policy{.top_k = 4, .max_abs_tolerance = 1e-7};
  const auto builder = testing::built_sample(shape, policy);
  ASSERT_NE(builder, nullptr);
  const ComparisonPointer expected = builder->snapshot(TraceState::complete);
  ASSERT_TRUE(expected->first_divergence);  // the sample parts at step 4
  ASSERT_TRUE(expected->steps[4]->draw_b);
  ASSERT_FALSE(expected->steps[5]->draw_b->candidates.empty());
  ASSERT_EQ(expected->first_divergence->step, 4);
  EventReader reader;
  EXPECT_EQ(reader.snapshot(), nullptr);
  EventReader::Event last;
  for (const std::string& line : event_lines(shape, policy, *expected)) {
    EXPECT_EQ(line.find('\n'), std::string::npos);
    auto event = reader.push(line);
    ASSERT_TRUE(event) << event.error().message << "\n" << line;
    last = *event;
  }
  ASSERT_TRUE(std::holds_alternative<EventReader::Done>(last));
  EXPECT_EQ(std::get<EventReader::Done>(last).capture_path, "out/\xFF.h5");
  EXPECT_EQ(std::get<EventReader::Done>(last).exit_code, 1);
  const ComparisonPointer read = reader.snapshot();
  ASSERT_NE(read, nullptr);
  expect_equal_facts(*expected, *read);
  expect_equal_steps(*expected, *read);
  expect_equal_conclusions(*expected, *read);
}

TEST(Events, GrowWhileTheRunGoesOn) {
  const SampleShape shape;
  const ComparePolicy policy;
  const auto builder = testing::built_sample(shape, policy);
  const auto lines = event_lines(shape, policy, *builder->snapshot(TraceState::complete));
  EventReader reader;
  ASSERT_TRUE(reader.push(lines[0]));
  ASSERT_NE(reader.snapshot(), nullptr);
  EXPECT_TRUE(reader.snapshot()->steps.empty());
  ASSERT_TRUE(reader.push(lines[1]));
  const ComparisonPointer one = reader.snapshot();
  EXPECT_EQ(one->steps.size(), 1U);
  EXPECT_EQ(one->state, TraceState::partial);
  auto progress = reader.push(lines[2]);
  ASSERT_TRUE(progress);
  ASSERT_TRUE(std::holds_alternative<EventReader::Progress>(*progress));
  EXPECT_EQ(std::get<EventReader::Progress>(*progress).phase, "decode");
  EXPECT_EQ(std::get<EventReader::Progress>(*progress).total, shape.steps);
  ASSERT_TRUE(reader.push(lines[3]));
  EXPECT_EQ(one->steps.size(), 1U);  // a snapshot does not change
  EXPECT_GT(reader.snapshot()->generation, one->generation);
}

TEST(Events, RefuseWhatIsNoEvent) {
  EventReader reader;
  for (const char* line :
       {"", "hello", "[]", "{}", R"({"event":"other"})", R"({"event":"step","step":0})",
        R"({"event":"done"})", R"({"event":7})", R"({"event":"progress","done":"x"})",
        R"({"event":"started","vocabulary":"many"})", R"({"event":"started","version":99})",
        R"({"event":"started","config_a":{"no_such_knob":1}})",
        R"({"event":"progress","done":1,"done":2})"}) {
    const auto event = reader.push(line);
    ASSERT_FALSE(event) << line;
    EXPECT_EQ(event.error().kind, ErrorKind::malformed) << line;
    EXPECT_THAT(event.error().message, ::testing::HasSubstr("event line")) << line;
  }
  EXPECT_FALSE(reader.push(std::string(100000, '[')));
}

TEST(Events, RefuseStepsThatDoNotFit) {
  const SampleShape shape;
  const auto builder = testing::built_sample(shape, {});
  const auto lines = event_lines(shape, {}, *builder->snapshot(TraceState::complete));
  EventReader reader;
  ASSERT_TRUE(reader.push(lines[0]));
  EXPECT_FALSE(reader.push(lines[3]));  // step 1 before step 0
  EXPECT_FALSE(reader.push(R"({"event":"step","step":0,"metrics":{"max_abs":1}})"));  // no taps
  EXPECT_FALSE(reader.push(lines[0]));                                                // again
  EXPECT_TRUE(reader.push(lines[1]));
  EXPECT_TRUE(reader.push(lines[1]));  // a step may be told again
  EXPECT_EQ(reader.snapshot()->steps.size(), 1U);
}

TEST(Events, CarryErrors) {
  EventReader reader;
  const Error error{.kind = ErrorKind::output, .message = "disk \"full\"", .detail = "a\nb"};
  const auto event = reader.push(error_event(error));
  ASSERT_TRUE(event);
  ASSERT_TRUE(std::holds_alternative<Error>(*event));
  EXPECT_EQ(std::get<Error>(*event).kind, error.kind);
  EXPECT_EQ(std::get<Error>(*event).message, error.message);
  EXPECT_EQ(std::get<Error>(*event).detail, error.detail);
}

}  // namespace
}  // namespace driftscope
