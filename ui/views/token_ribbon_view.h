// SPDX-License-Identifier: GPL-3.0-or-later
// Both token sequences, step above step. Only what is in view is drawn, whatever the length.
#pragma once

#include <QAbstractScrollArea>
#include <functional>
#include <vector>

#include "ui/models/token_ribbon.h"

class QPainter;

namespace driftscope::ui {

struct Theme;

class TokenRibbonView final : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit TokenRibbonView(QWidget* parent);
  void set_comparison(ComparisonPointer comparison);
  // Any other pair of sequences. `tooltip`: HTML of one step; `empty`: why there are none.
  void set_ribbon(TokenRibbon ribbon, std::function<QString(std::int64_t)> tooltip,
                  const QString& empty);
  // Selects and scrolls it into view.
  void set_selected_step(std::int64_t step);
  [[nodiscard]] std::int64_t selected_step() const { return m_selected; }
  // Step under a viewport position, -1: none.
  [[nodiscard]] std::int64_t step_at(int x) const;
  // Steps drawn by the last paint, for tests of virtualisation.
  [[nodiscard]] std::int64_t drawn_steps() const { return m_drawn; }

 signals:
  void step_selected(qint64 step);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  bool viewportEvent(QEvent* event) override;

 private:
  void lay_out();
  void scroll_to(std::int64_t step);
  void draw_step(QPainter& painter, const Theme& theme, std::size_t index, int x) const;
  void draw_cell(QPainter& painter, const Theme& theme, QRect box, const RibbonItem& item,
                 bool second) const;
  void draw_missing(QPainter& painter, const Theme& theme, QRect box, const QString& text) const;
  void draw_visible(QPainter& painter, const Theme& theme) const;
  void draw_sides(QPainter& painter, const Theme& theme) const;
  void describe();
  TokenRibbon m_ribbon;
  std::function<QString(std::int64_t)> m_tooltip;
  QString m_empty;
  std::vector<int> m_lefts;  // left edge of every step, then the total width
  std::int64_t m_selected = -1;
  mutable std::int64_t m_drawn = 0;
};

}  // namespace driftscope::ui
