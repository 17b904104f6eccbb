// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/token_ribbon_view.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <algorithm>

#include "ui/models/navigation.h"
#include "ui/theme/theme.h"

namespace driftscope::ui {
namespace {

constexpr int kLabelWidth = 30;  // "A" and "B" at the left, not scrolled
constexpr int kCellHeight = 22;
constexpr int kRulerHeight = 16;  // step numbers
constexpr int kGap = 2;
constexpr int kPadding = 5;
constexpr int kMaximumCell = 160;
constexpr int kMarkerWidth = 2;

int row_top(int row) { return kRulerHeight + row * (kCellHeight + kGap); }

// Leading and trailing blanks must be seen.
QString shown(const QString& text) {
  QString copy = text;
  return copy.replace(QLatin1Char(' '), QChar(0x2423));
}

}  // namespace

TokenRibbonView::TokenRibbonView(QWidget* parent) : QAbstractScrollArea(parent) {
  m_empty = tr("The tokens of A and B appear here with the first step.");
  setObjectName(QStringLiteral("token_ribbons"));
  setAccessibleName(tr("Tokens of A and B"));
  setFrameShape(QFrame::NoFrame);
  setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOn);
  setFixedHeight(row_top(2) + 6 + horizontalScrollBar()->sizeHint().height());
  viewport()->setBackgroundRole(QPalette::Base);
  viewport()->setAutoFillBackground(true);
  viewport()->setMouseTracking(true);
  setFont(monospace_font(9.5));
  horizontalScrollBar()->setSingleStep(40);
}

void TokenRibbonView::set_comparison(ComparisonPointer comparison) {
  TokenRibbon ribbon = comparison ? token_ribbon(*comparison) : TokenRibbon{};
  set_ribbon(
      std::move(ribbon),
      [shown = std::move(comparison)](std::int64_t step) {
        return shown ? step_tooltip(*shown, step) : QString();
      },
      tr("The tokens of A and B appear here with the first step."));
}

void TokenRibbonView::set_ribbon(TokenRibbon ribbon, std::function<QString(std::int64_t)> tooltip,
                                 const QString& empty) {
  m_ribbon = std::move(ribbon);
  m_tooltip = std::move(tooltip);
  m_empty = empty;
  lay_out();
  describe();
  viewport()->update();
}

void TokenRibbonView::describe() {
  if (m_ribbon.items.empty()) {
    setAccessibleDescription(tr("No tokens yet"));
    return;
  }
  if (!m_ribbon.absent_b.isEmpty()) {
    setAccessibleDescription(
        tr("%1 steps of A; B: %2").arg(m_ribbon.items.size()).arg(m_ribbon.absent_b));
    return;
  }
  const QString parted = m_ribbon.divergence_step < 0
                             ? tr("no divergence")
                             : tr("divergence at step %1").arg(m_ribbon.divergence_step);
  QString chosen;
  if (m_selected >= 0 && m_selected < static_cast<std::int64_t>(m_ribbon.items.size())) {
    const RibbonItem& item = m_ribbon.items[static_cast<std::size_t>(m_selected)];
    chosen = tr("; step %1: A %2, B %3").arg(item.step).arg(item.text_a, item.text_b);
  }
  setAccessibleDescription(tr("%1 steps, %2%3").arg(m_ribbon.items.size()).arg(parted, chosen));
}

void TokenRibbonView::lay_out() {
  const QFontMetrics metrics(font());
  m_lefts.clear();
  m_lefts.reserve(m_ribbon.items.size() + 1);
  int x = 0;
  for (const RibbonItem& item : m_ribbon.items) {
    m_lefts.push_back(x);
    const int text = std::max(metrics.horizontalAdvance(shown(item.text_a)),
                              metrics.horizontalAdvance(shown(item.text_b)));
    x += std::clamp(text + 2 * kPadding, 18, kMaximumCell) + kGap;
  }
  m_lefts.push_back(x);
  const int room = std::max(1, viewport()->width() - kLabelWidth);
  horizontalScrollBar()->setPageStep(room);
  horizontalScrollBar()->setRange(0, std::max(0, x - room));
}

