// SPDX-License-Identifier: GPL-3.0-or-later
// Where the keys go: flips, the first divergence, the ends.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/compare/comparison.h"

namespace driftscope::ui {

// The next step after (before) `step` at which B, fed A's tokens, would choose another token.
[[nodiscard]] std::optional<std::int64_t> next_flip(const Comparison& comparison,
                                                    std::int64_t step);
[[nodiscard]] std::optional<std::int64_t> previous_flip(const Comparison& comparison,
                                                        std::int64_t step);
// Of the free lanes; where those never part, the first flip of the forced lane.
[[nodiscard]] std::optional<std::int64_t> first_difference(const Comparison& comparison);
// Steps that a view can show: compared steps, or the longer free lane.
[[nodiscard]] std::int64_t step_count(const Comparison& comparison);
// Where a view starts: the first difference, else step 0.
[[nodiscard]] std::int64_t initial_step(const Comparison& comparison);
[[nodiscard]] const StepComparison* step_at(const Comparison& comparison, std::int64_t step);
[[nodiscard]] const LaneView* lane_view(const Comparison& comparison, Lane lane);

}  // namespace driftscope::ui
