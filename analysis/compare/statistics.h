// SPDX-License-Identifier: Apache-2.0
// Statistics over the steps of a run.
#pragma once

#include <span>
#include <vector>

#include "analysis/compare/comparison.h"

namespace driftscope {

// Of rising values, at a fraction in [0, 1]; linear between order statistics. NaN for none.
[[nodiscard]] double percentile(std::span<const double> rising, double fraction);

// The same of values in any order, NaN left out.
[[nodiscard]] double percentile_of(std::vector<double> values, double fraction);

// `values`: one per entry of `steps`, NaN where undefined.
[[nodiscard]] RunStatistic run_statistic(std::string_view metric, std::span<const double> values,
                                         std::span<const std::int64_t> steps);

// One metric of every step; NaN where a step lacks it.
[[nodiscard]] std::vector<double> metric_column(const Comparison& comparison,
                                                std::string_view metric);

// What `drift_excess` compares a step's centred_rms with: the median over the steps. Where most
// steps have no drift at all (coarse activations swallow it now and then) that is 0 and says
// nothing; then it is the median over the steps that drift, if at least three do. NaN without
// steps.
[[nodiscard]] double usual_drift(std::vector<double> centred_rms);

}  // namespace driftscope
