// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/layer_heatmap_plot.h"

#include <qcustomplot.h>

#include <algorithm>

#include "ui/models/fitting_words.h"
#include "ui/models/token_text.h"
#include "ui/plots/heat_plottable.h"

namespace driftscope::ui {
namespace {

constexpr TapQuantity kQuantity = TapQuantity::relative_rms;

}  // namespace

LayerHeatmapPlot::LayerHeatmapPlot(QWidget* parent)
    : StepPlot(QStringLiteral("layer_heatmap"), QStringLiteral("Drift per layer"), parent),
      m_cells(new HeatPlottable(plot())) {
  plot().yAxis->setRangeReversed(true);
  plot().xAxis->grid()->setVisible(false);
  plot().yAxis->grid()->setVisible(false);
}

void LayerHeatmapPlot::rebuild() {
  m_heatmap = comparison() ? Heatmap(*comparison(), kQuantity) : Heatmap();
  m_cells->set_heatmap(&m_heatmap, &theme());
  const Theme& t = theme();
  if (m_heatmap.rows() == 0) {
    set_legend({});
    return;
  }
  set_legend({{LegendMark::ramp, t.text,
               QStringLiteral("%1 … %2 %3 (symlog)")
                   .arg(short_number(m_heatmap.smallest(), 2), short_number(m_heatmap.largest(), 2),
                        unit_of(kQuantity)),
               QStringLiteral("≤ %1").arg(short_number(m_heatmap.largest(), 2))},
              {LegendMark::square, mix(t.surface, t.grid, 0.7), QStringLiteral("= 0")},
              {LegendMark::square, t.non_finite, QStringLiteral("NaN, ∞")}});
}

void LayerHeatmapPlot::refill(const StepView& view) {
  auto ticker = QSharedPointer<QCPAxisTickerText>::create();
  const auto rows = m_heatmap.rows();
  const std::int64_t room = std::max<std::int64_t>(1, (view.height - 40) / 14);
  const std::int64_t stride = std::max<std::int64_t>(1, (rows + room - 1) / room);
  for (std::int64_t row = 0; row < rows; row += stride) {
    ticker->addTick(static_cast<double>(row), m_heatmap.label(row));
  }
  plot().yAxis->setTicker(ticker);
  plot().yAxis->setRange(-0.5, std::max(1.0, static_cast<double>(rows)) - 0.5);
}

QString LayerHeatmapPlot::empty_reason() const {
  if (!comparison()) return QStringLiteral("Drift per layer appears here, if layers are recorded");
  if (m_heatmap.rows() == 0 && is_import(*comparison())) {
    return QStringLiteral(
        "Not known: files of other programs hold no values from inside the model");
  }
  if (m_heatmap.rows() == 0) {
    return QStringLiteral("No taps in this capture: record with --taps layers");
  }
  if (m_heatmap.steps() == 0) return QStringLiteral("No step has been compared yet");
  return {};
}

QString LayerHeatmapPlot::readout(std::int64_t step) const {
  HeatCell hottest;
  std::int64_t place = -1;
  for (std::int64_t row = 0; row < m_heatmap.rows(); ++row) {
    const HeatCell cell = m_heatmap.cell(row, step);
    if (place >= 0 && hotter(hottest, cell).kind == hottest.kind && hottest.value >= cell.value)
      continue;
    hottest = cell;
    place = row;
  }
  if (place < 0 || hottest.kind == CellKind::empty) return {};
  if (hottest.kind == CellKind::zero) return QStringLiteral("no difference in any layer");
  const QString value = hottest.kind == CellKind::non_finite ? QStringLiteral("NaN or ∞")
                                                             : short_number(hottest.value, 3);
  return QStringLiteral("most in %1: %2").arg(m_heatmap.label(place), value);
}

QString LayerHeatmapPlot::summary() const {
  return QStringLiteral("%1 places, %2 steps, at most %3 %4.")
      .arg(m_heatmap.rows())
      .arg(m_heatmap.steps())
      .arg(short_number(m_heatmap.largest(), 3), unit_of(kQuantity));
}

}  // namespace driftscope::ui
