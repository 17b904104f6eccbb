// SPDX-License-Identifier: Apache-2.0
// One step of two sides that list a few tokens with their values instead of whole rows.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/compare/comparison.h"

namespace driftscope {

// Pairs of tokens that both lists hold, at least one of them within the first k of either, whose
// order differs. Lists are best first.
[[nodiscard]] std::vector<RankFlip> flips_between(const std::vector<RankedToken>& a,
                                                  const std::vector<RankedToken>& b, std::size_t k);

// |B - A| of the tokens that both lists hold: of one token, and the largest. NaN where none is held
// by both with a number.
[[nodiscard]] double listed_difference(const StepMetrics& metrics, TokenId token);
[[nodiscard]] double largest_listed_difference(const StepMetrics& metrics);
// The same, and NaN where the sides' numbers are not comparable.
[[nodiscard]] double listed_difference(const Comparison& comparison, const StepMetrics& metrics,
                                       TokenId token);
[[nodiscard]] double largest_listed_difference(const Comparison& comparison,
                                               const StepMetrics& metrics);

// What one side says of a step; `listed` is best first and may be empty.
struct ListedRow {
  TokenId token{};
  std::vector<RankedToken> listed;
  bool log_probabilities = false;  // the values are natural logarithms of probabilities
  bool comparable = true;          // with the other side's values (numbers_comparable())
};

// Metrics that the lists can carry, NaN for all that need the whole vocabulary: best tokens,
// overlap, margins, rank flips among the tokens that both list, dlogp of A's token and what follows
// from it. A margin counts only where the list surely holds the two best tokens: a server may add
// the chosen token to a shorter list. Values that are not comparable have no differences:
// pair_drift, dlogp and what follows from it are NaN.
[[nodiscard]] std::shared_ptr<StepComparison> compare_listed_step(std::int64_t step,
                                                                  const ListedRow& a,
                                                                  const ListedRow& b,
                                                                  std::size_t top_k);

}  // namespace driftscope
