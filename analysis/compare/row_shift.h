// SPDX-License-Identifier: Apache-2.0
// Whole rows of files that are not of one kind: what softmax does not see, and what is left.
// Internal to analysis/compare.
#pragma once

#include <optional>

#include "analysis/compare/comparison.h"
#include "analysis/compare/comparison_builder.h"

namespace driftscope {

// The finding "rows_shifted": rows of two files that differ by one number per row, so that one side
// is shifted (normalised, say) and softmax makes the same distributions of both. Its evidence:
// "smallest" and "largest" size of the shift, "kl", the largest kl_ab in nat. Empty where a side is
// a run, lists tokens only, or where at any step the difference within the row is not one number:
// its spread (centred_rms) exceeds what rounding each side's row to the type of its file makes,
// 4 u |row| (u: unit roundoff; 4: log-softmax rounds more than once).
[[nodiscard]] std::optional<Finding> find_row_shift(const Comparison& comparison,
                                                    const ExperimentFacts& facts);
// Puts it into the findings, in the place of what they say of drift.
void tell_row_shift(Comparison& comparison, Finding shift);
// Of a comparison that has the finding; empty: it has none.
[[nodiscard]] std::optional<double> largest_row_shift(const Comparison& comparison);

// Metrics that a shift of one row changes become NaN where numbers_comparable() is false. Call
// after find_row_shift().
void forget_shifted_metrics(Comparison& comparison);

}  // namespace driftscope
