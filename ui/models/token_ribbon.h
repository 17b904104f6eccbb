// SPDX-License-Identifier: GPL-3.0-or-later
// The two token sequences, side by side per step.
#pragma once

#include <QString>
#include <cstdint>
#include <vector>

#include "analysis/compare/comparison.h"

namespace driftscope::ui {

struct RibbonItem {
  std::int64_t step = 0;
  QString text_a;  // null: this side had ended
  QString text_b;
  bool differs = false;  // the free lanes emitted different tokens
  bool flipped = false;  // B, fed A's tokens, would choose another token
  QString choice_b;      // what it would choose, where flipped
  // Of two answers:
  bool joined = false;     // the texts run together again
  bool split = false;      // the same text, cut into other tokens
  bool missing_a = false;  // nothing of A stands here; its text may say "end"
  bool missing_b = false;
};

struct TokenRibbon {
  std::vector<RibbonItem> items;      // one per step
  std::int64_t divergence_step = -1;  // of the free lanes; -1: none so far
  QString absent_b = {};              // what to say in B's row where there is no B at all
};
[[nodiscard]] TokenRibbon token_ribbon(const Comparison& comparison);
// For tooltips: both top-K lists of a step as an HTML table; the text is escaped.
[[nodiscard]] QString step_tooltip(const Comparison& comparison, std::int64_t step, int rows = 5);

}  // namespace driftscope::ui
