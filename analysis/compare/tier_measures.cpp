// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/tier_measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/compare/conclusion.h"

namespace driftscope {

namespace {

// Files of rows hold as many as they hold; those without a partner were not compared.
std::string describe_missing_rows(const Comparison& comparison) {
  const LaneView* a = find_lane(comparison, Lane::a);
  const LaneView* b = find_lane(comparison, Lane::b);
  const bool files = comparison.imported_a && comparison.imported_b && !comparison.listed();
  if (!files || a == nullptr || b == nullptr || a->tokens.size() == b->tokens.size()) return {};
  const bool more_a = a->tokens.size() > b->tokens.size();
  const auto [few, many] = std::minmax({a->tokens.size(), b->tokens.size()});
  return fmt::format("{} has {} more than {} ({} and {}), which nothing was compared with",
                     more_a ? 'A' : 'B', counted(static_cast<std::int64_t>(many - few), "row"),
                     more_a ? 'B' : 'A', a->tokens.size(), b->tokens.size());
}

}  // namespace

std::string describe_gap(const Comparison& comparison) {
  const LaneView* a = find_lane(comparison, Lane::a);
  const auto produced = std::max(a == nullptr ? 0 : static_cast<std::int64_t>(a->tokens.size()),
                                 steps_of(comparison));
  if (comparison.state != TraceState::complete) {
    return fmt::format("the run is {}: {} of {} planned", trace_state_name(comparison.state),
                       counted(steps_of(comparison), "step"), comparison.planned_steps);
  }
  if (const std::string rows = describe_missing_rows(comparison); !rows.empty()) return rows;
  if (steps_of(comparison) < produced) {
    return fmt::format("only {} of A's {} have a row of B after the same tokens",
                       counted(steps_of(comparison), "step"), produced);
  }
  return {};
}

std::int64_t steps_of(const Comparison& comparison) {
  return static_cast<std::int64_t>(comparison.steps.size());
}

bool has_undefined_entries(const Comparison& comparison) {
  return std::any_of(comparison.steps.begin(), comparison.steps.end(), [](const auto& step) {
    const RowHealth& health = step->metrics.health;
    return health.nan_a + health.nan_b + health.infinite_a + health.infinite_b > 0;
  });
}

ToleranceUse measure_tolerance(const Comparison& comparison) {
  const ComparePolicy& policy = comparison.policy;
  ToleranceUse use;
  for (const auto& step : comparison.steps) {
    const auto value = [&](std::string_view id) { return metric_value(step->metrics, id); };
    const double max_abs = value("max_abs");
    const double kl = std::fmax(value("kl_ab"), value("kl_ba"));
    use.max_abs = std::fmax(use.max_abs, max_abs);
    use.kl = std::fmax(use.kl, kl);
    const bool exceeded = (policy.max_abs_tolerance >= 0.0 && max_abs > policy.max_abs_tolerance) ||
                          (policy.kl_tolerance >= 0.0 && kl > policy.kl_tolerance);
    const RowHealth& health = step->metrics.health;
    const bool same_bits = value("different_entries") == 0.0;
    if (exceeded && use.exceeded_step < 0) use.exceeded_step = step->step;
    const bool undefined = std::isnan(max_abs) || health.nan_a + health.nan_b > 0 ||
                           health.unmatched > 0 || health.infinite_a != health.infinite_b;
    // Rows without one finite entry say nothing even where their bits agree.
    if ((undefined && !same_bits) || std::isnan(max_abs)) ++use.undecided_steps;
  }
  return use;
}

std::string describe_limits(const ComparePolicy& policy) {
  std::string limits;
  if (policy.max_abs_tolerance >= 0.0) {
    limits = fmt::format("max_abs {}", figure(policy.max_abs_tolerance));
  }
  if (policy.kl_tolerance >= 0.0) {
    limits += fmt::format("{}KL {}", limits.empty() ? "" : ", ", figure(policy.kl_tolerance));
  }
  return limits;
}

}  // namespace driftscope
