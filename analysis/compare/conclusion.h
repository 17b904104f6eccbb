// SPDX-License-Identifier: Apache-2.0
// The parts of conclude(), each a function of what is already in the Comparison. Internal to
// analysis/compare.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/compare/comparison.h"
#include "analysis/compare/comparison_builder.h"
#include "analysis/compare/rounding_bound.h"

namespace driftscope {

// What the parts share.
struct RunContext {
  Comparison& comparison;
  const ExperimentFacts& facts;
  RoundingBound bound;
  double usual_drift = 0.0;        // what drift_excess compares with
  std::vector<double> pair_drift;  // one per step
};

[[nodiscard]] const LaneView* find_lane(const Comparison& comparison, Lane lane);
// The pair of one step, or null.
[[nodiscard]] const StepComparison* find_step(const Comparison& comparison, std::int64_t step);
// A token for a sentence: its text in quotes, escaped, or "token 17".
[[nodiscard]] std::string describe_token(const Comparison& comparison,
                                         const std::optional<TokenId>& token);
// Three significant digits.
[[nodiscard]] std::string figure(double value);
// "1 step", "5 steps"
[[nodiscard]] std::string counted(std::int64_t count, std::string_view thing);

// "the router chose expert 3 instead of expert 5 in layer 7 at step 12, router margin …", of the
// first layer that flipped at this step; empty: none did.
[[nodiscard]] std::string describe_route_flip(const Comparison& comparison, std::int64_t step);

// True where a lane came to an end of its own: an end token, a stop string, the end of the context.
[[nodiscard]] bool ended_by_itself(const LaneView& lane);
// Free lanes: leading equal tokens, and the first step where they part.
[[nodiscard]] std::int64_t count_equal_tokens(const Comparison& comparison);
[[nodiscard]] std::optional<Divergence> find_first_divergence(const RunContext& context);
[[nodiscard]] std::optional<Divergence> find_first_flip(const RunContext& context);

// Fills the figures, the cause and the reason of a divergence whose step and tokens are set.
void explain(Divergence& divergence, const RunContext& context);
// Whether the two sides of a step drew with different random numbers, as far as both are known.
[[nodiscard]] bool drew_other_numbers(const StepComparison& step);
// What the draws say about the two tokens of a divergence, without a full stop; empty: nothing.
[[nodiscard]] std::string describe_draws(const Divergence& divergence, const StepComparison& step);
// The cause where some rows are lists of a few tokens (Comparison::listed()), and the sentence.
[[nodiscard]] std::pair<FlipCause, std::string> explain_listed(const Divergence& divergence,
                                                               const StepComparison& step,
                                                               const RunContext& context);
// Why the two sides do not compute the same task, or empty.
[[nodiscard]] std::string describe_input_difference(const ExperimentFacts& facts);

[[nodiscard]] std::vector<FieldDifference> find_field_differences(const ExperimentFacts& facts);
[[nodiscard]] std::vector<Finding> collect_findings(const RunContext& context);
[[nodiscard]] std::vector<TierCheck> check_tiers(const RunContext& context);
[[nodiscard]] Tier strongest_tier(const std::vector<TierCheck>& tiers);
[[nodiscard]] std::string describe_verdict(const Comparison& comparison);

}  // namespace driftscope
