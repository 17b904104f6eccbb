// SPDX-License-Identifier: GPL-3.0-or-later
// Logprobs of two answers per column, and their difference where it means something.
#pragma once

#include <QString>

#include "ui/models/response_snapshot.h"
#include "ui/models/series.h"

namespace driftscope::ui {

struct ResponseSeries {
  // [columns], nat. NaN: not known, or not to be compared.
  StepValues difference;  // B - A, where both chose the same token after the same tokens
  StepValues logprob_a;
  StepValues logprob_b;
  // [columns] 1 where the field holds a sentinel, a floor, -inf or NaN in place of a number: known
  // to be unlikely, by how much is not known. NaN elsewhere.
  StepValues beyond_a;
  StepValues beyond_b;
  std::int64_t known_differences = 0;
  std::int64_t known_a = 0;
  std::int64_t known_b = 0;
  StepValues tolerance;  // [columns] difference that printing alone makes; NaN where none is known
  QString unit;          // "nat", "probability", "logit"; of A and B where they differ
  // Why there is no difference, no logprob at all; empty where there is one.
  QString difference_reason;
  QString logprob_reason;
};
[[nodiscard]] ResponseSeries response_series(const ResponsePairView& pair);
// Where a view starts: the first divergence; else the largest difference that the printing does not
// explain; else the beginning.
[[nodiscard]] std::int64_t initial_column(const ResponsePairView& pair);

// What stands in the field: "-0.0123", "null", "sentinel", "−∞", …; "–" where there is none.
[[nodiscard]] QString logprob_text(const Logprob& value, int digits = 6);
// What the state means, for tooltips; empty for numbers.
[[nodiscard]] QString logprob_meaning(const Logprob& value);

}  // namespace driftscope::ui
