// SPDX-License-Identifier: GPL-3.0-or-later
// The bump chart: per step, where each of the best tokens stands in A and where in B.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/compare/comparison.h"

namespace driftscope::ui {

// One token's way from A's ranking to B's at one step. Ranks count from 0; `outside` (the depth of
// the lists) stands for any rank below the lists.
struct RankPath {
  TokenId token{};
  std::int32_t rank_a = 0;
  std::int32_t rank_b = 0;
  [[nodiscard]] bool moved() const { return rank_a != rank_b; }
};

struct StepRanks {
  std::int64_t step = 0;
  std::vector<RankPath> paths;   // best rank in A first, then B's newcomers
  std::int32_t best_moved = -1;  // the best (lowest) rank that a moved token holds; -1: none moved
  std::int64_t flips = 0;        // pairs whose order differs
  bool flipped = false;          // the choice itself differs
};

// Length of the longest top-K list of the run, at least 1.
[[nodiscard]] std::int32_t rank_depth(const Comparison& comparison);
[[nodiscard]] StepRanks step_ranks(const StepComparison& step, std::int32_t depth);
[[nodiscard]] std::vector<StepRanks> all_ranks(const Comparison& comparison);

}  // namespace driftscope::ui
