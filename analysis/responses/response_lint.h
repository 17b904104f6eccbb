// SPDX-License-Identifier: Apache-2.0
// What one answer says about its own numbers: whether they can be compared at all.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/comparison.h"
#include "analysis/import/response.h"

namespace driftscope {

// Recognises what stands in the logprob fields (logarithms, probabilities, logits), placeholders
// of speculative decoding and bytes that were lost, and marks the response so. Call it once,
// before comparing.
void grade_response(Response& response);

// One finding for each thing that an expert would want to know before believing the numbers.
[[nodiscard]] std::vector<Finding> lint_response(const Response& response);

// Smallest difference that the way of printing can carry: half a unit of the last digit, and at
// least one unit in the last place of an f32. 0 where nothing is known.
[[nodiscard]] double print_tolerance(const Logprob& value);

// Rank of the chosen token among those that are listed with it, 1 for the largest. Equal values
// make it an interval; a token that is not listed ranks after all of them. Empty: not known.
struct RankInterval {
  std::int64_t first = 0;
  std::int64_t last = 0;  // 0: no upper end, it is outside of the list
};
[[nodiscard]] std::optional<RankInterval> rank_of_chosen(const ResponseStep& step);

// Whether two tokens are the same: by id where both have one, else by bytes. Lossy bytes are
// equal to nothing.
[[nodiscard]] bool same_token(const TokenText& a, const TokenText& b);

}  // namespace driftscope
