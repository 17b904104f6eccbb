// SPDX-License-Identifier: GPL-3.0-or-later
// The verdict on two answers for the bar, and the name and mark of every tier.
#pragma once

#include "ui/models/response_snapshot.h"
#include "ui/models/verdict_summary.h"

namespace driftscope::ui {

[[nodiscard]] VerdictSummary response_verdict(const ResponsePairView& pair);
// One character that stands for the tier beside its colour: "=", "≈", "t", "s", "≠", "?".
[[nodiscard]] QString tier_mark(Tier tier);
// "bitwise", …, and what it means of two answers, for legends.
[[nodiscard]] QString tier_name(Tier tier);
[[nodiscard]] QString tier_meaning(Tier tier);
// "near tie", "beyond rounding", …
[[nodiscard]] QString cause_name(ResponseCause cause);
// Steps counted in tokens, words or tokens of the prompt: "token", "word", "prompt token".
[[nodiscard]] QString unit_name(ColumnUnit unit);
// "A takes ‘x’ (−0.1), B ‘y’ (−0.2)" of one column; "A had ended" where nothing stands there.
[[nodiscard]] QString column_text(const ResponsePairView& pair, std::int64_t column);
// The same below the column's name, as rich text.
[[nodiscard]] QString column_tool_tip(const ResponsePairView& pair, std::int64_t column);

}  // namespace driftscope::ui
