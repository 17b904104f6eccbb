// SPDX-License-Identifier: GPL-3.0-or-later
// The bump chart: at each step, the ways of the best tokens from A's ranking (left) to B's (right).
#pragma once

#include <vector>

#include "ui/models/rank_flips.h"
#include "ui/plots/step_plot.h"

namespace driftscope::ui {

class RankPlottable;

class RankFlipPlot final : public StepPlot {
  Q_OBJECT
 public:
  explicit RankFlipPlot(QWidget* parent);
  [[nodiscard]] QString readout(std::int64_t step) const override;
  [[nodiscard]] QString summary() const override;

 protected:
  void rebuild() override;
  void refill(const StepView& view) override;
  [[nodiscard]] QString empty_reason() const override;

 private:
  void show_legend(bool detailed);
  RankPlottable* m_paths;
  std::vector<StepRanks> m_ranks;
  std::int32_t m_depth = 1;
};

}  // namespace driftscope::ui
