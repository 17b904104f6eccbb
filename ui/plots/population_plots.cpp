// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/population_plots.h"

#include <qcustomplot.h>

#include <QEvent>
#include <QHBoxLayout>
#include <algorithm>
#include <cmath>

#include "ui/models/token_text.h"
#include "ui/plots/linear_curve.h"
#include "ui/plots/plot_header.h"

namespace driftscope::ui {
namespace {

constexpr int kFigureHeight = 190;

QString percent(double share) {
  return std::isnan(share) ? QStringLiteral("–")
                           : short_number(100.0 * share, 3) + QLatin1Char('%');
}

QString share_words(const Share& share) {
  return QStringLiteral("%1 of %2 (%3, %4 to %5)")
      .arg(share.hits)
      .arg(share.count)
      .arg(percent(share.value), percent(share.low), percent(share.high));
}

}  // namespace

PopulationPlots::PopulationPlots(QWidget* parent) : QWidget(parent), m_theme(&theme_of(palette())) {
  setObjectName(QStringLiteral("population_plots"));
  setAccessibleName(tr("Where samples part, and how often answers agree"));
  m_parting = make_figure(tr("Share of samples that have parted"));
  m_rates = make_figure(tr("How often answers agree"));
  m_parting.header->set_short_title(tr("Parted"));
  m_rates.header->set_short_title(tr("Agreement"));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(2);
  row->addWidget(m_parting.plot, 1);
  row->addWidget(m_rates.plot, 1);
  setMinimumHeight(kFigureHeight);
  rebuild();
}

PopulationPlots::Figure PopulationPlots::make_figure(const QString& title) {
  auto* plot = new QCustomPlot(this);
  plot->setAccessibleName(title);
  plot->setMinimumSize(100, 80);
  auto* header = new PlotHeader(plot, title);
  plot->plotLayout()->insertRow(0);
  plot->plotLayout()->addElement(0, 0, header);
  plot->plotLayout()->setRowSpacing(0);
  header->setLayer(QStringLiteral("overlay"));
  return {plot, header};
}

void PopulationPlots::style(const Figure& figure) const {
  figure.plot->setBackground(m_theme->surface);
  figure.header->set_theme(m_theme);
  for (QCPAxis* axis : {figure.plot->xAxis, figure.plot->yAxis}) {
    axis->setBasePen(QPen(m_theme->muted, 1));
    axis->setTickPen(QPen(m_theme->muted, 1));
    axis->setSubTicks(false);
    axis->setTickLength(0, 3);
    axis->setTickLabelFont(text_font(8));
    axis->setTickLabelColor(m_theme->muted);
    axis->setLabelFont(text_font(8));
    axis->setLabelColor(m_theme->muted);
    axis->grid()->setPen(QPen(m_theme->grid, 1));
    axis->grid()->setZeroLinePen(QPen(m_theme->grid, 1));
  }
}

void PopulationPlots::show(const PopulationPointer& population, int row) {
  m_population = population;
  m_row = row;
  m_curves = population ? parted_curves(*population, row) : PartedCurves{};
  rebuild();
}

void PopulationPlots::set_theme(const Theme& theme) {
  m_theme = &theme;
  rebuild();
}

void PopulationPlots::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange || m_rates.plot == nullptr) return;
  if (const Theme& fitting = theme_of(palette()); &fitting != m_theme) set_theme(fitting);
}

void PopulationPlots::rebuild() {
  for (const Figure& figure : {m_parting, m_rates}) {
    figure.plot->clearPlottables();
    style(figure);
  }
  if (m_population) {
    draw_curves();
    draw_rates();
  }
  describe();
  m_parting.plot->replot(QCustomPlot::rpQueuedReplot);
  m_rates.plot->replot(QCustomPlot::rpQueuedReplot);
}

// A step at each symbol at which pairs part; a thin band for the interval.
void PopulationPlots::add_curve(const PartedCurve& curve, const QColor& colour, Qt::PenStyle pen,
                                double end) {
  if (curve.pairs == 0) return;
  QVector<double> keys{0.0}, share{0.0}, low{0.0}, high{0.0};
  for (std::size_t i = 0; i < curve.symbol.size(); ++i) {
    keys << curve.symbol[i];
    share << curve.share[i];
    low << curve.low[i];
    high << curve.high[i];
  }
  keys << end;
  share << share.back();
  low << low.back();
  high << high.back();
  const auto add = [&](const QVector<double>& values) {
    QCPGraph* graph = m_parting.plot->addGraph();
    graph->setLineStyle(QCPGraph::lsStepLeft);
    graph->setSelectable(QCP::stNone);
    graph->setData(keys, values, true);
    graph->setPen(Qt::NoPen);
    return graph;
  };
  QColor fill = colour;
  fill.setAlphaF(0.12F);
  QCPGraph* lower = add(low);
  QCPGraph* upper = add(high);
  upper->setBrush(fill);
  upper->setChannelFillGraph(lower);
  add(share)->setPen(QPen(colour, 1, pen));
}

