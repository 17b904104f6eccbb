// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/step_plot.h"

#include <qcustomplot.h>

#include <QEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "ui/models/navigation.h"
#include "ui/plots/plot_header.h"

namespace driftscope::ui {
namespace {

// Fixed margins rather than fitted ones: the step axes of all plots then align to the pixel, on
// screen, in a stack and in an exported overview.
constexpr int kLeftMargin = 74;
constexpr int kRightMargin = 14;
constexpr int kClickTolerance = 4;  // pixels between press and release

// A translucent band as wide as the step, so that the line of a divergence there stays visible.
void draw_as_band(QCPItemStraightLine& line, const Theme& theme, const StepView& view) {
  QColor colour = theme.selection;
  const double width = std::clamp(view.pixels_per_step, 1.5, 60.0);
  colour.setAlphaF(width < 2.5 ? 0.9F : 0.3F);
  line.setPen(QPen(colour, width, Qt::SolidLine, Qt::FlatCap));
}

}  // namespace

StepPlot::StepPlot(QString id, QString title, QWidget* parent)
    : QWidget(parent),
      m_id(std::move(id)),
      m_title(std::move(title)),
      m_theme(&theme_of(palette())),
      m_plot(new QCustomPlot(this)),
      m_header(new PlotHeader(m_plot, m_title)) {
  setObjectName(QStringLiteral("plot_") + m_id);
  setAccessibleName(m_title);
  setMinimumHeight(70);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(m_plot);
  m_plot->setAccessibleName(m_title);
  m_plot->setFocusPolicy(Qt::ClickFocus);
  m_plot->setMinimumSize(100, 60);
  m_plot->plotLayout()->insertRow(0);
  m_plot->plotLayout()->addElement(0, 0, m_header);
  m_plot->plotLayout()->setRowSpacing(0);
  auto* axes = m_plot->axisRect();
  axes->setAutoMargins(QCP::msBottom);
  axes->setMargins(QMargins(kLeftMargin, 3, kRightMargin, 4));
  m_plot->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
  axes->setRangeDrag(Qt::Horizontal);
  axes->setRangeZoom(Qt::Horizontal);
  m_header->setLayer(QStringLiteral("overlay"));
  make_markers();
  style_axes();
  m_plot->installEventFilter(this);
  m_plot->setMouseTracking(true);
  connect(m_plot->xAxis, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this,
          [this](const QCPRange& range) { on_range(range.lower, range.upper); });
}

StepPlot::~StepPlot() = default;

void StepPlot::make_markers() {
  const auto make_line = [this] {
    auto* line = new QCPItemStraightLine(m_plot);
    line->setLayer(QStringLiteral("overlay"));
    line->setSelectable(false);
    line->setVisible(false);
    return line;
  };
  m_selection_line = make_line();
  m_divergence_line = make_line();
  m_anchor_line = make_line();
  m_empty_note = new QCPItemText(m_plot);
  m_empty_note->setLayer(QStringLiteral("overlay"));
  m_empty_note->setSelectable(false);
  m_empty_note->position->setType(QCPItemPosition::ptAxisRectRatio);
  m_empty_note->position->setCoords(0.5, 0.5);
  m_empty_note->setTextAlignment(Qt::AlignCenter);
}

void StepPlot::style_axes() {
  m_plot->setBackground(m_theme->surface);
  m_header->set_theme(m_theme);
  const QFont font = text_font(8);
  for (QCPAxis* axis : {m_plot->xAxis, m_plot->yAxis}) {
    axis->setBasePen(QPen(m_theme->muted, 1));
    axis->setTickPen(QPen(m_theme->muted, 1));
    axis->setSubTicks(false);
    axis->setTickLength(0, 3);
    axis->setTickLabelFont(font);
    axis->setTickLabelColor(m_theme->muted);
    axis->setLabelFont(font);
    axis->setLabelColor(m_theme->muted);
    axis->grid()->setPen(QPen(m_theme->grid, 1));
    axis->grid()->setZeroLinePen(QPen(m_theme->grid, 1));
  }
  auto ticker = QSharedPointer<QCPAxisTickerFixed>::create();
  ticker->setTickStep(1.0);
  ticker->setScaleStrategy(QCPAxisTickerFixed::ssMultiples);
  ticker->setTickCount(10);
  m_plot->xAxis->setTicker(ticker);
  m_plot->xAxis->setNumberFormat(QStringLiteral("f"));
  m_plot->xAxis->setNumberPrecision(0);
  m_plot->xAxis->setTickLabels(m_step_labels);
  m_plot->xAxis->setLabel(m_step_labels ? m_axis_words : QString());
  m_plot->xAxis->setLabelPadding(1);
  m_divergence_line->setPen(QPen(m_theme->divergence, 1, Qt::DashLine));
  m_anchor_line->setPen(QPen(m_theme->selection, 1, Qt::DashDotLine));
  m_empty_note->setFont(text_font(9));
  m_empty_note->setColor(m_theme->muted);
  m_empty_note->setBrush(m_theme->surface);  // no grid line runs through the words
  m_empty_note->setPadding(QMargins(8, 4, 8, 4));
}

void StepPlot::set_theme(const Theme& theme) {
  m_theme = &theme;
  style_axes();
  rebuild();
  update_now();
}

void StepPlot::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && m_header != nullptr) {
    const Theme& fitting = theme_of(palette());
    if (&fitting != m_theme) set_theme(fitting);
  }
}

