// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/linear_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

constexpr double kGapValue = std::numeric_limits<double>::quiet_NaN();
constexpr double kPixelsForMarks = 7.0;  // per step

}  // namespace

void ValueRange::include(double value) {
  if (!std::isfinite(value)) return;
  low = known ? std::min(low, value) : value;
  high = known ? std::max(high, value) : value;
  known = true;
}

void ValueRange::include(const ValueRange& other) {
  if (!other.known) return;
  include(other.low);
  include(other.high);
}

ValueRange ValueRange::padded(double share) const {
  double height = high - low;
  if (height <= 0.0) height = std::max(1e-6, 0.2 * std::abs(high));
  return {.low = low - share * height, .high = high + share * height, .known = known};
}

LinearCurve::LinearCurve(QCustomPlot& plot) : m_line(plot.addGraph()), m_alone(plot.addGraph()) {
  for (QCPGraph* graph : {m_line, m_alone}) {
    graph->setSelectable(QCP::stNone);
    graph->setAdaptiveSampling(false);  // reduced already; sampling again would close the gaps
  }
  m_alone->setLineStyle(QCPGraph::lsNone);
}

void LinearCurve::set_style(const CurveStyle& style) {
  m_style = style;
  m_line->setPen(QPen(style.colour, 1, style.pen));
  m_alone->setPen(QPen(style.colour, 1));
  m_alone->setScatterStyle(QCPScatterStyle(
      style.shape == QCPScatterStyle::ssNone ? QCPScatterStyle::ssDisc : style.shape, style.colour,
      style.colour, 4));
}

void LinearCurve::refill(const StepView& view) {
  QVector<double> keys, values, alone_keys, alone_values;
  const auto columns = m_pyramid.reduce(view.first, view.last, view.columns);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ColumnRange& column = columns[i];
    const double key = 0.5 * static_cast<double>(column.first_step + column.last_step);
    if (!column.has_finite) {
      keys << key;
      values << kGapValue;
      continue;
    }
    // The extreme that is nearer to the last one comes first, so that no needless stroke is drawn.
    const bool fall = !values.isEmpty() && values.back() > 0.5 * (column.minimum + column.maximum);
    keys << key;
    values << (fall ? column.maximum : column.minimum);
    if (column.minimum < column.maximum) {
      keys << key;
      values << (fall ? column.minimum : column.maximum);
    }
    const bool gap_before = i == 0 || !columns[i - 1].has_finite;
    const bool gap_behind = i + 1 == columns.size() || !columns[i + 1].has_finite;
    if (gap_before && gap_behind) {
      alone_keys << key;
      alone_values << column.maximum;
    }
  }
  const bool marks =
      m_style.shape != QCPScatterStyle::ssNone && view.pixels_per_step >= kPixelsForMarks;
  m_line->setScatterStyle(
      marks ? QCPScatterStyle(m_style.shape, m_style.colour, m_style.colour, m_style.mark_size)
            : QCPScatterStyle(QCPScatterStyle::ssNone));
  m_line->setData(keys, values, true);
  if (marks) alone_keys.clear(), alone_values.clear();
  m_alone->setData(alone_keys, alone_values, true);
}

ValueRange LinearCurve::range(const StepView& view) const {
  ValueRange range;
  for (const ColumnRange& column : m_pyramid.reduce(view.first, view.last, 1)) {
    if (!column.has_finite) continue;
    range.include(column.minimum);
    range.include(column.maximum);
  }
  return range;
}

std::vector<double> round_ticks(const ValueRange& range, int wanted) {
  const double raw = (range.high - range.low) / std::max(1, wanted);
  if (!(raw > 0.0) || !std::isfinite(raw)) return {range.low};
  const double decade = std::pow(10.0, std::floor(std::log10(raw)));
  const double share = raw / decade;
  const double step = decade * (share <= 1.0   ? 1.0
                                : share <= 2.0 ? 2.0
                                : share <= 5.0 ? 5.0
                                               : 10.0);
  std::vector<double> ticks;
  const double first = std::ceil(range.low / step - 1e-9);
  for (double i = first; i * step <= range.high + 1e-9 * step; i += 1.0)
    ticks.push_back(i == 0.0 ? 0.0 : i * step);
  return ticks;
}

void apply_linear_axis(QCPAxis& axis, const ValueRange& range, int wanted, double rail,
                       const QString& rail_label) {
  auto ticker = QSharedPointer<QCPAxisTickerText>::create();
  for (const double tick : round_ticks(range, wanted)) {
    if (!rail_label.isEmpty() && tick <= rail) continue;
    ticker->addTick(tick, short_number(tick, 4));
  }
  if (!rail_label.isEmpty()) ticker->addTick(rail, rail_label);
  axis.setTicker(ticker);
  axis.setRange(range.low, range.high);
}

}  // namespace driftscope::ui
