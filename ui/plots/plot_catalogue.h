// SPDX-License-Identifier: GPL-3.0-or-later
// Every plot, once: the window's stack, the export menu and `--plot` follow from this table.
#pragma once

#include <span>
#include <string_view>

#include "ui/plots/step_plot.h"

namespace driftscope::ui {

enum class PlotNeeds { steps, taps };

struct PlotInfo {
  std::string_view id;
  std::string_view title;
  StepPlot* (*make)(QWidget* parent);
  PlotNeeds needs;
  int stretch;  // share of the height in a stack
};
[[nodiscard]] std::span<const PlotInfo> plot_catalogue();
[[nodiscard]] const PlotInfo* find_plot(std::string_view id);
// The plots of two answers; each is a ResponsePlot.
[[nodiscard]] std::span<const PlotInfo> response_plot_catalogue();
// Whether the comparison holds what the plot needs.
[[nodiscard]] bool can_show(const PlotInfo& info, const Comparison& comparison);

}  // namespace driftscope::ui
