// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/token_ribbon.h"

#include <span>

#include "ui/models/navigation.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

QString lane_text(const Comparison& comparison, const LaneView* lane, std::size_t step) {
  if (lane == nullptr || step >= lane->tokens.size()) return {};
  return token_text(comparison, lane->tokens[step]);
}

bool has_token(const LaneView& lane, std::size_t step) { return step < lane.tokens.size(); }

// A side that has ended differs from one that goes on; one that has not come this far does not.
bool tokens_differ(const LaneView* a, const LaneView* b, std::size_t step) {
  if (a == nullptr || b == nullptr) return false;
  if (has_token(*a, step) && has_token(*b, step)) return a->tokens[step] != b->tokens[step];
  const LaneView& missing = has_token(*a, step) ? *b : *a;
  return missing.state != TraceState::partial && has_token(*a, step) != has_token(*b, step);
}

QString ranked_cell(const Comparison& comparison, std::span<const RankedToken> list,
                    std::size_t row) {
  if (row >= list.size()) return QStringLiteral("<td></td><td></td>");
  return QStringLiteral("<td>%1&nbsp;</td><td align=right>%2&nbsp;&nbsp;</td>")
      .arg(quoted_token(comparison, list[row].token).toHtmlEscaped(),
           short_number(double{list[row].logit}, 6));
}

}  // namespace

TokenRibbon token_ribbon(const Comparison& comparison) {
  TokenRibbon ribbon;
  const LaneView* a = lane_view(comparison, Lane::a);
  const LaneView* b = lane_view(comparison, Lane::b);
  const std::int64_t count = step_count(comparison);
  ribbon.items.reserve(static_cast<std::size_t>(count));
  for (std::int64_t step = 0; step < count; ++step) {
    const auto index = static_cast<std::size_t>(step);
    RibbonItem item{.step = step,
                    .text_a = lane_text(comparison, a, index),
                    .text_b = lane_text(comparison, b, index),
                    .differs = tokens_differ(a, b, index),
                    .flipped = false,
                    .choice_b = {},
                    .missing_a = a == nullptr || !has_token(*a, index),
                    .missing_b = b == nullptr || !has_token(*b, index)};
    if (const StepComparison* row = step_at(comparison, step); row != nullptr && row->flipped) {
      item.flipped = true;
      item.choice_b = token_text(comparison, row->choice_b);
    }
    ribbon.items.push_back(std::move(item));
  }
  if (comparison.first_divergence) ribbon.divergence_step = comparison.first_divergence->step;
  return ribbon;
}

QString step_tooltip(const Comparison& comparison, std::int64_t step, int rows) {
  const StepComparison* row = step_at(comparison, step);
  if (row == nullptr) return {};
  QString html = QStringLiteral(
                     "<b>Step %1</b>%2<table><tr><th colspan=2 align=left>A, logit</th>"
                     "<th colspan=2 align=left>B (fed A's tokens), logit</th></tr>")
                     .arg(step)
                     .arg(row->flipped ? QStringLiteral(": the choice flips") : QString());
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
    html += QStringLiteral("<tr>%1%2</tr>")
                .arg(ranked_cell(comparison, row->metrics.top_a, i),
                     ranked_cell(comparison, row->metrics.top_b, i));
  }
  return html + QStringLiteral("</table>");
}

}  // namespace driftscope::ui
