// SPDX-License-Identifier: GPL-3.0-or-later
// The logprobs of the tokens that A and B chose; values that are no numbers on a rail of their own.
#pragma once

#include "ui/plots/linear_curve.h"
#include "ui/plots/response_plot.h"

namespace driftscope::ui {

class ResponseLogprobPlot final : public ResponsePlot {
  Q_OBJECT
 public:
  explicit ResponseLogprobPlot(QWidget* parent);
  [[nodiscard]] QString readout(std::int64_t step) const override;
  [[nodiscard]] QString summary() const override;

 protected:
  void rebuild() override;
  void refill(const StepView& view) override;
  [[nodiscard]] QString empty_reason() const override;

 private:
  [[nodiscard]] bool has_beyond() const;
  LinearCurve m_a;
  LinearCurve m_b;
  StepMarks m_beyond_a;
  StepMarks m_beyond_b;
};

}  // namespace driftscope::ui
