// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/response_difference_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ui/models/response_verdict.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

QCPGraph* add_band_edge(QCustomPlot& plot) {
  QCPGraph* graph = plot.addGraph();
  graph->setSelectable(QCP::stNone);
  return graph;
}

double largest_size(const StepValues& values) {
  double largest = 0.0;
  for (const double value : values) {
    if (!std::isnan(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

}  // namespace

ResponseDifferencePlot::ResponseDifferencePlot(QWidget* parent)
    : ResponsePlot(QStringLiteral("logprob_difference"), QStringLiteral("Logprob difference B − A"),
                   parent),
      m_band_low(add_band_edge(plot())),
      m_band_high(add_band_edge(plot())),
      m_difference(plot()) {
  for (QCPGraph* edge : {m_band_low, m_band_high}) edge->setAdaptiveSampling(false);
  set_short_title(QStringLiteral("B − A"));
  m_band_high->setChannelFillGraph(m_band_low);
}

void ResponseDifferencePlot::rebuild() {
  const Theme& t = theme();
  m_difference.set_style({.colour = t.series, .shape = QCPScatterStyle::ssDisc});
  m_difference.set_values(series().difference);
  m_tolerance = MinMaxPyramid(series().tolerance);
  m_largest = largest_size(series().difference);
  m_largest_tolerance = largest_size(series().tolerance);
  QColor fill = t.series_three;
  fill.setAlphaF(0.22F);
  m_band_high->setBrush(fill);
  for (QCPGraph* edge : {m_band_low, m_band_high}) edge->setPen(QPen(t.series_three, 1));
  plot().yAxis->grid()->setZeroLinePen(QPen(t.muted, 1));
  std::vector<LegendEntry> entries{
      {LegendMark::line, t.series, QStringLiteral("B − A, same token")}};
  if (m_largest_tolerance > 0.0) {
    entries.push_back({LegendMark::line, t.series_three,
                       QStringLiteral("what the printing explains (± %1 at most)")
                           .arg(short_number(m_largest_tolerance, 2)),
                       QStringLiteral("printing")});
  }
  if (pair() && pair()->columns.divergence >= 0) {
    entries.push_back({LegendMark::dashed_line, t.divergence, QStringLiteral("first divergence"),
                       QStringLiteral("parting")});
  }
  set_legend(std::move(entries));
}

// As wide as each column's own printing: half a column to both sides, with gaps where the
// difference has them.
void ResponseDifferencePlot::refill_band(const StepView& view) {
  QVector<double> keys, low, high;
  const auto add = [&](double key, double tolerance) {
    keys << key;
    low << -tolerance;
    high << tolerance;
  };
  for (const ColumnRange& column : m_tolerance.reduce(view.first, view.last, view.columns)) {
    const double tolerance =
        column.has_finite ? column.maximum : std::numeric_limits<double>::quiet_NaN();
    add(static_cast<double>(column.first_step) - 0.5, tolerance);
    add(static_cast<double>(column.last_step) + 0.499, tolerance);
  }
  m_band_low->setData(keys, low, true);
  m_band_high->setData(keys, high, true);
}

void ResponseDifferencePlot::refill(const StepView& view) {
  m_difference.refill(view);
  refill_band(view);
  ValueRange range = m_difference.range(view);
  range.include(0.0);
  // A band much wider than the differences runs out of the frame rather than flatten them.
  const double band =
      m_largest > 0.0 ? std::min(m_largest_tolerance, 1.5 * m_largest) : m_largest_tolerance;
  range.include(-band);
  range.include(band);
  apply_linear_axis(*plot().yAxis, range.padded(0.12), std::max(2, view.height / 36));
  plot().yAxis->setLabel(series().unit.isEmpty() ? QStringLiteral("nat") : series().unit);
  plot().yAxis->setTickLabels(series().known_differences > 0);
}

QString ResponseDifferencePlot::empty_reason() const {
  if (!pair()) return QStringLiteral("Differences of logprobs appear here with two answers");
  if (step_total() == 0) return QStringLiteral("The answers hold no text to lay side by side");
  return series().difference_reason;
}

QString ResponseDifferencePlot::readout(std::int64_t step) const {
  if (step < 0 || step >= static_cast<std::int64_t>(series().difference.size())) return {};
  const double value = series().difference[static_cast<std::size_t>(step)];
  if (std::isnan(value)) return QStringLiteral("difference not known");
  const bool printed = std::abs(value) <= series().tolerance[static_cast<std::size_t>(step)];
  return QStringLiteral("B − A %1%2")
      .arg(short_number(value, 4), printed ? QStringLiteral(", within the printing") : QString());
}

QString ResponseDifferencePlot::summary() const {
  if (!pair()) return {};
  return QStringLiteral(
             "%1 of %2 columns have a known difference, the largest is %3; printing "
             "explains up to %4.")
      .arg(series().known_differences)
      .arg(step_total())
      .arg(short_number(m_largest, 4), short_number(m_largest_tolerance, 2));
}

}  // namespace driftscope::ui
