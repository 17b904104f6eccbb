// SPDX-License-Identifier: GPL-3.0-or-later
// Curves on a RailScale: pen width 1, reduced to the pixel columns, zeros and non-finite values as
// marks on their rails.
#pragma once

#include <qcustomplot.h>

#include "ui/models/rail_scale.h"
#include "ui/models/series.h"
#include "ui/plots/step_plot.h"

namespace driftscope::ui {

struct CurveStyle {
  QColor colour;
  QCPScatterStyle::ScatterShape shape =
      QCPScatterStyle::ssNone;  // at every step, when there is room
  Qt::PenStyle pen = Qt::SolidLine;
  bool mark_non_finite = true;
  double mark_size = 5.0;
};

class RailCurve {
 public:
  explicit RailCurve(QCustomPlot& plot);
  void set_style(const CurveStyle& style, const Theme& theme);
  void set_values(StepValues values) { m_pyramid = MinMaxPyramid(std::move(values)); }
  [[nodiscard]] const StepValues& values() const { return m_pyramid.values(); }
  void refill(const RailScale& scale, const StepView& view);

 private:
  QCPGraph* m_line;
  QCPGraph* m_zeros;
  QCPGraph* m_non_finite;
  CurveStyle m_style;
  MinMaxPyramid m_pyramid;
};

// Marks at some steps (flips, possible flips) at given heights; at most one per pixel column.
class StepMarks {
 public:
  StepMarks(QCustomPlot& plot, QCPScatterStyle::ScatterShape shape, double size);
  void set_colour(const QColor& colour);
  // Heights per step, NaN: no mark.
  void set_heights(StepValues heights) { m_heights = std::move(heights); }
  void refill(const StepView& view);

 private:
  QCPGraph* m_graph;
  QCPScatterStyle::ScatterShape m_shape;
  double m_size;
  StepValues m_heights;
};

// Labels of the rails and decades on the value axis.
void apply_rail_axis(QCPAxis& axis, const RailScale& scale, int wanted_ticks);

}  // namespace driftscope::ui
