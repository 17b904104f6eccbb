// SPDX-License-Identifier: GPL-3.0-or-later
// B minus A of the logprobs that both gave for the same token, with what printing explains.
#pragma once

#include "ui/plots/linear_curve.h"
#include "ui/plots/response_plot.h"

namespace driftscope::ui {

class ResponseDifferencePlot final : public ResponsePlot {
  Q_OBJECT
 public:
  explicit ResponseDifferencePlot(QWidget* parent);
  [[nodiscard]] QString readout(std::int64_t step) const override;
  [[nodiscard]] QString summary() const override;

 protected:
  void rebuild() override;
  void refill(const StepView& view) override;
  [[nodiscard]] QString empty_reason() const override;

 private:
  void refill_band(const StepView& view);
  QCPGraph* m_band_low;
  QCPGraph* m_band_high;
  MinMaxPyramid m_tolerance;
  double m_largest = 0.0;  // size of a known difference
  double m_largest_tolerance = 0.0;
  LinearCurve m_difference;
};

}  // namespace driftscope::ui
