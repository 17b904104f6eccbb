// SPDX-License-Identifier: GPL-3.0-or-later
// Tokens as text for people: control characters and broken UTF-8 are escaped, never drawn raw.
#pragma once

#include <QString>
#include <string_view>

#include "analysis/compare/comparison.h"

namespace driftscope::ui {

// "\n" for a line feed, "\xE2" for a byte that is not part of valid UTF-8, "\u202E" for invisible
// and direction-changing characters.
[[nodiscard]] QString escaped_text(std::string_view bytes);
// The token's text, escaped; "#42" where the vocabulary is unknown.
[[nodiscard]] QString token_text(const Comparison& comparison, TokenId id);
// The same between quotes, so that leading blanks are seen: "‘ the’".
[[nodiscard]] QString quoted_token(const Comparison& comparison, TokenId id);
// Shortest text that reads back to the same double, never locale-dependent; "NaN", "∞", "−∞".
[[nodiscard]] QString number_text(double value);
// Rounded to `digits` significant digits, for places where space is short.
[[nodiscard]] QString short_number(double value, int digits = 4);

}  // namespace driftscope::ui
