// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/plot_header.h"

namespace driftscope::ui {
namespace {

constexpr int kHeight = 20;
constexpr int kPadding = 8;
constexpr int kAfterTitle = 14;
constexpr int kAfterMark = 5;
constexpr int kAfterEntry = 12;
constexpr int kAfterShort = 8;
constexpr int kLeftFlags = Qt::AlignVCenter | Qt::AlignLeft | Qt::TextSingleLine;

QFont title_font() {
  QFont font = text_font(9);
  font.setBold(true);
  return font;
}

QFont legend_font() { return text_font(8.5); }

QString name_of_mark(const LegendEntry& entry) {
  switch (entry.mark) {
    case LegendMark::line:
      return QStringLiteral("line");
    case LegendMark::dashed_line:
      return QStringLiteral("dashed line");
    case LegendMark::circle:
      return QStringLiteral("circles");
    case LegendMark::square:
      return QStringLiteral("squares");
    case LegendMark::diamond:
      return QStringLiteral("diamonds");
    case LegendMark::triangle:
      return QStringLiteral("triangles");
    case LegendMark::ramp:
      return QStringLiteral("colours");
  }
  return {};
}

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

QString PlotHeader::title_in(const Form& form) const {
  return form.short_title && !m_short_title.isEmpty() ? m_short_title : m_title;
}

QString PlotHeader::text_in(const Form& form, const LegendEntry& entry) {
  return form.short_texts && !entry.short_text.isEmpty() ? entry.short_text : entry.text;
}

int PlotHeader::width_of(const Form& form) const {
  const QFontMetrics metrics(legend_font());
  int width = QFontMetrics(title_font()).horizontalAdvance(title_in(form)) + kAfterTitle;
  for (const LegendEntry& entry : m_entries) {
    width += mark_width(entry) + kAfterMark + metrics.horizontalAdvance(text_in(form, entry)) +
             (form.short_texts ? kAfterShort : kAfterEntry);
  }
  return width - (form.short_texts ? kAfterShort : kAfterEntry);
}

PlotHeader::Form PlotHeader::fitting_form(int room, int readout_width) const {
  for (const int rest : {room - readout_width - kAfterEntry, room}) {
    for (const Form& form : {Form{}, Form{.short_texts = true}}) {
      if (width_of(form) <= rest) return form;
    }
  }
  return {.short_title = true, .short_texts = true};
}

QString PlotHeader::legend_text() const {
  QStringList texts;
  for (const LegendEntry& entry : m_entries) {
    texts << QStringLiteral("%1: %2").arg(name_of_mark(entry), entry.text);
  }
  return m_title + QLatin1Char('\n') + texts.join(QLatin1Char('\n'));
}

void PlotHeader::draw_legend(QCPPainter* painter, const Form& form, int x) const {
  const QRect box = rect();
  const QFontMetrics metrics(legend_font());
  const int right = box.right() - kPadding;
  painter->setFont(legend_font());
  for (const LegendEntry& entry : m_entries) {
    const QString text = text_in(form, entry);
    const int width = metrics.horizontalAdvance(text);
    const int mark = mark_width(entry);
    if (x + mark + kAfterMark + width > right) break;
    draw_mark(painter, entry, QRectF(x, box.top(), mark, box.height()));
    x += mark + kAfterMark;
    painter->setPen(m_theme->muted);
    painter->drawText(QRect(x, box.top(), width + 4, box.height()), kLeftFlags, text);
    x += width + (form.short_texts ? kAfterShort : kAfterEntry);
  }
}

void PlotHeader::draw(QCPPainter* painter) {
  const QRect box = rect();
  const int left = box.left() + kPadding;
  const int right = box.right() - kPadding;
  const int readout_width = QFontMetrics(legend_font()).horizontalAdvance(m_readout);
  const Form form = fitting_form(right - left, readout_width);
  const QString title = title_in(form);
  const int title_width = QFontMetrics(title_font()).horizontalAdvance(title);
  painter->setFont(title_font());
  painter->setPen(m_theme->text);
  painter->drawText(QRect(left, box.top(), title_width + 4, box.height()), kLeftFlags, title);
  draw_legend(painter, form, left + title_width + kAfterTitle);
  // The figures of the selected step come last: they are in the tables as well.
  if (right - readout_width < left + width_of(form) + kAfterEntry) return;
  painter->setFont(legend_font());
  painter->setPen(m_theme->text);
  painter->drawText(QRect(right - readout_width - 4, box.top(), readout_width + 4, box.height()),
                    Qt::AlignVCenter | Qt::AlignRight | Qt::TextSingleLine, m_readout);
}

}  // namespace driftscope::ui
