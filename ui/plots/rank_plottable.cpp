// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/rank_plottable.h"

#include <algorithm>
#include <cmath>

namespace driftscope::ui {
namespace {

constexpr double kDetailPixels = 9.0;  // pixels per step from which single ways are drawn
constexpr double kHalfWidth = 0.32;    // of a step: A's mark to the left, B's to the right

}  // namespace

RankPlottable::RankPlottable(QCustomPlot& plot) : QCPAbstractPlottable(plot.xAxis, plot.yAxis) {
  setSelectable(QCP::stNone);
}

bool RankPlottable::detailed(double pixels_per_step) { return pixels_per_step >= kDetailPixels; }

void RankPlottable::set_ranks(const std::vector<StepRanks>* ranks, std::int32_t depth,
                              const Theme* theme) {
  m_ranks = ranks;
  m_depth = depth;
  m_theme = theme;
}

QCPRange RankPlottable::getKeyRange(bool& found, QCP::SignDomain) const {
  found = m_ranks != nullptr && !m_ranks->empty();
  return found ? QCPRange(-0.5, static_cast<double>(m_ranks->size()) - 0.5) : QCPRange();
}

QCPRange RankPlottable::getValueRange(bool& found, QCP::SignDomain, const QCPRange&) const {
  found = m_ranks != nullptr;
  return {0.0, static_cast<double>(m_depth)};
}

void RankPlottable::draw(QCPPainter* painter) {
  if (m_ranks == nullptr || m_ranks->empty()) return;
  const QCPRange range = keyAxis()->range();
  const auto limit = static_cast<std::int64_t>(m_ranks->size()) - 1;
  const auto first =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(range.lower)), 0, limit);
  const auto last =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(range.upper)), 0, limit);
  const double pixels_per_step = keyAxis()->coordToPixel(1.0) - keyAxis()->coordToPixel(0.0);
  painter->setAntialiasing(true);
  if (!detailed(pixels_per_step)) {
    draw_columns(painter, first, last, pixels_per_step);
    return;
  }
  for (std::int64_t step = first; step <= last; ++step) {
    draw_step(painter, (*m_ranks)[static_cast<std::size_t>(step)], pixels_per_step);
  }
}

void RankPlottable::draw_step(QCPPainter* painter, const StepRanks& step,
                              double pixels_per_step) const {
  const double half = std::min(kHalfWidth * pixels_per_step, 22.0) / pixels_per_step;
  const auto x = static_cast<double>(step.step);
  const auto draw_all = [&](bool moved) {
    for (const RankPath& path : step.paths) {
      if (path.moved() != moved) continue;
      draw_path(painter, coordsToPixels(x - half, path.rank_a),
                coordsToPixels(x + half, path.rank_b), path);
    }
  };
  draw_all(false);  // moved tokens on top
  draw_all(true);
}

void RankPlottable::draw_path(QCPPainter* painter, QPointF from, QPointF to,
                              const RankPath& path) const {
  if (!path.moved()) {
    painter->setPen(QPen(mix(m_theme->grid, m_theme->muted, 0.2), 1));
    painter->drawLine(from, to);
    return;
  }
  const bool touches_first = path.rank_a == 0 || path.rank_b == 0;
  painter->setPen(
      QPen(touches_first ? m_theme->divergence : m_theme->muted, touches_first ? 1.6 : 1));
  painter->drawLine(from, to);
  const double room = std::min(3.2, std::abs(to.x() - from.x()) / 2.5);
  painter->setPen(Qt::NoPen);
  if (path.rank_a < m_depth) {
    painter->setBrush(m_theme->side_a);
    painter->drawEllipse(from, room, room);
  }
  if (path.rank_b < m_depth) {
    painter->setBrush(m_theme->side_b);
    painter->drawRect(QRectF(to.x() - room, to.y() - room, 2 * room, 2 * room));
  }
}

void RankPlottable::draw_columns(QCPPainter* painter, std::int64_t first, std::int64_t last,
                                 double pixels_per_step) const {
  const double width = std::clamp(pixels_per_step * 0.6, 1.0, 4.0);
  double column = -1e9;
  std::int32_t best = -1;
  const auto flush = [&] {
    if (best < 0) return;
    // From the best rank that moved down to the rail: higher bars reach nearer to the choice.
    const double top = coordsToPixels(0, best).y();
    painter->fillRect(QRectF(column - width / 2, top, width, coordsToPixels(0, m_depth).y() - top),
                      best == 0 ? m_theme->divergence : mix(m_theme->grid, m_theme->muted, 0.75));
  };
  for (std::int64_t step = first; step <= last; ++step) {
    const StepRanks& ranks = (*m_ranks)[static_cast<std::size_t>(step)];
    const double x = std::round(coordsToPixels(static_cast<double>(step), 0).x());
    if (x != column) {
      flush();
      column = x;
      best = -1;
    }
    if (ranks.best_moved >= 0)
      best = best < 0 ? ranks.best_moved : std::min(best, ranks.best_moved);
  }
  flush();
}

}  // namespace driftscope::ui
