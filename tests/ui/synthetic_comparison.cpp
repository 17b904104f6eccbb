// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/synthetic_comparison.h"

#include <array>
#include <cmath>
#include <limits>

#include "analysis/compare/listed_step.h"

namespace driftscope::ui {
namespace {

constexpr std::array<std::string_view, 16> kWords{
    " the", " and", " of",  " Lord",   " king",  " said",  ",",      " unto",
    ".",    "\n",   " day", " people", " shall", " house", " great", " water"};

// Small, fixed and different at each step: no generator, no seed.
double wave(std::int64_t step, double period, double phase) {
  return 0.5 + 0.5 * std::sin(static_cast<double>(step) / period + phase);
}

TokenId word_at(std::int64_t step, std::int64_t rank) {
  return TokenId{static_cast<std::int32_t>((step * 7 + rank * 3) % 16)};
}

std::vector<RankedToken> ranking(std::int64_t step, double margin, bool swapped, float drift) {
  std::vector<RankedToken> list;
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    const double logit = 18.0 - (rank == 0 ? 0.0 : margin + 0.35 * static_cast<double>(rank - 1));
    list.push_back({.token = word_at(step, rank), .logit = static_cast<float>(logit) + drift});
  }
  if (swapped) std::swap(list[0].token, list[1].token);
  if (step % 5 == 3) std::swap(list[4].token, list[5].token);
  return list;
}

void fill_step(StepComparison& row, const SyntheticOptions& options) {
  const std::int64_t step = row.step;
  row.flipped =
      options.divergence >= 0 && step >= options.divergence && (step - options.divergence) % 9 == 0;
  const double margin = row.flipped ? 0.004 : 0.05 + 2.5 * wave(step, 1.7, 0.3);
  const double drift = options.identical ? 0.0 : 0.01 * (0.2 + wave(step, 3.1, 1.0));
  auto& metrics = row.metrics;
  const bool swapped = row.flipped && !options.identical;
  metrics.top_a = ranking(step, margin, false, 0.0F);
  metrics.top_b =
      options.identical ? metrics.top_a : ranking(step, margin, swapped, static_cast<float>(drift));
  row.token_a = metrics.top_a[0].token;
  row.choice_b = metrics.top_b[0].token;
  const bool parted = options.divergence >= 0 && step >= options.divergence;
  row.token_b = parted ? word_at(step, 1) : row.token_a;
  set_metric(row, "max_abs", 4.0 * drift);
  set_metric(row, "rms", drift);
  set_metric(row, "centred_rms", 0.8 * drift);
  set_metric(row, "margin_a", margin);
  set_metric(row, "margin_b", row.flipped ? 0.006 : margin * 1.01);
  set_metric(row, "headroom",
             drift == 0.0 ? std::numeric_limits<double>::infinity() : margin / (2.0 * drift));
  set_metric(row, "kl_ab", drift * drift);
  set_metric(row, "top1_match", row.flipped ? 0.0 : 1.0);
  if (step == options.nan_step) metrics.health.nan_b = 3;
  if (swapped) {
    row.flips.push_back({.x = metrics.top_a[0].token,
                         .y = metrics.top_a[1].token,
                         .rank_a_x = 0,
                         .rank_a_y = 1,
                         .rank_b_x = 1,
                         .rank_b_y = 0,
                         .gap_a = margin,
                         .gap_b = -0.006});
  }
}

Divergence divergence_of(const StepComparison& row) {
  return {
      .step = row.step,
      .token_a = row.token_a,
      .token_b = row.token_b,
      .margin_a = 0.004,
      .margin_b = 0.006,
      .gap_a = 0.004,
      .gap_b = 0.006,
      .drift = 0.0061,
      .usual_drift = 0.0055,
      .p95_pair_drift = 0.02,
      .drift_excess = 1.109,
      .tie_ulps = 0.03,
      .rounding_bound = 0.5,
      .cause = FlipCause::near_tie,
      .reason =
          "near-tie: A's margin of 0.004 logit is 0.03 bf16 ulps: within the 4 that rounding alone "
          "can close, and the drift of 0.0061 is usual for this run."};
}

void add_lanes(Comparison& c) {
  LaneView a{.lane = Lane::a, .state = TraceState::complete, .tokens = {}, .stop = "steps"};
  LaneView b{.lane = Lane::b, .state = TraceState::complete, .tokens = {}, .stop = "steps"};
  LaneView forced{
      .lane = Lane::b_forced, .state = TraceState::complete, .tokens = {}, .stop = "steps"};
  for (const auto& row : c.steps) {
    a.tokens.push_back(row->token_a);
    b.tokens.push_back(*row->token_b);
    forced.tokens.push_back(row->token_a);
  }
  c.lanes = {a, b, forced};
}

void add_taps(Comparison& c) {
  for (int layer = -1; layer <= 6; ++layer) {
    TapDrift tap{.spec = {.layer = layer == 6 ? -1 : layer,
                          .operation = layer == -1  ? "embd"
                                       : layer == 6 ? "result_norm"
                                                    : "l_out",
                          .width = 128},
                 .max_abs = {},
                 .rms = {},
                 .relative_rms = {},
                 .max_ulp = {}};
    for (const auto& row : c.steps) {
      const double value =
          layer == -1 ? 0.0
                      : 1e-4 * (layer + 1) * (layer + 1) * (0.3 + wave(row->step, 2.3, layer));
      tap.max_abs.push_back(4 * value);
      tap.rms.push_back(value);
      tap.relative_rms.push_back(value);
      tap.max_ulp.push_back(std::floor(value * 1e5));
    }
    c.taps.push_back(tap);
  }
}

void add_words(Comparison& c) {
  c.model_a = c.model_b = "sample-llama-1.6M";
  c.config_a_name = "bf16-invariant";
  c.config_b_name = "bf16-shape-dependent";
  c.prompt_text = "In the beginning";
  c.command = "driftscope run --model samples/model -o demo.h5";
  c.envelope_difference = {
      {.field = "knob.matmul_policy", .a = "invariant", .b = "shape_dependent"},
      {.field = "knob.neighbours", .a = "0", .b = "7"}};
  c.findings = {{.id = "first_divergence",
                 .severity = Severity::notice,
                 .text = "The texts part at step 20 at a near tie.",
                 .evidence = "{\"step\":20}"},
                {.id = "batch",
                 .severity = Severity::info,
                 .text = "Rows in flight differ (1 and 8), and so does the reduction plan of every "
                         "matmul under shape_dependent.",
                 .evidence = "{}"}};
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    c.pieces.push_back(
        {.id = TokenId{static_cast<std::int32_t>(i)}, .bytes = std::string(kWords[i])});
  }
}

}  // namespace

