// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/value_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "analysis/compare/imported_side.h"

namespace driftscope {

namespace {

constexpr const char* kLogProbabilities = "log_probability";

std::size_t tokens_of(const Comparison& comparison, Lane lane) {
  for (const LaneView& view : comparison.lanes) {
    if (view.lane == lane) return view.tokens.size();
  }
  return 0;
}

}  // namespace

bool numbers_comparable(const Comparison& comparison) {
  const auto& a = comparison.imported_a;
  const auto& b = comparison.imported_b;
  if (!a && !b) return true;
  const bool known_a = a && a->values == kLogProbabilities;
  const bool known_b = b && b->values == kLogProbabilities;
  // Rows that are normalised and rows that are not differ by that alone.
  if (!comparison.listed()) return known_a == known_b;
  return (known_a && known_b) || (a && b && a->values == kSampled && b->values == kSampled);
}

bool interned(const Comparison& comparison) {
  return (comparison.imported_a && comparison.imported_a->interned) ||
         (comparison.imported_b && comparison.imported_b->interned);
}

bool of_log_probabilities(const Comparison& comparison) {
  const auto states = [](const std::optional<ImportedSide>& side) {
    return side && (side->values == kLogProbabilities || side->values == kPlaceholders ||
                    side->values == kProbabilities || side->values == kSampled);
  };
  return states(comparison.imported_a) && states(comparison.imported_b);
}

std::string in_fitting_words(const Comparison& comparison, std::string_view text) {
  std::string fitting(text);
  if (!of_log_probabilities(comparison)) return fitting;
  // The longer word first: its beginning is the shorter one.
  constexpr std::array kWords{
      std::pair{"logits", "log probabilities"}, std::pair{"Logits", "Log probabilities"},
      std::pair{"logit", "log probability"}, std::pair{"Logit", "Log probability"}};
  for (const auto& [own, other] : kWords) {
    for (auto at = fitting.find(own); at != std::string::npos; at = fitting.find(own, at + 1)) {
      fitting.replace(at, std::string_view(own).size(), other);
    }
  }
  return fitting;
}

std::string_view value_unit(const Comparison& comparison) {
  return of_log_probabilities(comparison) ? "nat" : "logit";
}

std::string_view metric_unit(const Comparison& comparison, const MetricSpec& spec) {
  return spec.unit == "logit" ? value_unit(comparison) : spec.unit;
}

bool not_known(const Comparison& comparison, const StepComparison& step, const MetricSpec& spec,
               double value) {
  const bool imported = comparison.imported_a || comparison.imported_b;
  if (!imported || !std::isnan(value)) return false;
  if (step.metrics.health == RowHealth{}) return true;
  const auto measured =
      std::find_if(comparison.statistics.begin(), comparison.statistics.end(),
                   [&](const RunStatistic& statistic) { return statistic.metric == spec.id; });
  const bool nowhere = measured != comparison.statistics.end() && measured->count == 0;
  const bool of_run = spec.needs_run && spec.id != "drift_excess";
  return of_run || spec.id == "tie_ulps" || (nowhere && !numbers_comparable(comparison));
}

std::string describe_steps(const Comparison& comparison) {
  const std::size_t steps = comparison.steps.size();
  if (!comparison.imported_a && !comparison.imported_b) {
    return fmt::format("{} of {} planned", steps, comparison.planned_steps);
  }
  const std::size_t a = tokens_of(comparison, Lane::a);
  const std::size_t b = tokens_of(comparison, Lane::b);
  if (b == 0 && steps == 0) return fmt::format("none: A holds {}, and nothing of B is here", a);
  std::string text = fmt::format("{}, where A holds {} and B {}", steps, a, b);
  if (steps < std::min(a, b)) text += "; those behind the first divergence follow other tokens";
  return text;
}

}  // namespace driftscope
