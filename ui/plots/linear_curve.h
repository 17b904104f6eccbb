// SPDX-License-Identifier: GPL-3.0-or-later
// Curves on a linear scale: pen width 1, minimum and maximum of each pixel column, so that a spike
// is never left out; a gap where nothing is known.
#pragma once

#include <qcustomplot.h>

#include <vector>

#include "ui/models/series.h"
#include "ui/plots/rail_curve.h"

namespace driftscope::ui {

struct ValueRange {
  double low = 0.0;
  double high = 0.0;
  bool known = false;
  void include(double value);
  void include(const ValueRange& other);
  // Wider by a share of its height at both ends; never without height.
  [[nodiscard]] ValueRange padded(double share) const;
};

class LinearCurve {
 public:
  explicit LinearCurve(QCustomPlot& plot);
  void set_style(const CurveStyle& style);
  void set_values(StepValues values) { m_pyramid = MinMaxPyramid(std::move(values)); }
  [[nodiscard]] const StepValues& values() const { return m_pyramid.values(); }
  void refill(const StepView& view);
  // Of the finite values on view.
  [[nodiscard]] ValueRange range(const StepView& view) const;

 private:
  QCPGraph* m_line;
  QCPGraph* m_alone;  // columns between two gaps, of which a line would show nothing
  CurveStyle m_style;
  MinMaxPyramid m_pyramid;
};

// Round values (1, 2 or 5 times a power of ten apart) in the range, about `wanted` of them.
[[nodiscard]] std::vector<double> round_ticks(const ValueRange& range, int wanted);
// Labels at those values, and one more at `rail` where its label is not empty.
void apply_linear_axis(QCPAxis& axis, const ValueRange& range, int wanted, double rail = 0.0,
                       const QString& rail_label = {});

}  // namespace driftscope::ui
