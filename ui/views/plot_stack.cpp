// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/plot_stack.h"

#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/navigation.h"
#include "ui/plots/response_plot.h"

namespace driftscope::ui {
namespace {

constexpr int kStripHeight = 70;

}  // namespace

PlotStack::PlotStack(QWidget* parent, std::span<const PlotInfo> catalogue)
    : QWidget(parent), m_catalogue(catalogue), m_splitter(new QSplitter(Qt::Vertical, this)) {
  setObjectName(QStringLiteral("plot_stack"));
  setAccessibleName(tr("Plots over steps"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(m_splitter);
  m_splitter->setChildrenCollapsible(false);
  m_splitter->setHandleWidth(3);
  for (const PlotInfo& info : m_catalogue) {
    StepPlot* plot = info.make(m_splitter);
    m_splitter->addWidget(plot);
    m_splitter->setStretchFactor(m_splitter->count() - 1, info.stretch);
    connect(plot, &StepPlot::step_selected, this, &PlotStack::step_selected);
    connect(plot, &StepPlot::anchor_selected, this, &PlotStack::anchor_selected);
    connect(plot, &StepPlot::range_changed, this, &PlotStack::set_range);
    m_plots.push_back(plot);
  }
  set_comparison(nullptr);
}

double PlotStack::full_upper() const {
  const std::int64_t count = m_comparison ? step_count(*m_comparison) : m_columns;
  const std::int64_t planned = m_comparison && m_comparison->state == TraceState::partial
                                   ? std::min<std::int64_t>(m_comparison->planned_steps, count + 16)
                                   : 0;
  return static_cast<double>(std::max({count, planned, std::int64_t{1}})) - 0.5;
}

void PlotStack::set_comparison(const ComparisonPointer& comparison) {
  m_comparison = comparison;
  for (std::size_t i = 0; i < m_plots.size(); ++i) {
    const PlotInfo& info = m_catalogue[i];
    const bool full = comparison ? can_show(info, *comparison) : info.needs == PlotNeeds::steps;
    // A plot that the capture cannot fill stays as a strip that says why.
    m_plots[i]->setVisible(full || comparison);
    m_plots[i]->setMaximumHeight(full ? QWIDGETSIZE_MAX : kStripHeight);
    m_plots[i]->setProperty("strip", !full);
  }
  place_axis_labels();
  keep_range();
  for (StepPlot* plot : m_plots) {
    plot->set_step_range(m_lower, m_upper);
    plot->set_comparison(comparison);
  }
}

void PlotStack::keep_range() {
  if (!m_shows_all && m_upper <= full_upper()) return;
  m_lower = -0.5;
  m_upper = full_upper();
  m_shows_all = true;
}

void PlotStack::set_pair(const ResponsePairPointer& pair) {
  m_columns = pair ? static_cast<std::int64_t>(pair->columns.columns.size()) : 0;
  m_shows_all = true;  // of other answers the old stretch means nothing
  keep_range();
  for (StepPlot* plot : m_plots) {
    plot->set_step_range(m_lower, m_upper);
    if (auto* shown = qobject_cast<ResponsePlot*>(plot)) shown->set_pair(pair);
  }
}

void PlotStack::place_axis_labels() {
  const StepPlot* lowest = nullptr;
  for (const StepPlot* plot : m_plots) {
    if (!plot->isHidden() && !plot->property("strip").toBool()) lowest = plot;
  }
  for (StepPlot* plot : m_plots) plot->set_step_labels(plot == lowest);
}

void PlotStack::set_selected_step(std::int64_t step) {
  m_selected = step;
  const auto position = static_cast<double>(step);
  if (!m_shows_all && (position < m_lower || position > m_upper)) {
    const double span = m_upper - m_lower;
    const double lower = std::clamp(position - span / 2, -0.5, std::max(-0.5, full_upper() - span));
    set_range(lower, lower + span);
  }
  for (StepPlot* plot : m_plots) plot->set_selected_step(step);
}

void PlotStack::set_range(double lower, double upper) {
  m_lower = lower;
  m_upper = upper;
  m_shows_all = lower <= -0.5 && upper >= full_upper();
  for (StepPlot* plot : m_plots) plot->set_step_range(lower, upper);
}

void PlotStack::set_anchor_step(std::int64_t step) {
  for (StepPlot* plot : m_plots) plot->set_anchor_step(step);
}

void PlotStack::show_all() { set_range(-0.5, full_upper()); }

void PlotStack::zoom(double factor) {
  const bool selected_in_view =
      static_cast<double>(m_selected) >= m_lower && static_cast<double>(m_selected) <= m_upper;
  const double centre =
      selected_in_view ? static_cast<double>(m_selected) : (m_lower + m_upper) / 2;
  const double limit = full_upper();
  const double span =
      std::clamp((m_upper - m_lower) * factor, std::min(3.0, limit + 0.5), limit + 0.5);
  const double share = (centre - m_lower) / (m_upper - m_lower);
  const double lower = std::clamp(centre - share * span, -0.5, limit - span);
  set_range(lower, lower + span);
}

}  // namespace driftscope::ui
