// SPDX-License-Identifier: Apache-2.0
// What tiers and the sentence of the verdict are judged by. Internal to analysis/compare.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "analysis/compare/comparison.h"

namespace driftscope {

[[nodiscard]] std::int64_t steps_of(const Comparison& comparison);
// Why the steps that were compared are not all there is; empty if they are.
[[nodiscard]] std::string describe_gap(const Comparison& comparison);
// A row of either side holds NaN or an infinity.
[[nodiscard]] bool has_undefined_entries(const Comparison& comparison);

struct ToleranceUse {
  double max_abs = std::numeric_limits<double>::quiet_NaN();  // NaN until one is defined
  double kl = std::numeric_limits<double>::quiet_NaN();
  std::int64_t exceeded_step = -1;   // the first
  std::int64_t undecided_steps = 0;  // NaN, or infinities that do not match
};

[[nodiscard]] ToleranceUse measure_tolerance(const Comparison& comparison);
// "max_abs 0.001, KL 0.0001"; empty: every limit is switched off.
[[nodiscard]] std::string describe_limits(const ComparePolicy& policy);

}  // namespace driftscope
