// SPDX-License-Identifier: Apache-2.0
#include "tests/report/sample_comparison.h"

#include <limits>

namespace driftscope::testing {
namespace {

void set_metric(StepComparison& step, std::string_view id, double value) {
  step.metrics.values.at(*metric_index(id)) = value;
}

std::shared_ptr<StepComparison> blank_step(std::int64_t step) {
  auto entry = std::make_shared<StepComparison>();
  entry->step = step;
  entry->metrics.values.assign(metric_registry().size(), 0.0);
  return entry;
}

}  // namespace

std::unique_ptr<ComparisonBuilder> built_sample(const SampleShape& shape,
                                                const ComparePolicy& policy) {
  auto builder = std::make_unique<ComparisonBuilder>(sample_facts(shape), policy);
  const CaptureHeader header = sample_header(shape);
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    for (const Lane lane : {Lane::a, Lane::b_forced, Lane::b, Lane::control}) {
      if (auto done = emit_step(*builder, header, lane, step); !done) return nullptr;
    }
  }
  for (const Lane lane : shape.lanes) builder->finish_lane(lane, TraceState::complete, "steps");
  return builder;
}

Comparison handmade_comparison() {
  Comparison comparison;
  comparison.state = TraceState::complete;
  comparison.vocabulary = 4;
  comparison.planned_steps = 2;
  comparison.prompt_a = comparison.prompt_b = {TokenId{1}};
  comparison.prompt_text = "a <b> & \"c\"";
  comparison.model_a = comparison.model_b = "<model>";
  comparison.config_a_name = "left";
  comparison.config_b_name = "right";
  comparison.command = "driftscope run --prompt '<script>'";
  auto first = blank_step(0);
  first->token_a = first->choice_b = TokenId{1};
  first->token_b = TokenId{1};
  auto second = blank_step(1);
  second->token_a = TokenId{2};
  second->choice_b = TokenId{3};
  second->token_b = TokenId{3};
  second->flipped = true;
  second->metrics.max_abs_token = TokenId{3};
  set_metric(*second, "max_abs", 0.25);
  set_metric(*second, "rms", 0.1);
  set_metric(*second, "max_ulp", 3.0);
  set_metric(*second, "kl_ab", std::numeric_limits<double>::quiet_NaN());
  set_metric(*second, "headroom", std::numeric_limits<double>::infinity());
  second->metrics.top_a = {{TokenId{2}, 1.5F}, {TokenId{3}, 1.25F}};
  second->metrics.top_b = {{TokenId{3}, 1.5F}, {TokenId{2}, 1.375F}};
  second->flips = {{.x = TokenId{2},
                    .y = TokenId{3},
                    .rank_a_x = 0,
                    .rank_a_y = 1,
                    .rank_b_x = 1,
                    .rank_b_y = 0,
                    .gap_a = 0.25,
                    .gap_b = -0.125}};
  comparison.steps = {first, second};
  comparison.lanes = {{Lane::a, TraceState::complete, {TokenId{1}, TokenId{2}}, "steps"},
                      {Lane::b, TraceState::complete, {TokenId{1}, TokenId{3}}, "steps"}};
  comparison.first_divergence = Divergence{.step = 1,
                                           .token_a = TokenId{2},
                                           .token_b = TokenId{3},
                                           .margin_a = 0.25,
                                           .margin_b = 0.125,
                                           .gap_a = 0.25,
                                           .gap_b = 0.125,
                                           .drift = 0.1,
                                           .usual_drift = 0.05,
                                           .p95_pair_drift = 0.3,
                                           .drift_excess = 2.0,
                                           .tie_ulps = 2.0,
                                           .rounding_bound = 0.0,
                                           .cause = FlipCause::near_tie,
                                           .reason = "a near <tie>"};
  comparison.tokens_equal = 1;
  comparison.envelope_difference = {{"knob.kv_dtype", "f32", "<bf16>"}};
  comparison.findings = {{.id = "first_divergence",
                          .severity = Severity::warning,
                          .text = "step 1: \"=x\" <against> y",
                          .evidence = R"({"step":1})"}};
  comparison.tiers = {{Tier::bitwise, false, "1 of 2 steps differs"},
                      {Tier::semantic, std::nullopt, ""}};
  comparison.verdict = Tier::different;
  comparison.verdict_text = "The runs part at step 1 & stay apart.";
  comparison.control = {.present = true, .steps = 2, .max_abs = 0.0, .bits_equal = true};
  comparison.pieces = {{TokenId{1}, " a"}, {TokenId{2}, "=\"x\""}, {TokenId{3}, "\xC3"}};
  return comparison;
}

}  // namespace driftscope::testing