std::shared_ptr<StepComparison> step_row(std::int64_t step) {
  auto row = std::make_shared<StepComparison>();
  row->step = step;
  row->metrics.values.assign(metric_registry().size(), std::numeric_limits<double>::quiet_NaN());
  return row;
}

void set_metric(StepComparison& step, std::string_view metric, double value) {
  step.metrics.values.at(metric_index(metric).value()) = value;
}

std::shared_ptr<Comparison> with_metric(std::string_view metric,
                                        const std::vector<double>& values) {
  auto comparison = std::make_shared<Comparison>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto row = step_row(static_cast<std::int64_t>(i));
    set_metric(*row, metric, values[i]);
    comparison->steps.push_back(row);
  }
  return comparison;
}

std::shared_ptr<Comparison> synthetic_comparison(const SyntheticOptions& options) {
  auto c = std::make_shared<Comparison>();
  c->state = TraceState::complete;
  c->vocabulary = 16;
  c->planned_steps = options.steps;
  for (std::int64_t step = 0; step < options.steps; ++step) {
    auto row = step_row(step);
    fill_step(*row, options);
    c->steps.push_back(row);
  }
  add_words(*c);
  add_lanes(*c);
  if (options.taps) add_taps(*c);
  const bool parts = options.divergence >= 0 && options.divergence < options.steps;
  c->tokens_equal = parts ? options.divergence : options.steps;
  if (parts) {
    c->first_divergence = divergence_of(*c->steps[static_cast<std::size_t>(options.divergence)]);
    c->first_flip = c->first_divergence;
  }
  c->verdict = options.identical ? Tier::bitwise : parts ? Tier::different : Tier::token;
  c->verdict_text = options.identical ? "Every logit has the same bits." : "";
  c->control = {.present = true, .steps = options.steps, .max_abs = 0.0, .bits_equal = true};
  c->statistics.push_back({.metric = "max_abs",
                           .count = options.steps,
                           .p50 = 0.02,
                           .p99 = 0.048,
                           .maximum = 0.049,
                           .argmax_step = 7});
  return c;
}

std::shared_ptr<Comparison> listed_comparison() {
  auto c = std::make_shared<Comparison>();
  const ListedRow a0{.token = TokenId{1},
                     .listed = {{TokenId{1}, -0.5F}, {TokenId{2}, -1.5F}, {TokenId{3}, -3.0F}},
                     .log_probabilities = true};
  const ListedRow b0{.token = TokenId{1},
                     .listed = {{TokenId{1}, -0.75F}, {TokenId{2}, -1.25F}, {TokenId{3}, -3.0F}},
                     .log_probabilities = true};
  const ListedRow a1{
      .token = TokenId{2}, .listed = {{TokenId{2}, -1.0F}}, .log_probabilities = true};
  const ListedRow b1{.token = TokenId{3}, .listed = {}, .log_probabilities = true};
  c->state = TraceState::complete;
  c->planned_steps = 3;
  c->imported_a = c->imported_b = ImportedSide{
      .format = "openai", .values = "log_probability", .listed = true, .prompt_text = {}};
  c->steps = {compare_listed_step(0, a0, b0, 10), compare_listed_step(1, a1, b1, 10)};
  c->lanes = {{.lane = Lane::a,
               .state = TraceState::complete,
               .tokens = {TokenId{1}, TokenId{2}, TokenId{1}},
               .stop = "length"},
              {.lane = Lane::b,
               .state = TraceState::complete,
               .tokens = {TokenId{1}, TokenId{3}},
               .stop = "stop"}};
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  c->first_divergence = Divergence{.step = 1,
                                   .token_a = TokenId{2},
                                   .token_b = TokenId{3},
                                   .margin_a = 1.0,
                                   .margin_b = unknown,
                                   .drift = unknown,
                                   .usual_drift = unknown,
                                   .drift_excess = unknown,
                                   .reason = {}};
  c->tokens_equal = 1;
  c->statistics = {{.metric = "margin_a", .count = 1, .maximum = 1.0, .argmax_step = 0},
                   {.metric = "dlogp", .count = 1, .maximum = -0.25, .argmax_step = 0}};
  c->verdict = Tier::different;
  return c;
}

}  // namespace driftscope::ui
