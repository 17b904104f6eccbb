// SPDX-License-Identifier: Apache-2.0
// Differences that fall on multiples of a power of two: the mark of values that were rounded to a
// coarse type. Logits between 16 and 32 in bf16 stand 1/8 apart, between 8 and 16 they stand 1/16
// apart; types of 8 bits are coarser still.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/metrics/metric.h"

namespace driftscope {

struct DifferenceGrid {
  double step = 0.0;         // the coarsest that fits
  std::int64_t on_grid = 0;  // differences that are a multiple of it and not 0
  std::int64_t count = 0;    // differences that are not 0
  bool all = false;          // every one of them; else more than chance puts there
};

// `tolerance`: how far a difference may be off by the way it was printed or stored. Differences
// within it of 0 are left out. Empty: no grid, or fewer than four differences to tell by. A part of
// the differences counts where it is at least a quarter and six standard deviations above chance.
[[nodiscard]] std::optional<DifferenceGrid> find_difference_grid(
    std::span<const double> differences, double tolerance);

// Of the tokens that both lists hold: how far each value moved, relative to the first common
// token's, so that a shift common to the step (of a softmax's sum) drops out.
void add_relative_differences(const std::vector<RankedToken>& a, const std::vector<RankedToken>& b,
                              std::vector<double>& differences);

}  // namespace driftscope
