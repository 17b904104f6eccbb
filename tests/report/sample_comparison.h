// SPDX-License-Identifier: Apache-2.0
// Comparisons to report on: one built from the sample rows, one written by hand.
#pragma once

#include "analysis/compare/comparison_builder.h"
#include "tests/capture/sample_capture.h"

namespace driftscope::testing {

// The builder after all steps of the sample, every lane finished.
[[nodiscard]] std::unique_ptr<ComparisonBuilder> built_sample(const SampleShape& shape,
                                                              const ComparePolicy& policy);

// Two steps with round figures, so that the expected documents can be written by hand: texts with
// quotes, markup and bytes that are not UTF-8; NaN and infinity among the metrics.
[[nodiscard]] Comparison handmade_comparison();

}  // namespace driftscope::testing
