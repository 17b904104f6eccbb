// SPDX-License-Identifier: GPL-3.0-or-later
// Drift per place in the network and step.
#pragma once

#include "ui/models/heatmap.h"
#include "ui/plots/step_plot.h"

namespace driftscope::ui {

class HeatPlottable;

class LayerHeatmapPlot final : public StepPlot {
  Q_OBJECT
 public:
  explicit LayerHeatmapPlot(QWidget* parent);
  [[nodiscard]] QString readout(std::int64_t step) const override;
  [[nodiscard]] QString summary() const override;

 protected:
  void rebuild() override;
  void refill(const StepView& view) override;
  [[nodiscard]] QString empty_reason() const override;

 private:
  HeatPlottable* m_cells;
  Heatmap m_heatmap;
};

}  // namespace driftscope::ui
