// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/plot_header.h"

namespace driftscope::ui {
namespace {

constexpr int kHeight = 20;
constexpr int kPadding = 8;

}  // namespace

PlotHeader::PlotHeader(QCustomPlot* plot, QString title)
    : QCPLayoutElement(plot), m_title(std::move(title)), m_theme(&theme_of(ThemeKind::light)) {}

QSize PlotHeader::minimumOuterSizeHint() const { return {50, kHeight}; }
QSize PlotHeader::maximumOuterSizeHint() const { return {QWIDGETSIZE_MAX, kHeight}; }

void PlotHeader::applyDefaultAntialiasingHint(QCPPainter* painter) const {
  painter->setAntialiasing(true);
}

int PlotHeader::mark_width(const LegendEntry& entry) const {
  switch (entry.mark) {
    case LegendMark::line:
    case LegendMark::dashed_line:
      return 18;
    case LegendMark::ramp:
      return 70;
    case LegendMark::circle:
    case LegendMark::square:
    case LegendMark::diamond:
    case LegendMark::triangle:
      return 10;
  }
  return 10;
}

void PlotHeader::draw_mark(QCPPainter* painter, const LegendEntry& entry, QRectF box) const {
  const QPointF middle = box.center();
  painter->setPen(QPen(entry.colour, 1.6,
                       entry.mark == LegendMark::dashed_line ? Qt::DashLine : Qt::SolidLine));
  painter->setBrush(entry.colour);
  switch (entry.mark) {
    case LegendMark::line:
    case LegendMark::dashed_line:
      painter->drawLine(QPointF(box.left(), middle.y()), QPointF(box.right(), middle.y()));
      break;
    case LegendMark::circle:
      painter->drawEllipse(middle, 3.2, 3.2);
      break;
    case LegendMark::square:
      painter->drawRect(QRectF(middle.x() - 3, middle.y() - 3, 6, 6));
      break;
    case LegendMark::diamond:
      painter->drawPolygon(QPolygonF({{middle.x(), middle.y() - 4.5},
                                      {middle.x() + 4.5, middle.y()},
                                      {middle.x(), middle.y() + 4.5},
                                      {middle.x() - 4.5, middle.y()}}));
      break;
    case LegendMark::triangle:
      painter->drawPolygon(QPolygonF({{middle.x(), middle.y() - 4},
                                      {middle.x() + 4, middle.y() + 3},
                                      {middle.x() - 4, middle.y() + 3}}));
      break;
    case LegendMark::ramp:
      painter->setPen(Qt::NoPen);
      for (int i = 0; i < 35; ++i) {
        painter->setBrush(ramp_colour(*m_theme, i / 34.0));
        painter->drawRect(QRectF(box.left() + i * 2, middle.y() - 5, 2.0, 10));
      }
      break;
  }
}

void PlotHeader::draw(QCPPainter* painter) {
  const QRect box = rect();
  const auto flags = Qt::AlignVCenter | Qt::AlignLeft | Qt::TextSingleLine;
  QFont title_font = text_font(9);
  title_font.setBold(true);
  painter->setFont(title_font);
  painter->setPen(m_theme->text);
  int x = box.left() + kPadding;
  const int title_width = QFontMetrics(title_font).horizontalAdvance(m_title);
  painter->drawText(QRect(x, box.top(), title_width + 4, box.height()), flags, m_title);
  x += title_width + 14;

  const QFont font = text_font(8.5);
  const QFontMetrics metrics(font);
  painter->setFont(font);
  const int right = box.right() - kPadding;
  for (const LegendEntry& entry : m_entries) {
    const int width = metrics.horizontalAdvance(entry.text);
    const int mark = mark_width(entry);
    if (x + mark + 5 + width > right) break;
    draw_mark(painter, entry, QRectF(x, box.top(), mark, box.height()));
    x += mark + 5;
    painter->setPen(m_theme->muted);
    painter->drawText(QRect(x, box.top(), width + 4, box.height()), flags, entry.text);
    x += width + 12;
  }
  const int readout_width = metrics.horizontalAdvance(m_readout);
  if (right - readout_width < x) return;
  painter->setPen(m_theme->text);
  painter->drawText(QRect(right - readout_width - 4, box.top(), readout_width + 4, box.height()),
                    Qt::AlignVCenter | Qt::AlignRight | Qt::TextSingleLine, m_readout);
}

}  // namespace driftscope::ui
