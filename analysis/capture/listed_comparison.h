// SPDX-License-Identifier: Apache-2.0
// Lanes that were imported from other programs' files. Internal to analysis/capture.
#pragma once

#include "analysis/capture/capture.h"
#include "analysis/compare/comparison_builder.h"

namespace driftscope {

struct LanePlace {
  const CaptureReader* reader = nullptr;
  Lane lane = Lane::a;
};

[[nodiscard]] bool is_imported(const LanePlace& place);
// Imported, with lists of a few tokens instead of rows.
[[nodiscard]] bool is_listed(const LanePlace& place);
// Imported rows that carry no tokens: each is comparable with the other side's row of its place.
[[nodiscard]] bool rows_by_place(const LanePlace& place);

// Both lanes list tokens. Steps are compared until the tokens part, or throughout where both scored
// a given text. Errors: inconclusive, where one side names its tokens by id and the other by text,
// or has whole rows.
[[nodiscard]] Result<ComparisonPointer> compare_listed(const LanePlace& a, const LanePlace& b,
                                                       ExperimentFacts facts,
                                                       const ComparePolicy& policy);

}  // namespace driftscope