void PopulationPlots::draw_curves() {
  const Theme& t = *m_theme;
  double last = 1.0;
  for (const PartedCurve* curve : {&m_curves.within_a, &m_curves.within_b, &m_curves.across}) {
    if (!curve->symbol.empty()) last = std::max(last, curve->symbol.back());
  }
  const double end = last * 1.08 + 1.0;
  add_curve(m_curves.within_a, t.side_a, Qt::SolidLine, end);
  add_curve(m_curves.within_b, t.side_b, Qt::DashLine, end);
  add_curve(m_curves.across, t.series_two, Qt::DashDotLine, end);
  ValueRange symbols{.low = 0.0, .high = end, .known = true};
  apply_linear_axis(*m_parting.plot->xAxis, symbols, 5);
  apply_linear_axis(*m_parting.plot->yAxis, {.low = -0.03, .high = 1.03, .known = true}, 4);
  m_parting.plot->xAxis->setLabel(m_population->sides.by_token_ids ? tr("token of the answer")
                                                                   : tr("character of the answer"));
  m_parting.plot->yAxis->setLabel(tr("share"));
  m_parting.header->set_legend(
      {{LegendMark::line, t.side_a, tr("within A")},
       {LegendMark::dashed_line, t.side_b, tr("within B")},
       {LegendMark::dashed_line, t.series_two, tr("A against B"), tr("A–B")}});
}

void PopulationPlots::add_rate(const Share& share, double height, const QColor& colour,
                               bool side_b) {
  if (share.count == 0) return;
  QCPGraph* interval = m_rates.plot->addGraph();
  interval->setData({share.low, share.high}, {height, height}, true);
  interval->setPen(QPen(colour, 1));
  interval->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssPlus, colour, 5));
  QCPGraph* point = m_rates.plot->addGraph();
  point->setLineStyle(QCPGraph::lsNone);
  point->setData({share.value}, {height});
  point->setScatterStyle(QCPScatterStyle(
      side_b ? QCPScatterStyle::ssSquare : QCPScatterStyle::ssDisc, colour, colour, 8));
}

void PopulationPlots::draw_rates() {
  const auto rows = rate_rows(m_population->comparison);
  auto ticker = QSharedPointer<QCPAxisTickerText>::create();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto height = -static_cast<double>(i);
    ticker->addTick(height, rows[i].name);
    add_rate(rows[i].a, height + 0.16, m_theme->side_a, false);
    add_rate(rows[i].b, height - 0.16, m_theme->side_b, true);
  }
  m_rates.plot->yAxis->setTicker(ticker);
  m_rates.plot->yAxis->setRange(-static_cast<double>(rows.size()) + 0.4, 0.6);
  apply_linear_axis(*m_rates.plot->xAxis, {.low = -0.03, .high = 1.03, .known = true}, 5);
  m_rates.plot->xAxis->setLabel(tr("share, 95% interval, all prompts"));
  m_rates.header->set_legend({{LegendMark::circle, m_theme->side_a, tr("A")},
                              {LegendMark::square, m_theme->side_b, tr("B")}});
}

void PopulationPlots::describe() {
  m_parting.plot->setAccessibleDescription(summary());
  m_rates.plot->setAccessibleDescription(summary());
}

QString PopulationPlots::summary() const {
  if (!m_population) return tr("No samples yet");
  const auto never = [](const PartedCurve& curve) {
    return tr("%1 of %2 pairs never part").arg(curve.never).arg(curve.pairs);
  };
  QStringList parts{tr("within A %1").arg(never(m_curves.within_a)),
                    tr("within B %1").arg(never(m_curves.within_b)),
                    tr("A against B %1").arg(never(m_curves.across))};
  for (const RateRow& row : rate_rows(m_population->comparison)) {
    parts << tr("%1: A %2, B %3").arg(row.name, share_words(row.a), share_words(row.b));
  }
  return parts.join(QStringLiteral("; "));
}

void PopulationPlots::draw_into(QCPPainter& painter, QSize size) {
  const int half = size.width() / 2;
  m_parting.plot->toPainter(&painter, half, size.height());
  painter.translate(half, 0);
  m_rates.plot->toPainter(&painter, size.width() - half, size.height());
}

}  // namespace driftscope::ui
