// SPDX-License-Identifier: Apache-2.0
// Findings about drift: where it begins, how large it gets, what it flips.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/compare/findings.h"
#include "analysis/compare/statistics.h"
#include "analysis/compare/value_words.h"

namespace driftscope {

namespace {

using Json = nlohmann::ordered_json;

std::int64_t count_flips(const Comparison& comparison) {
  return std::count_if(comparison.steps.begin(), comparison.steps.end(),
                       [](const auto& step) { return step->flipped; });
}

bool any_bit_differs(const Comparison& comparison) {
  return std::any_of(comparison.steps.begin(), comparison.steps.end(), [](const auto& step) {
    return metric_value(step->metrics, "different_entries") != 0.0;
  });
}

// The step with the largest value of a metric, or null if it is defined nowhere.
const StepComparison* largest_step(const Comparison& comparison, std::string_view metric) {
  const StepComparison* largest = nullptr;
  for (const auto& step : comparison.steps) {
    const double value = metric_value(step->metrics, metric);
    if (std::isnan(value)) continue;
    if (largest == nullptr || value > metric_value(largest->metrics, metric)) largest = step.get();
  }
  return largest;
}

Json token_json(const std::optional<TokenId>& token) {
  return token ? Json(token->value) : Json(nullptr);
}

Json divergence_json(const Divergence& divergence) {
  return {{"step", divergence.step},
          {"token_a", token_json(divergence.token_a)},
          {"token_b", token_json(divergence.token_b)},
          {"margin_a", json_number(divergence.margin_a)},
          {"margin_b", json_number(divergence.margin_b)},
          {"drift", json_number(divergence.drift)},
          {"usual_drift", json_number(divergence.usual_drift)},
          {"p95_pair_drift", json_number(divergence.p95_pair_drift)},
          {"drift_excess", json_number(divergence.drift_excess)},
          {"tie_ulps", json_number(divergence.tie_ulps)},
          {"rounding_bound", json_number(divergence.rounding_bound)},
          {"cause", name_of(divergence.cause)}};
}

// A flip that rounding explains is worth a notice, one that it does not a warning.
Severity severity_of(FlipCause cause) {
  switch (cause) {
    case FlipCause::tie_break:
    case FlipCause::near_tie:
    case FlipCause::sampler:
      return Severity::notice;
    case FlipCause::excess_drift:
    case FlipCause::input:
    case FlipCause::unexplained:
      return Severity::warning;
  }
  return Severity::warning;
}

std::string place_of(const TapSpec& spec) {
  if (spec.layer < 0) return fmt::format("operation {} (outside the layers)", spec.operation);
  return fmt::format("layer {}, operation {}", spec.layer, spec.operation);
}

bool differs(const TapDrift& tap, std::size_t step) {
  return step < tap.max_abs.size() && !(tap.max_abs[step] == 0.0);
}

std::size_t tapped_steps(const Comparison& comparison) {
  std::size_t steps = 0;
  for (const TapDrift& tap : comparison.taps) steps = std::max(steps, tap.max_abs.size());
  return steps;
}

}  // namespace

void find_identity(const RunContext& context, std::vector<Finding>& findings) {
  const Comparison& comparison = context.comparison;
  if (comparison.steps.empty() || any_bit_differs(comparison) || count_flips(comparison) > 0 ||
      comparison.first_divergence) {
    return;
  }
  const auto steps = static_cast<std::int64_t>(comparison.steps.size());
  findings.push_back(
      make_finding("identical", Severity::info,
                   fmt::format("The logits of A and B have the same bits at all {} compared",
                               counted(steps, "step")),
                   {{"steps", steps}}));
}

void find_divergence(const RunContext& context, std::vector<Finding>& findings) {
  const Comparison& comparison = context.comparison;
  if (!comparison.first_divergence) return;
  const Divergence& divergence = *comparison.first_divergence;
  findings.push_back(make_finding(
      "first_divergence", severity_of(divergence.cause),
      fmt::format("The texts part at step {} after {}: A goes on with {}, B with {}. {}",
                  divergence.step, counted(comparison.tokens_equal, "equal token"),
                  describe_token(comparison, divergence.token_a),
                  describe_token(comparison, divergence.token_b), divergence.reason),
      divergence_json(divergence)));
  if (divergence.step != 0) return;
  findings.push_back(make_finding(
      "divergence_at_step_0", severity_of(divergence.cause),
      fmt::format(
          "The very first token differs ({}): before rounding, look at the input, template, "
          "tokenizer and weights, or at another computation altogether",
          name_of(divergence.cause)),
      {{"cause", name_of(divergence.cause)}}));
}

void find_flip(const RunContext& context, std::vector<Finding>& findings) {
  const Comparison& comparison = context.comparison;
  if (!comparison.first_flip) return;
  const Divergence& flip = *comparison.first_flip;
  findings.push_back(make_finding(
      "first_flip", severity_of(flip.cause),
      fmt::format(
          "After A's own tokens, B first chooses differently at step {}: {} instead of {}. {}",
          flip.step, describe_token(comparison, flip.token_b),
          describe_token(comparison, flip.token_a), flip.reason),
      divergence_json(flip)));
}

void find_flip_count(const RunContext& context, std::vector<Finding>& findings) {
  const Comparison& comparison = context.comparison;
  const std::int64_t flips = count_flips(comparison);
  if (flips == 0) return;
  const auto steps = static_cast<std::int64_t>(comparison.steps.size());
  findings.push_back(
      make_finding("flips_count", Severity::notice,
                   fmt::format("After A's own tokens, B chooses differently at {} of {} ({:.2g}%)",
                               flips, counted(steps, "step"),
                               100.0 * static_cast<double>(flips) / static_cast<double>(steps)),
                   {{"flips", flips}, {"steps", steps}}));
}

void find_drift_without_flip(const RunContext& context, std::vector<Finding>& findings) {
  const Comparison& comparison = context.comparison;
  if (!any_bit_differs(comparison) || count_flips(comparison) > 0 || comparison.first_divergence) {
    return;
  }
  const StepComparison* largest = largest_step(comparison, "max_abs");
  if (largest == nullptr) return;
  double headroom = std::numeric_limits<double>::infinity();
  for (const auto& step : comparison.steps) {
    headroom = std::fmin(headroom, metric_value(step->metrics, "headroom"));
  }
  const double max_abs = metric_value(largest->metrics, "max_abs");
  // Headroom promises something only where every entry took part in it.
  for (const auto& step : comparison.steps) {
    const RowHealth& health = step->metrics.health;
    if (health.nan_a + health.nan_b + health.infinite_a + health.infinite_b > 0) return;
  }
  findings.push_back(make_finding(
      "drift_without_flip", Severity::notice,
      fmt::format("The logits drift but no choice changes: largest difference {} at step {}, least "
                  "headroom {} (above 1 no flip is possible)",
                  figure(max_abs), largest->step, figure(headroom)),
      {{"max_abs", json_number(max_abs)},
       {"step", largest->step},
       {"least_headroom", json_number(headroom)}}));
}

void find_largest_drift(const RunContext& context, std::vector<Finding>& findings) {
  const Comparison& comparison = context.comparison;
  const StepComparison* largest = largest_step(comparison, "centred_rms");
  if (largest == nullptr || metric_value(largest->metrics, "centred_rms") == 0.0) return;
  const double drift = metric_value(largest->metrics, "centred_rms");
  const double excess = metric_value(largest->metrics, "drift_excess");
  const bool excessive = excess >= comparison.policy.excess_factor;
  const std::string single =
      numbers_comparable(comparison)
          ? fmt::format("; largest single logit difference there {}, of {}",
                        figure(metric_value(largest->metrics, "max_abs")),
                        describe_token(comparison, largest->metrics.max_abs_token))
          : std::string();
  findings.push_back(make_finding(
      "largest_drift", excessive ? Severity::warning : Severity::info,
      fmt::format("Drift is largest at step {}: {}, {} times the run's usual {}{}", largest->step,
                  figure(drift), figure(excess), figure(context.usual_drift), single),
      {{"step", largest->step},
       {"centred_rms", json_number(drift)},
       {"drift_excess", json_number(excess)},
       {"max_abs", json_number(metric_value(largest->metrics, "max_abs"))},
       {"token", largest->metrics.max_abs_token.value}}));
}

namespace {

struct TapPlace {
  const TapDrift* tap = nullptr;
  std::size_t step = 0;
};

// The first step with a tap that differs, and of that step the first in the order of the network.
std::optional<TapPlace> first_tap(const Comparison& comparison) {
  for (std::size_t step = 0; step < tapped_steps(comparison); ++step) {
    for (const TapDrift& tap : comparison.taps) {
      if (differs(tap, step)) return TapPlace{.tap = &tap, .step = step};
    }
  }
  return std::nullopt;
}

// ", 2 units in the last place of bf16": of the coarser activation type. Empty where the two values
// are so far apart, or on two sides of zero, that counting steps between them says nothing.
std::string describe_units(double max_ulp, const ExperimentFacts& facts) {
  const Dtype a = facts.config_a.activation_dtype;
  const Dtype b = facts.config_b.activation_dtype;
  const Dtype dtype = significand_bits(b) < significand_bits(a) ? b : a;
  const double units = std::ldexp(max_ulp, significand_bits(dtype) - significand_bits(Dtype::f32));
  constexpr double kTellingUnits = 4096.0;
  if (std::isnan(units) || units > kTellingUnits) return {};
  return fmt::format(", {} unit{} in the last place of {}", figure(units), units == 1.0 ? "" : "s",
                     dtype_name(dtype));
}

void report_first_tap(const RunContext& context, const TapPlace& at, std::string_view words,
                      std::vector<Finding>& findings) {
  const TapDrift& tap = *at.tap;
  findings.push_back(
      make_finding("first_tap_drift", Severity::notice,
                   fmt::format("{} {}, step {}: max_abs {}{}, relative rms {}", words,
                               place_of(tap.spec), at.step, figure(tap.max_abs[at.step]),
                               describe_units(tap.max_ulp[at.step], context.facts),
                               figure(tap.relative_rms[at.step])),
                   {{"step", at.step},
                    {"layer", tap.spec.layer},
                    {"operation", tap.spec.operation},
                    {"max_abs", json_number(tap.max_abs[at.step])},
                    {"rms", json_number(tap.rms[at.step])},
                    {"relative_rms", json_number(tap.relative_rms[at.step])},
                    {"max_ulp", json_number(tap.max_ulp[at.step])}}));
}

// The first step whose logits differ although every tap of it has the same bits: what differs there
// is the output projection alone, whose own sum is not a tap.
const StepComparison* first_head_drift(const Comparison& comparison,
                                       const std::optional<TapPlace>& tap) {
  for (const auto& step : comparison.steps) {
    const auto index = static_cast<std::size_t>(step->step);
    if ((tap && index >= tap->step) || index >= tapped_steps(comparison)) return nullptr;
    if (metric_value(step->metrics, "different_entries") != 0.0) return step.get();
  }
  return nullptr;
}

}  // namespace

void find_first_tap_drift(const RunContext& context, std::vector<Finding>& findings) {
  const Comparison& comparison = context.comparison;
  const auto tap = first_tap(comparison);
  const StepComparison* head = first_head_drift(comparison, tap);
  if (head != nullptr) {
    const double entries = metric_value(head->metrics, "different_entries");
    const double max_abs = metric_value(head->metrics, "max_abs");
    findings.push_back(make_finding(
        "first_tap_drift", Severity::notice,
        fmt::format("Drift begins at the output projection (lm_head), step {}: {:.0f} of {} logits "
                    "differ, by up to {}, while every recorded tensor before it has the same bits",
                    head->step, entries, context.facts.vocabulary, figure(max_abs)),
        {{"step", head->step},
         {"operation", "lm_head"},
         {"different_entries", json_number(entries)},
         {"max_abs", json_number(max_abs)}}));
  }
  if (tap) {
    report_first_tap(context, *tap,
                     head != nullptr ? "Inside the network it begins at" : "Drift begins at",
                     findings);
  }
}

// Drift beyond what the errors against f64 predict: the side with the larger error is named.
void find_noise_excess(const RunContext& context, std::vector<Finding>& findings) {
  const Comparison& comparison = context.comparison;
  if (!comparison.reference.present || context.bound.relative == 0.0) return;
  const double factor = comparison.policy.excess_factor;
  std::int64_t steps = 0;
  double error_a = 0.0;
  double error_b = 0.0;
  for (const auto& step : comparison.steps) {
    if (!(metric_value(step->metrics, "noise_ratio") >= factor)) continue;
    ++steps;
    error_a += metric_value(step->metrics, "error_a");
    error_b += metric_value(step->metrics, "error_b");
  }
  if (steps == 0) return;
  error_a /= static_cast<double>(steps);
  error_b /= static_cast<double>(steps);
  // At those steps, each side's error against what the derivation of the bound expects of it.
  const bool b = error_b * context.bound.relative_a > error_a * context.bound.relative_b;
  findings.push_back(make_finding(
      "noise_excess", Severity::warning,
      fmt::format(
          "At {} of {} the drift is {} times and more what rounding makes of it by the f64 "
          "reference; {} is the side that is too far from exact (errors there: A {}, B {}): "
          "look for a fault there",
          steps, counted(static_cast<std::int64_t>(comparison.steps.size()), "step"),
          figure(factor), b ? 'B' : 'A', figure(error_a), figure(error_b)),
      {{"steps", steps},
       {"side", b ? "b" : "a"},
       {"error_a", json_number(error_a)},
       {"error_b", json_number(error_b)}}));
}

// Drift where the sides differ in nothing that may change a bit: never rounding.
void find_drift_without_cause(const RunContext& context, std::vector<Finding>& findings) {
  const Comparison& comparison = context.comparison;
  if (!context.bound.known || context.bound.relative != 0.0 || !any_bit_differs(comparison) ||
      !describe_input_difference(context.facts).empty()) {
    return;
  }
  const StepComparison* largest = largest_step(comparison, "max_abs");
  findings.push_back(make_finding(
      "drift_without_cause", Severity::error,
      fmt::format(
          "The logits differ{} although the sides differ in no setting that may change a "
          "bit: look for a fault of memory, of the machine or of this tool",
          largest == nullptr
              ? std::string()
              : fmt::format(" (by up to {} at step {})",
                            figure(metric_value(largest->metrics, "max_abs")), largest->step)),
      {{"steps", comparison.steps.size()}}));
}

// At the step of the first flip, or of the largest drift: the tap whose relative rms grew most over
// the tap before it in the network.
void find_tap_jump(const RunContext& context, std::vector<Finding>& findings) {
  const Comparison& comparison = context.comparison;
  const StepComparison* largest = largest_step(comparison, "centred_rms");
  if (comparison.taps.size() < 2 || largest == nullptr) return;
  const auto step =
      static_cast<std::size_t>(comparison.first_flip ? comparison.first_flip->step : largest->step);
  const TapDrift* jump = nullptr;
  double growth = 1.0;
  for (std::size_t i = 1; i < comparison.taps.size(); ++i) {
    const TapDrift& before = comparison.taps[i - 1];
    const TapDrift& tap = comparison.taps[i];
    if (step >= before.relative_rms.size() || step >= tap.relative_rms.size()) continue;
    if (!(before.relative_rms[step] > 0.0)) continue;
    const double ratio = tap.relative_rms[step] / before.relative_rms[step];
    if (!(ratio > growth)) continue;
    growth = ratio;
    jump = &tap;
  }
  if (jump == nullptr) return;
  findings.push_back(make_finding(
      "tap_jump", Severity::info,
      fmt::format("At step {} drift grows most at {}: {} times, to a relative rms of {}", step,
                  place_of(jump->spec), figure(growth), figure(jump->relative_rms[step])),
      {{"step", step},
       {"layer", jump->spec.layer},
       {"operation", jump->spec.operation},
       {"growth", json_number(growth)},
       {"relative_rms", json_number(jump->relative_rms[step])}}));
}

}  // namespace driftscope
