// SPDX-License-Identifier: GPL-3.0-or-later
// The words of analysis/compare/value_words.h for the window: logits, or log probabilities where
// files hold those.
#pragma once

#include <QString>

#include "analysis/compare/comparison.h"

namespace driftscope::ui {

// "Logit difference |B − A|", or "Log probability difference |B − A|". Null: no comparison yet.
[[nodiscard]] QString fitting_words(const Comparison* comparison, const QString& text);
// "logit" or "nat"
[[nodiscard]] QString fitting_unit(const Comparison* comparison);
// A side was read from another program's file.
[[nodiscard]] bool is_import(const Comparison& comparison);
// "0.004 logit", or "not known" where a side was read from a file that does not say.
[[nodiscard]] QString value_with_unit(const Comparison& comparison, double value, int digits = 4);

}  // namespace driftscope::ui
