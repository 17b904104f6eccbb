// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/rank_flip_plot.h"

#include <qcustomplot.h>

#include <algorithm>

#include "ui/models/navigation.h"
#include "ui/models/token_text.h"
#include "ui/plots/rank_plottable.h"

namespace driftscope::ui {

RankFlipPlot::RankFlipPlot(QWidget* parent)
    : StepPlot(QStringLiteral("rank_flips"), QStringLiteral("Rank flips"), parent),
      m_paths(new RankPlottable(plot())) {
  plot().yAxis->setRangeReversed(true);
}

void RankFlipPlot::rebuild() {
  m_ranks = comparison() ? all_ranks(*comparison()) : std::vector<StepRanks>{};
  m_depth = comparison() ? rank_depth(*comparison()) : 10;
  m_paths->set_ranks(&m_ranks, m_depth, &theme());
}

// The two drawings of the plot have different marks.
void RankFlipPlot::show_legend(bool detailed) {
  const Theme& t = theme();
  const LegendEntry first{LegendMark::line, t.divergence, QStringLiteral("first place changes"),
                          QStringLiteral("first place")};
  if (detailed) {
    set_legend(
        {{LegendMark::circle, t.side_a, QStringLiteral("rank in A (left)"), QStringLiteral("A")},
         {LegendMark::square, t.side_b, QStringLiteral("rank in B (right)"), QStringLiteral("B")},
         first});
  } else {
    set_legend({{LegendMark::line, mix(t.grid, t.muted, 0.75),
                 QStringLiteral("bar from the best rank that changes (zoom in for tokens)"),
                 QStringLiteral("best rank that changes")},
                first});
  }
}

void RankFlipPlot::refill(const StepView& view) {
  show_legend(RankPlottable::detailed(view.pixels_per_step));
  auto ticker = QSharedPointer<QCPAxisTickerText>::create();
  const int room = std::max(2, (view.height - 30) / 14);
  const std::int32_t stride = std::max(1, (m_depth + room - 1) / room);
  for (std::int32_t rank = 0; rank < m_depth; rank += stride) {
    ticker->addTick(rank, QString::number(rank + 1));
  }
  ticker->addTick(m_depth, QStringLiteral("> %1").arg(m_depth));
  plot().yAxis->setTicker(ticker);
  plot().yAxis->setRange(-0.6, m_depth + 0.5);
  plot().yAxis->setLabel(QStringLiteral("rank"));
}

QString RankFlipPlot::empty_reason() const {
  if (!comparison()) return QStringLiteral("Ranks appear here with the first step");
  if (m_ranks.empty()) return QStringLiteral("No step of A and B has been compared yet");
  const bool any = std::any_of(m_ranks.begin(), m_ranks.end(),
                               [](const StepRanks& ranks) { return ranks.paths.size() > 1; });
  if (!any && comparison()->listed()) {
    return QStringLiteral(
        "Ranks are not known: no step lists two tokens. Ask the server for top_logprobs");
  }
  return {};
}

QString RankFlipPlot::readout(std::int64_t step) const {
  if (step < 0 || step >= static_cast<std::int64_t>(m_ranks.size())) return {};
  const StepRanks& ranks = m_ranks[static_cast<std::size_t>(step)];
  if (ranks.flips == 0) return QStringLiteral("same order");
  return QStringLiteral("%1 %2 order%3")
      .arg(ranks.flips)
      .arg(ranks.flips == 1 ? QStringLiteral("pair changes") : QStringLiteral("pairs change"))
      .arg(ranks.flipped ? QStringLiteral(", first place too") : QString());
}

QString RankFlipPlot::summary() const {
  const auto moved = std::count_if(m_ranks.begin(), m_ranks.end(),
                                   [](const StepRanks& r) { return r.best_moved >= 0; });
  const auto flipped =
      std::count_if(m_ranks.begin(), m_ranks.end(), [](const StepRanks& r) { return r.flipped; });
  return QStringLiteral("%1 steps change the order of the best %2; %3 change the choice.")
      .arg(moved)
      .arg(m_depth)
      .arg(flipped);
}

}  // namespace driftscope::ui