void TokenRibbonView::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  lay_out();
  if (m_selected >= 0) scroll_to(m_selected);
}

void TokenRibbonView::set_selected_step(std::int64_t step) {
  m_selected = step;
  scroll_to(step);
  describe();
  viewport()->update();
}

void TokenRibbonView::scroll_to(std::int64_t step) {
  if (step < 0 || step >= static_cast<std::int64_t>(m_ribbon.items.size())) return;
  const int left = m_lefts[static_cast<std::size_t>(step)];
  const int right = m_lefts[static_cast<std::size_t>(step) + 1];
  QScrollBar* bar = horizontalScrollBar();
  const int room = bar->pageStep();
  if (left < bar->value() || right > bar->value() + room) bar->setValue((left + right - room) / 2);
}

std::int64_t TokenRibbonView::step_at(int x) const {
  const int inside = x - kLabelWidth + horizontalScrollBar()->value();
  if (x < kLabelWidth || m_ribbon.items.empty() || inside >= m_lefts.back()) return -1;
  return std::upper_bound(m_lefts.begin(), m_lefts.end(), inside) - m_lefts.begin() - 1;
}

void TokenRibbonView::mousePressEvent(QMouseEvent* event) {
  const std::int64_t step = step_at(event->position().toPoint().x());
  if (step >= 0) emit step_selected(step);
}

void TokenRibbonView::wheelEvent(QWheelEvent* event) {
  const QPoint delta = event->angleDelta();
  QScrollBar* bar = horizontalScrollBar();
  bar->setValue(bar->value() - (delta.x() != 0 ? delta.x() : delta.y()));
  event->accept();
}

bool TokenRibbonView::viewportEvent(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QAbstractScrollArea::viewportEvent(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const std::int64_t step = step_at(help->pos().x());
  if (step < 0 || !m_tooltip) {
    QToolTip::hideText();
  } else {
    QToolTip::showText(help->globalPos(), m_tooltip(step), viewport());
  }
  return true;
}

void TokenRibbonView::draw_missing(QPainter& painter, const Theme& theme, QRect box,
                                   const QString& text) const {
  painter.setPen(QPen(mix(theme.grid, theme.muted, 0.35), 1, Qt::DotLine));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(box.adjusted(0, 0, -1, -1));
  if (text.isEmpty()) return;
  QFont italic = text_font(8);
  italic.setItalic(true);
  painter.save();
  painter.setFont(italic);
  painter.setPen(theme.muted);
  painter.drawText(box, Qt::AlignCenter | Qt::TextSingleLine, text);
  painter.restore();
}

void TokenRibbonView::draw_cell(QPainter& painter, const Theme& theme, QRect box,
                                const RibbonItem& item, bool second) const {
  const QString& text = second ? item.text_b : item.text_a;
  if (second ? item.missing_b : item.missing_a) return draw_missing(painter, theme, box, text);
  const QColor& side = second ? theme.side_b : theme.side_a;
  painter.setPen(Qt::NoPen);
  painter.setBrush(item.joined ? mix(theme.surface, theme.good, 0.16)
                               : mix(theme.surface, side, item.differs ? 0.28 : 0.07));
  painter.drawRoundedRect(box, 3, 3);
  // Not by colour alone: a line under tokens that differ, a dotted one where only the cut does.
  if (item.differs) {
    painter.fillRect(box.left() + 2, box.bottom() - 1, box.width() - 4, 2, side);
  } else if (item.split) {
    painter.setPen(QPen(side, 1, Qt::DotLine));
    painter.drawLine(box.left() + 2, box.bottom(), box.right() - 2, box.bottom());
  }
  painter.setPen(theme.text);
  const QRect inner = box.adjusted(kPadding, 0, -kPadding + 1, 0);
  painter.drawText(
      inner, Qt::AlignVCenter | Qt::AlignLeft | Qt::TextSingleLine,
      painter.fontMetrics().elidedText(shown(text), Qt::ElideRight, inner.width() + 2));
}

void TokenRibbonView::draw_step(QPainter& painter, const Theme& theme, std::size_t index,
                                int x) const {
  const RibbonItem& item = m_ribbon.items[index];
  const int width = m_lefts[index + 1] - m_lefts[index] - kGap;
  const QRect box_a(x, row_top(0), width, kCellHeight);
  const QRect box_b(x, row_top(1), width, kCellHeight);
  draw_cell(painter, theme, box_a, item, false);
  if (m_ribbon.absent_b.isEmpty()) draw_cell(painter, theme, box_b, item, true);
  if (item.flipped) {  // a diamond on the ruler, as on the plots
    const QPointF middle(x + width / 2.0, kRulerHeight - 5.0);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.divergence);
    painter.drawPolygon(QPolygonF({middle + QPointF(0, -4), middle + QPointF(4, 0),
                                   middle + QPointF(0, 4), middle + QPointF(-4, 0)}));
  }
  if (item.step == m_ribbon.divergence_step) {
    painter.fillRect(x - kGap, 2, kMarkerWidth, row_top(2), theme.divergence);
  }
  if (item.step == m_selected) {
    painter.setPen(QPen(theme.selection, 2));
    painter.setBrush(Qt::NoBrush);
    const int height = m_ribbon.absent_b.isEmpty() ? 2 * kCellHeight + kGap + 2 : kCellHeight + 2;
    painter.drawRoundedRect(QRect(x, row_top(0) - 1, width, height), 3, 3);
  }
}

