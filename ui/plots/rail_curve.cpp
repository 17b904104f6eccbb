// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/rail_curve.h"

#include <cmath>
#include <limits>

namespace driftscope::ui {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
constexpr double kRoomForMarks = 7.0;  // pixels per step

QCPGraph* add_marks(QCustomPlot& plot) {
  QCPGraph* graph = plot.addGraph();
  graph->setLineStyle(QCPGraph::lsNone);
  graph->setSelectable(QCP::stNone);
  return graph;
}

}  // namespace

RailCurve::RailCurve(QCustomPlot& plot)
    : m_line(plot.addGraph()), m_zeros(add_marks(plot)), m_non_finite(add_marks(plot)) {
  m_line->setSelectable(QCP::stNone);
}

void RailCurve::set_style(const CurveStyle& style, const Theme& theme) {
  m_style = style;
  m_line->setPen(QPen(style.colour, 1, style.pen));
  m_zeros->setPen(QPen(style.colour, 1));
  m_zeros->setScatterStyle(QCPScatterStyle(
      style.shape == QCPScatterStyle::ssNone ? QCPScatterStyle::ssDisc : style.shape, style.colour,
      style.colour, 4));
  m_non_finite->setPen(QPen(theme.non_finite, 1));
  m_non_finite->setScatterStyle(
      QCPScatterStyle(QCPScatterStyle::ssCross, theme.non_finite, theme.non_finite, 7));
}

void RailCurve::refill(const RailScale& scale, const StepView& view) {
  QVector<double> keys, values, zeros, non_finite;
  for (const ColumnRange& column : m_pyramid.reduce(view.first, view.last, view.columns)) {
    const double key = 0.5 * static_cast<double>(column.first_step + column.last_step);
    const bool has_zero = column.has_finite && column.minimum == 0.0;
    const bool has_size = column.has_finite && column.maximum > 0.0;
    if (has_zero) zeros << key;
    if (column.has_nan || column.has_infinite) non_finite << key;
    if (!has_size) {  // a gap in the line: the value stands on a rail
      keys << key;
      values << kUndefined;
      continue;
    }
    if (!has_zero && column.minimum < column.maximum) {
      keys << key;
      values << scale.coordinate(column.minimum);
    }
    keys << key;
    values << scale.coordinate(column.maximum);
  }
  const bool marks =
      m_style.shape != QCPScatterStyle::ssNone && view.pixels_per_step >= kRoomForMarks;
  m_line->setScatterStyle(
      marks ? QCPScatterStyle(m_style.shape, m_style.colour, m_style.colour, m_style.mark_size)
            : QCPScatterStyle(QCPScatterStyle::ssNone));
  m_line->setData(keys, values, true);
  m_zeros->setData(zeros, QVector<double>(zeros.size(), scale.zero_rail()), true);
  if (!m_style.mark_non_finite) non_finite.clear();
  m_non_finite->setData(non_finite, QVector<double>(non_finite.size(), scale.non_finite_rail()),
                        true);
}

StepMarks::StepMarks(QCustomPlot& plot, QCPScatterStyle::ScatterShape shape, double size)
    : m_graph(add_marks(plot)), m_shape(shape), m_size(size) {}

void StepMarks::set_colour(const QColor& colour) {
  m_graph->setPen(QPen(colour, 1));
  m_graph->setScatterStyle(QCPScatterStyle(m_shape, colour, colour, m_size));
}

void StepMarks::refill(const StepView& view) {
  QVector<double> keys, values;
  std::int64_t last_column = -1;
  const auto count = static_cast<std::int64_t>(m_heights.size());
  for (std::int64_t step = view.first; step <= view.last && step < count; ++step) {
    const double height = m_heights[static_cast<std::size_t>(step)];
    if (std::isnan(height)) continue;
    const auto column =
        static_cast<std::int64_t>(static_cast<double>(step - view.first) * view.pixels_per_step);
    if (column == last_column) continue;
    last_column = column;
    keys << static_cast<double>(step);
    values << height;
  }
  m_graph->setData(keys, values, true);
}

void apply_rail_axis(QCPAxis& axis, const RailScale& scale, int wanted_ticks) {
  auto ticker = QSharedPointer<QCPAxisTickerText>::create();
  for (const ScaleTick& tick : scale.ticks(wanted_ticks))
    ticker->addTick(tick.coordinate, tick.label);
  axis.setTicker(ticker);
  axis.setRange(scale.lower(), scale.upper());
}

}  // namespace driftscope::ui
