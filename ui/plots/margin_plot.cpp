// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/margin_plot.h"

#include <algorithm>
#include <limits>

#include "ui/models/navigation.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {

MarginPlot::MarginPlot(QWidget* parent)
    : StepPlot(QStringLiteral("margins"), QStringLiteral("Margin and headroom"), parent),
      m_pull(plot()),
      m_margin_a(plot()),
      m_margin_b(plot()),
      m_possible(plot(), QCPScatterStyle::ssTriangle, 6),
      m_flips(plot(), QCPScatterStyle::ssDiamond, 9),
      m_scale({}) {
  set_short_title(QStringLiteral("Margin"));
}

void MarginPlot::rebuild() {
  const Theme& t = theme();
  m_margin_a.set_style({.colour = t.side_a, .shape = QCPScatterStyle::ssDisc, .mark_size = 9.0}, t);
  // Dashed and with smaller marks, so that A shows through where both are the same.
  m_margin_b.set_style({.colour = t.side_b,
                        .shape = QCPScatterStyle::ssSquare,
                        .pen = Qt::DashLine,
                        .mark_size = 4.0},
                       t);
  m_pull.set_style({.colour = t.series_two, .pen = Qt::DashDotLine, .mark_non_finite = false}, t);
  m_possible.set_colour(t.warning);
  m_flips.set_colour(t.divergence);
  m_possible_count = 0;
  show_legend();
  if (!comparison()) return;
  MarginSeries series = margin_series(*comparison());
  m_scale = RailScale({&series.margin_a, &series.margin_b});
  m_scale.include(series.pull);
  const double undefined = std::numeric_limits<double>::quiet_NaN();
  StepValues possible, flips;
  for (std::size_t i = 0; i < comparison()->steps.size(); ++i) {
    const bool can_flip = series.headroom[i] < 1.0;
    m_possible_count += can_flip ? 1 : 0;
    possible.push_back(can_flip ? m_scale.lower() + 0.08 * (m_scale.upper() - m_scale.lower())
                                : undefined);
    flips.push_back(comparison()->steps[i]->flipped ? m_scale.coordinate(series.margin_a[i])
                                                    : undefined);
  }
  m_margin_a.set_values(std::move(series.margin_a));
  m_margin_b.set_values(std::move(series.margin_b));
  m_pull.set_values(std::move(series.pull));
  m_possible.set_heights(std::move(possible));
  m_flips.set_heights(std::move(flips));
  show_legend();
}

// Names the triangles only where there are some, and then before the wider entries.
void MarginPlot::show_legend() {
  const Theme& t = theme();
  std::vector<LegendEntry> entries{
      {LegendMark::circle, t.side_a, QStringLiteral("margin A"), QStringLiteral("A")},
      {LegendMark::square, t.side_b, QStringLiteral("margin B"), QStringLiteral("B")}};
  if (m_possible_count > 0) {
    entries.push_back({LegendMark::triangle, t.warning,
                       QStringLiteral("headroom < 1: a flip is possible"),
                       QStringLiteral("headroom < 1")});
  }
  entries.push_back({LegendMark::diamond, t.divergence, QStringLiteral("flip")});
  entries.push_back({LegendMark::dashed_line, t.series_two,
                     QStringLiteral("rival's pull (margin A / headroom)"), QStringLiteral("pull")});
  set_legend(std::move(entries));
}

void MarginPlot::refill(const StepView& view) {
  m_pull.refill(m_scale, view);
  m_margin_a.refill(m_scale, view);
  m_margin_b.refill(m_scale, view);
  m_possible.refill(view);
  m_flips.refill(view);
  apply_rail_axis(*plot().yAxis, m_scale, std::max(2, view.height / 32));
  plot().yAxis->setLabel(QStringLiteral("logit"));
}

QString MarginPlot::empty_reason() const {
  if (!comparison()) return QStringLiteral("Margins appear here with the first step");
  if (comparison()->steps.empty()) {
    return QStringLiteral("No step of A and B has been compared yet");
  }
  return {};
}

QString MarginPlot::readout(std::int64_t step) const {
  const StepComparison* row = comparison() ? step_at(*comparison(), step) : nullptr;
  if (row == nullptr) return {};
  return QStringLiteral("margin A %1, B %2 logit, headroom %3")
      .arg(short_number(metric_value(*row, "margin_a"), 3),
           short_number(metric_value(*row, "margin_b"), 3),
           short_number(metric_value(*row, "headroom"), 3));
}

QString MarginPlot::summary() const {
  if (!comparison()) return {};
  return QStringLiteral("%1 of %2 steps have a headroom below 1.")
      .arg(m_possible_count)
      .arg(comparison()->steps.size());
}

}  // namespace driftscope::ui
