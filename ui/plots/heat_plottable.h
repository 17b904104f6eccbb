// SPDX-License-Identifier: GPL-3.0-or-later
// Draws a Heatmap pooled to the pixels that it has, so that no cell is dropped by scaling.
#pragma once

#include <qcustomplot.h>

#include "ui/models/heatmap.h"
#include "ui/theme/theme.h"

namespace driftscope::ui {

class HeatPlottable : public QCPAbstractPlottable {
 public:
  explicit HeatPlottable(QCustomPlot& plot);
  // `heatmap` outlives the plottable's drawing.
  void set_heatmap(const Heatmap* heatmap, const Theme* theme);

  double selectTest(const QPointF&, bool, QVariant*) const override { return -1.0; }
  QCPRange getKeyRange(bool& found, QCP::SignDomain) const override;
  QCPRange getValueRange(bool& found, QCP::SignDomain, const QCPRange&) const override;

 protected:
  void draw(QCPPainter* painter) override;
  void drawLegendIcon(QCPPainter*, const QRectF&) const override {}

 private:
  [[nodiscard]] QColor colour_of(const HeatCell& cell) const;
  const Heatmap* m_heatmap = nullptr;
  const Theme* m_theme = nullptr;
};

}  // namespace driftscope::ui
