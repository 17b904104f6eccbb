// SPDX-License-Identifier: Apache-2.0
// Where the two sides part.
#include <algorithm>

#include "analysis/compare/conclusion.h"

namespace driftscope {

namespace {

std::optional<TokenId> token_at(const LaneView& lane, std::size_t step) {
  if (step < lane.tokens.size()) return lane.tokens[step];
  return std::nullopt;
}

}  // namespace

bool ended_by_itself(const LaneView& lane) {
  return lane.state == TraceState::complete && lane.stop != "steps" && lane.stop != "cancelled";
}

std::int64_t count_equal_tokens(const Comparison& comparison) {
  const LaneView* a = find_lane(comparison, Lane::a);
  const LaneView* b = find_lane(comparison, Lane::b);
  if (a == nullptr || b == nullptr) return 0;
  const auto [end, other] =
      std::mismatch(a->tokens.begin(), a->tokens.end(), b->tokens.begin(), b->tokens.end());
  return end - a->tokens.begin();
}

std::optional<Divergence> find_first_divergence(const RunContext& context) {
  const Comparison& comparison = context.comparison;
  const LaneView* a = find_lane(comparison, Lane::a);
  const LaneView* b = find_lane(comparison, Lane::b);
  if (a == nullptr || b == nullptr) return std::nullopt;
  const auto equal = static_cast<std::size_t>(count_equal_tokens(comparison));
  Divergence divergence;
  divergence.step = static_cast<std::int64_t>(equal);
  divergence.token_a = token_at(*a, equal);
  divergence.token_b = token_at(*b, equal);
  if (!divergence.token_a && !divergence.token_b) return std::nullopt;
  // A lane without a token here has parted only if it is known to have ended.
  if (!divergence.token_a && !ended_by_itself(*a)) return std::nullopt;
  if (!divergence.token_b && !ended_by_itself(*b)) return std::nullopt;
  explain(divergence, context);
  return divergence;
}

std::optional<Divergence> find_first_flip(const RunContext& context) {
  for (const auto& step : context.comparison.steps) {
    if (!step->flipped) continue;
    Divergence divergence;
    divergence.step = step->step;
    divergence.token_a = step->token_a;
    divergence.token_b = step->choice_b;
    // Where a given text was scored, A's own choice is its best token, not the one fed onward.
    const bool given = step->token_a == step->choice_b || context.comparison.scored();
    if (given && !step->metrics.top_a.empty()) {
      divergence.token_a = step->metrics.top_a.front().token;
    }
    explain(divergence, context);
    return divergence;
  }
  return std::nullopt;
}

}  // namespace driftscope
