// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/heat_plottable.h"

#include <QImage>
#include <algorithm>
#include <cmath>

namespace driftscope::ui {

HeatPlottable::HeatPlottable(QCustomPlot& plot) : QCPAbstractPlottable(plot.xAxis, plot.yAxis) {
  setSelectable(QCP::stNone);
}

void HeatPlottable::set_heatmap(const Heatmap* heatmap, const Theme* theme) {
  m_heatmap = heatmap;
  m_theme = theme;
}

QCPRange HeatPlottable::getKeyRange(bool& found, QCP::SignDomain) const {
  found = m_heatmap != nullptr && m_heatmap->steps() > 0;
  return found ? QCPRange(-0.5, static_cast<double>(m_heatmap->steps()) - 0.5) : QCPRange();
}

QCPRange HeatPlottable::getValueRange(bool& found, QCP::SignDomain, const QCPRange&) const {
  found = m_heatmap != nullptr && m_heatmap->rows() > 0;
  return found ? QCPRange(-0.5, static_cast<double>(m_heatmap->rows()) - 0.5) : QCPRange();
}

QColor HeatPlottable::colour_of(const HeatCell& cell) const {
  switch (cell.kind) {
    case CellKind::empty:
      return m_theme->surface;
    case CellKind::zero:
      return mix(m_theme->surface, m_theme->grid, 0.7);
    case CellKind::finite:
      return ramp_colour(*m_theme, m_heatmap->shade(cell.value));
    case CellKind::non_finite:
      return m_theme->non_finite;
  }
  return m_theme->surface;
}

void HeatPlottable::draw(QCPPainter* painter) {
  if (m_heatmap == nullptr || m_heatmap->rows() == 0 || m_heatmap->steps() == 0) return;
  const QCPRange range = keyAxis()->range();
  const std::int64_t limit = m_heatmap->steps() - 1;
  const auto first =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(range.lower)), 0, limit);
  const auto last =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(range.upper)), 0, limit);
  const double rows = static_cast<double>(m_heatmap->rows());
  const QPointF top_left = coordsToPixels(static_cast<double>(first) - 0.5, -0.5);
  const QPointF bottom_right = coordsToPixels(static_cast<double>(last) + 0.5, rows - 0.5);
  const QRectF target(top_left, bottom_right);
  // At most one cell per pixel: enlarging an image repeats cells and loses none.
  const auto columns =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(target.width()), 1, last - first + 1);
  const auto lines =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(target.height()), 1, m_heatmap->rows());
  const auto cells = m_heatmap->pooled(first, last, columns, lines);
  QImage image(static_cast<int>(columns), static_cast<int>(lines), QImage::Format_RGB32);
  for (std::int64_t y = 0; y < lines; ++y) {
    for (std::int64_t x = 0; x < columns; ++x) {
      image.setPixelColor(static_cast<int>(x), static_cast<int>(y),
                          colour_of(cells[static_cast<std::size_t>(y * columns + x)]));
    }
  }
  painter->setRenderHint(QPainter::SmoothPixmapTransform, false);
  painter->drawImage(target, image);
}

}  // namespace driftscope::ui
