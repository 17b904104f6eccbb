// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/response_logprob_plot.h"

#include <algorithm>
#include <cmath>

#include "ui/models/response_verdict.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

StepValues at_height(const StepValues& marks, double height) {
  StepValues heights = marks;
  for (double& value : heights) {
    if (!std::isnan(value)) value = height;
  }
  return heights;
}

}  // namespace

ResponseLogprobPlot::ResponseLogprobPlot(QWidget* parent)
    : ResponsePlot(QStringLiteral("logprobs"), QStringLiteral("Logprobs of the chosen tokens"),
                   parent),
      m_a(plot()),
      m_b(plot()),
      m_beyond_a(plot(), QCPScatterStyle::ssCross, 7),
      m_beyond_b(plot(), QCPScatterStyle::ssPlus, 8) {
  set_short_title(QStringLiteral("Logprobs"));
}

bool ResponseLogprobPlot::has_beyond() const {
  const auto any = [](const StepValues& values) {
    return std::any_of(values.begin(), values.end(), [](double v) { return !std::isnan(v); });
  };
  return any(series().beyond_a) || any(series().beyond_b);
}

void ResponseLogprobPlot::rebuild() {
  const Theme& t = theme();
  m_a.set_style({.colour = t.side_a, .shape = QCPScatterStyle::ssDisc, .mark_size = 8.0});
  // Dashed and with smaller marks, so that A shows through where both are the same.
  m_b.set_style({.colour = t.side_b,
                 .shape = QCPScatterStyle::ssSquare,
                 .pen = Qt::DashLine,
                 .mark_size = 4.0});
  m_beyond_a.set_colour(t.side_a);
  m_beyond_b.set_colour(t.side_b);
  m_a.set_values(series().logprob_a);
  m_b.set_values(series().logprob_b);
  std::vector<LegendEntry> entries{{LegendMark::circle, t.side_a, QStringLiteral("A")}};
  if (!pair() || !pair()->alone) {
    entries.push_back({LegendMark::square, t.side_b, QStringLiteral("B")});
  }
  if (has_beyond()) {
    entries.push_back({LegendMark::line, t.muted,
                       QStringLiteral("× A, + B: a sentinel, a floor or −∞ in place of a number"),
                       QStringLiteral("×, +: no number")});
  }
  if (pair() && pair()->columns.divergence >= 0) {
    entries.push_back({LegendMark::dashed_line, t.divergence, QStringLiteral("first divergence"),
                       QStringLiteral("parting")});
  }
  set_legend(std::move(entries));
}

void ResponseLogprobPlot::refill(const StepView& view) {
  m_a.refill(view);
  m_b.refill(view);
  ValueRange range = m_a.range(view);
  range.include(m_b.range(view));
  if (!range.known) range.include(0.0);
  const bool known = range.known;
  range = range.padded(0.12);
  range.known = known;
  const bool rail = has_beyond();
  const double height = range.high - range.low;
  const double rail_value = range.low - 0.12 * height;
  if (rail) range.low -= 0.24 * height;
  m_beyond_a.set_heights(at_height(series().beyond_a, rail_value));
  m_beyond_b.set_heights(at_height(series().beyond_b, rail_value));
  m_beyond_a.refill(view);
  m_beyond_b.refill(view);
  apply_linear_axis(*plot().yAxis, range, std::max(2, view.height / 36), rail_value,
                    rail ? QStringLiteral("no number") : QString());
  plot().yAxis->setLabel(series().unit.isEmpty() ? QStringLiteral("nat") : series().unit);
  plot().yAxis->setTickLabels(empty_reason().isEmpty());
}

QString ResponseLogprobPlot::empty_reason() const {
  if (!pair()) return QStringLiteral("Logprobs appear here with two answers");
  if (step_total() == 0) return QStringLiteral("The answers hold no text to lay side by side");
  return series().logprob_reason;
}

QString ResponseLogprobPlot::readout(std::int64_t step) const {
  return pair() ? column_text(*pair(), step) : QString();
}

QString ResponseLogprobPlot::summary() const {
  if (!pair()) return {};
  if (pair()->alone) {
    return QStringLiteral("The answer lists %1 logprobs, of %2 columns.")
        .arg(series().known_a)
        .arg(step_total());
  }
  return QStringLiteral("A lists %1 logprobs, B %2, of %3 columns.")
      .arg(series().known_a)
      .arg(series().known_b)
      .arg(step_total());
}

}  // namespace driftscope::ui