void StepPlot::set_comparison(ComparisonPointer comparison) {
  m_comparison = std::move(comparison);
  set_extent(m_comparison ? step_count(*m_comparison) : 0,
             m_comparison ? first_difference(*m_comparison) : std::nullopt);
  rebuild();
  update_now();
}

void StepPlot::set_extent(std::int64_t steps, std::optional<std::int64_t> parting) {
  m_steps = steps;
  m_parting = parting;
}

void StepPlot::set_step_words(const QString& axis, const QString& singular) {
  m_axis_words = axis;
  m_step_word = singular;
  style_axes();
}

void StepPlot::set_selected_step(std::int64_t step) {
  m_selected = step;
  place_markers();
  m_plot->replot(QCustomPlot::rpQueuedReplot);
}

void StepPlot::set_anchor_step(std::int64_t step) {
  m_anchor = step;
  place_markers();
  m_plot->replot(QCustomPlot::rpQueuedReplot);
}

void StepPlot::place_markers() {
  const auto place = [](QCPItemStraightLine* line, double step) {
    line->point1->setCoords(step, 0.0);
    line->point2->setCoords(step, 1.0);
    line->setVisible(true);
  };
  m_divergence_line->setVisible(false);
  m_selection_line->setVisible(false);
  m_anchor_line->setVisible(false);
  const bool has_steps = m_steps > 0;
  if (has_steps) {
    if (m_parting) place(m_divergence_line, static_cast<double>(*m_parting));
    if (m_selected >= 0) place(m_selection_line, static_cast<double>(m_selected));
    if (m_anchor >= 0) place(m_anchor_line, static_cast<double>(m_anchor));
  }
  const QString reason = empty_reason();
  m_empty_note->setVisible(!reason.isEmpty());
  m_empty_note->setText(reason);
  const bool readable = reason.isEmpty() && has_steps && m_selected >= 0;
  const QString figures = readable ? readout(m_selected) : QString();
  m_header->set_readout(
      figures.isEmpty()
          ? QString()
          : QStringLiteral("%1 %2: %3").arg(m_step_word).arg(m_selected).arg(figures));
  m_plot->setAccessibleDescription(reason.isEmpty() ? summary() + QStringLiteral(" ") + figures
                                                    : reason);
}

void StepPlot::set_legend(std::vector<LegendEntry> entries) {
  m_header->set_legend(std::move(entries));
}

void StepPlot::set_title(const QString& title) {
  m_title = title;
  setAccessibleName(title);
  m_plot->setAccessibleName(title);
  m_header->set_title(title);
}

QString StepPlot::value_axis() const { return m_plot->yAxis->label(); }

void StepPlot::set_short_title(const QString& title) { m_header->set_short_title(title); }

void StepPlot::set_step_range(double lower, double upper) {
  m_setting_range = true;
  m_plot->xAxis->setRange(lower, upper);
  m_setting_range = false;
  update_now();
}

