// SPDX-License-Identifier: GPL-3.0-or-later
// Draws StepRanks: every token's way where steps have room, else one bar per pixel column.
#pragma once

#include <qcustomplot.h>

#include <vector>

#include "ui/models/rank_flips.h"
#include "ui/theme/theme.h"

namespace driftscope::ui {

class RankPlottable : public QCPAbstractPlottable {
 public:
  explicit RankPlottable(QCustomPlot& plot);
  // Whether each token's way is drawn, or one bar per step or pixel column.
  [[nodiscard]] static bool detailed(double pixels_per_step);
  // `ranks` outlives the plottable's drawing; index is the step.
  void set_ranks(const std::vector<StepRanks>* ranks, std::int32_t depth, const Theme* theme);

  double selectTest(const QPointF&, bool, QVariant*) const override { return -1.0; }
  QCPRange getKeyRange(bool& found, QCP::SignDomain) const override;
  QCPRange getValueRange(bool& found, QCP::SignDomain, const QCPRange&) const override;

 protected:
  void draw(QCPPainter* painter) override;
  void drawLegendIcon(QCPPainter*, const QRectF&) const override {}

 private:
  void draw_step(QCPPainter* painter, const StepRanks& step, double pixels_per_step) const;
  void draw_path(QCPPainter* painter, QPointF from, QPointF to, const RankPath& path) const;
  void draw_columns(QCPPainter* painter, std::int64_t first, std::int64_t last,
                    double pixels_per_step) const;
  const std::vector<StepRanks>* m_ranks = nullptr;
  std::int32_t m_depth = 1;
  const Theme* m_theme = nullptr;
};

}  // namespace driftscope::ui
