// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/response_grid.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/compare/difference_grid.h"
#include "analysis/compare/findings.h"
#include "analysis/responses/response_lint.h"

namespace driftscope {

std::optional<Finding> find_pair_grid(
    const std::vector<std::pair<const ResponseStep*, const ResponseStep*>>& pairs) {
  std::vector<double> moved;
  double tolerance = 0.0;
  for (const auto& [a, b] : pairs) {
    std::optional<double> first;  // the step's common shift drops out
    for (const TokenAlternative& x : a->alternatives) {
      if (!x.logprob.usable()) continue;
      for (const TokenAlternative& y : b->alternatives) {
        if (!y.logprob.usable() || !same_token(x.token, y.token)) continue;
        const double difference = y.logprob.value - x.logprob.value;
        if (first) moved.push_back(difference - *first);
        if (!first) first = difference;
        tolerance = std::max({tolerance, print_tolerance(x.logprob), print_tolerance(y.logprob)});
        break;
      }
    }
  }
  // A difference of differences holds four printed values.
  const auto grid = find_difference_grid(moved, 4.0 * tolerance);
  if (!grid) return std::nullopt;
  return make_finding(
      "differences_on_grid", Severity::notice,
      fmt::format(
          "{} of {} differences between the sides that are not 0 are multiples of {} "
          "(relative to another token of the step): the logits were rounded to a coarse "
          "type before the softmax (bf16 between 16 and 32: 0.125), so exact ties and flips "
          "by one step are to be expected",
          grid->on_grid, grid->count, grid->step),
      {{"step", grid->step}, {"on_grid", grid->on_grid}, {"count", grid->count}});
}

}  // namespace driftscope
