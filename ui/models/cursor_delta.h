// SPDX-License-Identifier: GPL-3.0-or-later
// What changes from one step to another: the second cursor's line.
#pragma once

#include <QString>
#include <cstdint>

#include "analysis/compare/comparison.h"

namespace driftscope::ui {

// "steps 12 → 20 (Δ 8): largest difference 0.01 → 0.04 (+0.03), …" in logits; where a side of a
// pair is not known, its value is "–" and no change is named. Empty where either step has not been
// compared.
[[nodiscard]] QString cursor_delta_text(const Comparison& comparison, std::int64_t from,
                                        std::int64_t to);

}  // namespace driftscope::ui
