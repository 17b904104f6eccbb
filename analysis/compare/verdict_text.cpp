// SPDX-License-Identifier: Apache-2.0
// The verdict in one line.
#include <fmt/format.h>

#include <cmath>

#include "analysis/compare/conclusion.h"
#include "analysis/compare/row_shift.h"
#include "analysis/compare/tier_measures.h"
#include "analysis/compare/value_words.h"

namespace driftscope {

namespace {

// What the numbers say where the tokens are equal.
std::string describe_drift(const Comparison& comparison) {
  if (comparison.steps.empty()) return {};
  if (comparison.listed()) {
    return numbers_comparable(comparison)
               ? ""
               : "; their numbers are not of one kind and are not compared";
  }
  const std::string_view where = has_undefined_entries(comparison) ? " where they are finite" : "";
  if (const auto shift = largest_row_shift(comparison)) {
    return fmt::format(
        ", and the rows differ by one number each (up to {}){}: the distributions agree",
        figure(*shift), where);
  }
  if (!numbers_comparable(comparison)) {
    double largest = 0.0;
    for (const auto& step : comparison.steps) {
      largest = std::fmax(largest, metric_value(step->metrics, "centred_rms"));
    }
    return fmt::format(", while the rows drift by up to {} (centred_rms: one side is normalised){}",
                       figure(largest), where);
  }
  return fmt::format(", while the logits drift by up to {}{}",
                     figure(measure_tolerance(comparison).max_abs), where);
}

// "NaN in B's rows at 2 steps, first at step 1": of files, whose rows nobody else has looked at.
std::string describe_nan(const Comparison& comparison) {
  if (!comparison.imported_a && !comparison.imported_b) return {};
  std::int64_t steps = 0, first = -1;
  bool a = false, b = false;
  for (const auto& step : comparison.steps) {
    const RowHealth& health = step->metrics.health;
    if (health.nan_a + health.nan_b == 0) continue;
    a = a || health.nan_a > 0;
    b = b || health.nan_b > 0;
    if (steps++ == 0) first = step->step;
  }
  if (steps == 0) return {};
  return fmt::format("NaN in the rows of {} at {}, first at step {}",
                     a && b ? "A and B" : (a ? "A" : "B"), counted(steps, "step"), first);
}

std::string describe_outcome(const Comparison& comparison) {
  const auto& divergence = comparison.first_divergence;
  const std::string parting =
      divergence
          ? fmt::format("at step {}: A goes on with {}, B with {} ({})", divergence->step,
                        describe_token(comparison, divergence->token_a),
                        describe_token(comparison, divergence->token_b), name_of(divergence->cause))
          : std::string();
  if (comparison.verdict == Tier::different && divergence) {
    return fmt::format("different: the texts part {}", parting);
  }
  std::string text;
  for (const TierCheck& check : comparison.tiers) {
    if (check.tier == comparison.verdict) text = check.detail;
  }
  if (comparison.verdict == Tier::tolerance) {
    text = fmt::format("the logits of {} stay within {}", counted(steps_of(comparison), "step"),
                       describe_limits(comparison.policy));
  }
  if (comparison.verdict == Tier::token) text += describe_drift(comparison);
  text = fmt::format("{}: {}", name_of(comparison.verdict), text);
  if (divergence) text += fmt::format("; the texts part {}", parting);
  const std::string gap = describe_gap(comparison);
  if (!gap.empty() && text.find(gap) == std::string::npos) text += fmt::format("; {}", gap);
  return text;
}

}  // namespace

std::string describe_verdict(const Comparison& comparison) {
  const std::string text = describe_outcome(comparison);
  const std::string nan = describe_nan(comparison);
  return nan.empty() ? text : fmt::format("{}; {}", text, nan);
}

}  // namespace driftscope
