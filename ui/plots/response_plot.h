// SPDX-License-Identifier: GPL-3.0-or-later
// Base of the plots of two answers: over the columns of their ribbons.
#pragma once

#include "ui/models/response_series.h"
#include "ui/plots/step_plot.h"

namespace driftscope::ui {

class ResponsePlot : public StepPlot {
  Q_OBJECT
 public:
  using StepPlot::StepPlot;
  void set_pair(ResponsePairPointer pair);
  [[nodiscard]] const ResponsePairPointer& pair() const { return m_pair; }
  [[nodiscard]] const ResponseSeries& series() const { return m_series; }

 private:
  ResponsePairPointer m_pair;
  ResponseSeries m_series;
};

}  // namespace driftscope::ui
