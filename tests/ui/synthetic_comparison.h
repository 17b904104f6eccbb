// SPDX-License-Identifier: GPL-3.0-or-later
// Comparisons made by hand, so that tests of the window need no run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/comparison.h"

namespace driftscope::ui {

struct SyntheticOptions {
  std::int64_t steps = 48;
  std::int64_t divergence = 20;  // -1: none
  bool taps = true;
  bool identical = false;      // every metric 0
  std::int64_t nan_step = -1;  // a NaN in B's row at this step
};
[[nodiscard]] std::shared_ptr<Comparison> synthetic_comparison(const SyntheticOptions& options);

// Two answers read from files that list a few tokens with log probabilities. Step 0: both choose
// token 1, margins 1 and 0.5, of the chosen one B - A is -0.25. Step 1: A's token 2 against B's 3,
// with one value and none. A holds three tokens.
[[nodiscard]] std::shared_ptr<Comparison> listed_comparison();

// Building blocks. `step_row` has every metric undefined and no top-K lists.
[[nodiscard]] std::shared_ptr<StepComparison> step_row(std::int64_t step);
void set_metric(StepComparison& step, std::string_view metric, double value);
// steps whose metric takes the values in turn.
[[nodiscard]] std::shared_ptr<Comparison> with_metric(std::string_view metric,
                                                      const std::vector<double>& values);

}  // namespace driftscope::ui
