// SPDX-License-Identifier: Apache-2.0
#include "app/cli/compare_policy.h"

#include <fmt/format.h>

#include <cmath>

namespace driftscope::cli {

void declare_policy(CLI::App& app, PolicyOptions& options) {
  ComparePolicy& policy = options.policy;
  app.add_option("--top-k", policy.top_k, "Tokens compared by rank at each step")
      ->capture_default_str();
  app.add_option("--near-tie-ulps", policy.near_tie_ulps,
                 "Near-tie: margin within this many tie_ulps")
      ->capture_default_str();
  app.add_option("--near-tie-drift", policy.near_tie_drift_factor,
                 "Near-tie: or within this times the run's p95 pairwise drift")
      ->capture_default_str();
  app.add_option("--excess", policy.excess_factor, "Drift of this many times the usual is excess")
      ->capture_default_str();
  app.add_option("--max-abs", policy.max_abs_tolerance, "Tolerance tier: largest logit difference")
      ->capture_default_str();
  app.add_option("--max-kl", policy.kl_tolerance, "Tolerance tier: largest KL of a step, nats")
      ->capture_default_str();
  app.add_option("--fail-on", options.fail_on,
                 "Exit 1 unless this tier holds: bitwise, tolerance, token, semantic");
}

Result<ComparePolicy> make_policy(const PolicyOptions& options) {
  const ComparePolicy& policy = options.policy;
  if (policy.top_k < 1 || policy.top_k > 1000) {
    return fail(ErrorKind::usage, fmt::format("--top-k: {}; give 1 to 1000", policy.top_k));
  }
  for (const double value : {policy.near_tie_ulps, policy.near_tie_drift_factor,
                             policy.excess_factor, policy.max_abs_tolerance, policy.kl_tolerance}) {
    if (std::isnan(value)) return fail(ErrorKind::usage, "a threshold is NaN; give a number");
  }
  if (!options.fail_on.empty()) {
    const auto tier = tier_from_name(options.fail_on);
    if (!tier || *tier >= Tier::different) {
      return fail(ErrorKind::usage,
                  fmt::format("--fail-on: \"{}\"; give bitwise, tolerance, token or semantic",
                              options.fail_on));
    }
  }
  return policy;
}

int verdict_exit_code(const Comparison& comparison, const PolicyOptions& options) {
  if (comparison.verdict == Tier::inconclusive) return exit_code(ErrorKind::inconclusive);
  if (options.fail_on.empty()) return 0;
  const auto wanted = tier_from_name(options.fail_on);
  for (const TierCheck& check : comparison.tiers) {
    if (check.tier != *wanted) continue;
    if (!check.holds) return exit_code(ErrorKind::inconclusive);  // not known is not a pass
    return *check.holds ? 0 : 1;
  }
  return comparison.verdict <= *wanted ? 0 : 1;
}

}  // namespace driftscope::cli