double StepPlot::range_lower() const { return m_plot->xAxis->range().lower; }
double StepPlot::range_upper() const { return m_plot->xAxis->range().upper; }
int StepPlot::axis_left() const { return m_plot->axisRect()->left(); }

void StepPlot::set_step_labels(bool visible) {
  m_step_labels = visible;
  style_axes();
}

StepView StepPlot::view_for(QSize size) const {
  const double pixels = std::max(1, size.width() - kLeftMargin - kRightMargin);
  const double span = std::max(1e-9, range_upper() - range_lower());
  // One step more at each side, so that lines run out of the frame.
  return {.first = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(range_lower()))),
          .last = std::min<std::int64_t>(m_steps - 1,
                                         static_cast<std::int64_t>(std::ceil(range_upper()))),
          .columns = static_cast<std::int64_t>(pixels),
          .pixels_per_step = pixels / span,
          .height = size.height()};
}

void StepPlot::update_now() {
  const StepView view = view_for(m_plot->size());
  refill(view);
  draw_as_band(*m_selection_line, *m_theme, view);
  place_markers();
  m_plot->replot(QCustomPlot::rpQueuedReplot);
}

void StepPlot::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  update_now();
}

void StepPlot::draw_into(QCPPainter& painter, QSize size) {
  const StepView view = view_for(size);
  refill(view);
  draw_as_band(*m_selection_line, *m_theme, view);
  place_markers();
  m_plot->toPainter(&painter, size.width(), size.height());
}

void StepPlot::on_range(double lower, double upper) {
  if (m_setting_range) return;
  const auto count = static_cast<double>(m_steps);
  const double low_limit = -0.5;
  const double high_limit = std::max(count, 1.0) - 0.5;
  const double span =
      std::clamp(upper - lower, std::min(3.0, high_limit - low_limit), high_limit - low_limit);
  lower = std::clamp((lower + upper - span) / 2.0, low_limit, high_limit - span);
  set_step_range(lower, lower + span);
  emit range_changed(lower, lower + span);
}

std::int64_t StepPlot::step_at_pixel(double x) const {
  if (m_steps == 0) return -1;
  const auto step = static_cast<std::int64_t>(std::lround(m_plot->xAxis->pixelToCoord(x)));
  return std::clamp<std::int64_t>(step, 0, m_steps - 1);
}

void StepPlot::on_click(double x, bool second_cursor) {
  const std::int64_t step = step_at_pixel(x);
  if (step < 0) return;
  if (second_cursor) {
    emit anchor_selected(step);
  } else {
    emit step_selected(step);
  }
}

void StepPlot::show_hover(QPoint position, QPoint global) {
  if (m_header->rect().contains(position) && empty_reason().isEmpty()) {
    QToolTip::showText(global, m_header->legend_text(), m_plot);
    return;
  }
  const std::int64_t step = step_at_pixel(position.x());
  const bool inside = m_plot->axisRect()->rect().contains(position);
  if (step < 0 || !inside || !empty_reason().isEmpty()) {
    QToolTip::hideText();
    return;
  }
  QToolTip::showText(
      global, QStringLiteral("%1 %2: %3").arg(m_step_word).arg(step).arg(readout(step)), m_plot);
}

bool StepPlot::eventFilter(QObject* watched, QEvent* event) {
  if (watched != m_plot) return QWidget::eventFilter(watched, event);
  const auto* mouse = dynamic_cast<QMouseEvent*>(event);
  if (mouse == nullptr) return QWidget::eventFilter(watched, event);
  const QPoint position = mouse->position().toPoint();
  switch (mouse->type()) {
    case QEvent::MouseButtonPress:
      m_press_x = position.x();
      break;
    case QEvent::MouseButtonRelease:
      if (mouse->button() == Qt::LeftButton &&
          std::abs(position.x() - m_press_x) <= kClickTolerance) {
        on_click(position.x(), mouse->modifiers().testFlag(Qt::ShiftModifier));
      }
      break;
    case QEvent::MouseButtonDblClick:
      on_range(-0.5, 1e18);
      break;
    case QEvent::MouseMove:
      if (mouse->buttons() == Qt::NoButton) show_hover(position, mouse->globalPosition().toPoint());
      break;
    default:
      break;
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace driftscope::ui
