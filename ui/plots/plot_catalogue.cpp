// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/plot_catalogue.h"

#include <algorithm>
#include <array>

#include "ui/plots/layer_heatmap_plot.h"
#include "ui/plots/logit_difference_plot.h"
#include "ui/plots/margin_plot.h"
#include "ui/plots/rank_flip_plot.h"
#include "ui/plots/response_difference_plot.h"
#include "ui/plots/response_logprob_plot.h"

namespace driftscope::ui {
namespace {

template <class Plot>
StepPlot* make(QWidget* parent) {
  return new Plot(parent);
}

constexpr std::array kPlots{
    PlotInfo{"logit_difference", "Logit difference", make<LogitDifferencePlot>, PlotNeeds::steps,
             4},
    PlotInfo{"rank_flips", "Rank flips", make<RankFlipPlot>, PlotNeeds::steps, 4},
    PlotInfo{"margins", "Margin and headroom", make<MarginPlot>, PlotNeeds::steps, 4},
    PlotInfo{"layer_heatmap", "Drift per layer", make<LayerHeatmapPlot>, PlotNeeds::taps, 4},
};

constexpr std::array kResponsePlots{
    PlotInfo{"logprob_difference", "Logprob difference", make<ResponseDifferencePlot>,
             PlotNeeds::steps, 4},
    PlotInfo{"logprobs", "Logprobs", make<ResponseLogprobPlot>, PlotNeeds::steps, 4},
};

}  // namespace

std::span<const PlotInfo> response_plot_catalogue() { return kResponsePlots; }
std::span<const PlotInfo> plot_catalogue() { return kPlots; }

const PlotInfo* find_plot(std::string_view id) {
  const auto found =
      std::find_if(kPlots.begin(), kPlots.end(), [id](const PlotInfo& p) { return p.id == id; });
  return found == kPlots.end() ? nullptr : &*found;
}

bool can_show(const PlotInfo& info, const Comparison& comparison) {
  switch (info.needs) {
    case PlotNeeds::steps:
      return true;
    case PlotNeeds::taps:
      return !comparison.taps.empty();
  }
  return false;
}

}  // namespace driftscope::ui
