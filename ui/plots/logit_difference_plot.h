// SPDX-License-Identifier: GPL-3.0-or-later
// Size of the difference of the two logit rows, per step, on a logarithmic scale. Of files that
// list a few tokens of each step: of the tokens that both list.
#pragma once

#include "ui/models/rail_scale.h"
#include "ui/plots/rail_curve.h"
#include "ui/plots/step_plot.h"

namespace driftscope::ui {

class LogitDifferencePlot final : public StepPlot {
  Q_OBJECT
 public:
  explicit LogitDifferencePlot(QWidget* parent);
  [[nodiscard]] QString readout(std::int64_t step) const override;
  [[nodiscard]] QString summary() const override;

 protected:
  void rebuild() override;
  void refill(const StepView& view) override;
  [[nodiscard]] QString empty_reason() const override;

 private:
  void fill_from_rows(const Comparison& comparison);
  void fill_from_lists(const Comparison& comparison);
  void fill_flips(const StepValues& heights);
  [[nodiscard]] QString readout_of_lists(const StepComparison& row) const;
  RailCurve m_largest;
  RailCurve m_rms;
  RailCurve m_centred;
  StepMarks m_unhealthy;  // steps with NaN or infinity in a logit row: sums leave those entries out
  StepMarks m_flips;
  RailScale m_scale;
};

}  // namespace driftscope::ui
