// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/rank_flips.h"

#include <algorithm>
#include <span>

namespace driftscope::ui {
namespace {

std::int32_t rank_in(std::span<const RankedToken> list, TokenId token, std::int32_t outside) {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const RankedToken& r) { return r.token == token; });
  return found == list.end() ? outside : static_cast<std::int32_t>(found - list.begin());
}

}  // namespace

std::int32_t rank_depth(const Comparison& comparison) {
  std::size_t depth = 1;
  for (const auto& step : comparison.steps) {
    depth = std::max({depth, step->metrics.top_a.size(), step->metrics.top_b.size()});
  }
  return static_cast<std::int32_t>(depth);
}

StepRanks step_ranks(const StepComparison& step, std::int32_t depth) {
  StepRanks result{.step = step.step,
                   .paths = {},
                   .best_moved = -1,
                   .flips = static_cast<std::int64_t>(step.flips.size()),
                   .flipped = step.flipped};
  const auto& a = step.metrics.top_a;
  const auto& b = step.metrics.top_b;
  for (std::size_t i = 0; i < a.size(); ++i) {
    result.paths.push_back({.token = a[i].token,
                            .rank_a = static_cast<std::int32_t>(i),
                            .rank_b = rank_in(b, a[i].token, depth)});
  }
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (rank_in(a, b[i].token, -1) >= 0) continue;
    result.paths.push_back(
        {.token = b[i].token, .rank_a = depth, .rank_b = static_cast<std::int32_t>(i)});
  }
  for (const RankPath& path : result.paths) {
    if (!path.moved()) continue;
    const std::int32_t best = std::min(path.rank_a, path.rank_b);
    result.best_moved = result.best_moved < 0 ? best : std::min(result.best_moved, best);
  }
  return result;
}

std::vector<StepRanks> all_ranks(const Comparison& comparison) {
  const std::int32_t depth = rank_depth(comparison);
  std::vector<StepRanks> result;
  result.reserve(comparison.steps.size());
  for (const auto& step : comparison.steps) result.push_back(step_ranks(*step, depth));
  return result;
}

}  // namespace driftscope::ui
