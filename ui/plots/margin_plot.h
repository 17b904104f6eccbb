// SPDX-License-Identifier: GPL-3.0-or-later
// How far each side's best token is ahead, and how hard the drift pulls at it.
#pragma once

#include "ui/models/margins.h"
#include "ui/models/rail_scale.h"
#include "ui/plots/rail_curve.h"
#include "ui/plots/step_plot.h"

namespace driftscope::ui {

class MarginPlot final : public StepPlot {
  Q_OBJECT
 public:
  explicit MarginPlot(QWidget* parent);
  [[nodiscard]] QString readout(std::int64_t step) const override;
  [[nodiscard]] QString summary() const override;

 protected:
  void rebuild() override;
  void refill(const StepView& view) override;
  [[nodiscard]] QString empty_reason() const override;

 private:
  void show_legend();
  [[nodiscard]] bool from_lists() const { return comparison() && comparison()->listed(); }
  RailCurve m_pull;
  RailCurve m_margin_a;
  RailCurve m_margin_b;
  StepMarks m_possible;  // headroom below 1
  StepMarks m_flips;
  RailScale m_scale;
  std::int64_t m_possible_count = 0;
};

}  // namespace driftscope::ui
