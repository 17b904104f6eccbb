// SPDX-License-Identifier: Apache-2.0
// The Comparison of a capture that kept the top K logits only.
#pragma once

#include "analysis/capture/capture.h"

namespace driftscope {

// From the metrics stored when the run ended and the kept rankings. Taps and the control lane are
// left out: what was kept of them does not suffice for bits. Rank flips are those within the kept
// rankings. Errors: those of the reader; inconclusive (no lane a).
[[nodiscard]] Result<ComparisonPointer> compare_stored(const CaptureReader& reader,
                                                       const ComparePolicy& policy);

}  // namespace driftscope