void TokenRibbonView::draw_visible(QPainter& painter, const Theme& theme) const {
  painter.setClipRect(kLabelWidth, 0, viewport()->width() - kLabelWidth, viewport()->height());
  const int offset = horizontalScrollBar()->value();
  const auto found = std::upper_bound(m_lefts.begin(), m_lefts.end(), offset) - m_lefts.begin();
  const auto first = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, found - 1));
  int last_number_end = -100;
  const QFont number_font = text_font(7.5);
  const QFontMetrics number_metrics(number_font);
  for (std::size_t i = first; i < m_ribbon.items.size(); ++i) {
    const RibbonItem& item = m_ribbon.items[i];
    const int x = kLabelWidth + m_lefts[i] - offset;
    if (x > viewport()->width()) break;
    painter.setFont(font());
    draw_step(painter, theme, i, x);
    ++m_drawn;
    if (item.step % 5 != 0 || x < last_number_end + 12 || item.flipped) continue;
    const QString number = QString::number(item.step);
    painter.setFont(number_font);
    painter.setPen(theme.muted);
    painter.drawText(QRect(x, 0, 60, kRulerHeight - 1), Qt::AlignLeft | Qt::AlignVCenter, number);
    last_number_end = x + number_metrics.horizontalAdvance(number);
  }
}

void TokenRibbonView::draw_sides(QPainter& painter, const Theme& theme) const {
  QFont bold = text_font(10);
  bold.setBold(true);
  painter.setFont(bold);
  painter.setPen(theme.side_a);
  painter.drawText(QRect(0, row_top(0), kLabelWidth, kCellHeight), Qt::AlignCenter, tr("A"));
  painter.setPen(theme.side_b);
  painter.drawText(QRect(0, row_top(1), kLabelWidth, kCellHeight), Qt::AlignCenter, tr("B"));
}

void TokenRibbonView::paintEvent(QPaintEvent*) {
  const Theme& theme = theme_of(palette());
  QPainter painter(viewport());
  painter.setRenderHint(QPainter::Antialiasing);
  m_drawn = 0;
  if (m_ribbon.items.empty()) {
    painter.setFont(text_font());
    painter.setPen(theme.muted);
    painter.drawText(viewport()->rect(), Qt::AlignCenter, m_empty);
    return;
  }
  painter.save();
  draw_visible(painter, theme);
  painter.restore();
  if (!m_ribbon.absent_b.isEmpty()) {
    painter.setFont(text_font());
    painter.setPen(theme.muted);
    painter.drawText(QRect(kLabelWidth, row_top(1), viewport()->width() - kLabelWidth, kCellHeight),
                     Qt::AlignLeft | Qt::AlignVCenter, m_ribbon.absent_b);
  }
  draw_sides(painter, theme);
}

}  // namespace driftscope::ui
