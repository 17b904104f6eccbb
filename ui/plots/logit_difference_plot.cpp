// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/logit_difference_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ui/models/navigation.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

bool unhealthy(const StepComparison& step) { return step.metrics.health != RowHealth{}; }

}  // namespace

LogitDifferencePlot::LogitDifferencePlot(QWidget* parent)
    : StepPlot(QStringLiteral("logit_difference"), QStringLiteral("Logit difference |B − A|"),
               parent),
      m_largest(plot()),
      m_rms(plot()),
      m_centred(plot()),
      m_unhealthy(plot(), QCPScatterStyle::ssCross, 7),
      m_flips(plot(), QCPScatterStyle::ssDiamond, 9),
      m_scale({}) {
  set_short_title(QStringLiteral("|B − A|"));
}

void LogitDifferencePlot::rebuild() {
  const Theme& t = theme();
  m_largest.set_style({.colour = t.series, .shape = QCPScatterStyle::ssDisc}, t);
  m_rms.set_style({.colour = t.series_three, .pen = Qt::DashLine}, t);
  m_centred.set_style({.colour = t.series_two, .shape = QCPScatterStyle::ssTriangle}, t);
  m_unhealthy.set_colour(t.non_finite);
  m_flips.set_colour(t.divergence);
  set_legend({{LegendMark::line, t.series, QStringLiteral("largest")},
              {LegendMark::dashed_line, t.series_three, QStringLiteral("RMS")},
              {LegendMark::line, t.series_two, QStringLiteral("centred RMS")},
              {LegendMark::diamond, t.divergence, QStringLiteral("flip")}});
  if (!comparison()) return;
  const Comparison& c = *comparison();
  m_largest.set_values(metric_values(c, "max_abs"));
  m_rms.set_values(metric_values(c, "rms"));
  m_centred.set_values(metric_values(c, "centred_rms"));
  m_scale = RailScale({&m_largest.values(), &m_rms.values(), &m_centred.values()});
  const double undefined = std::numeric_limits<double>::quiet_NaN();
  StepValues broken, flips;
  for (const auto& step : c.steps) {
    if (unhealthy(*step)) m_scale.note_non_finite();
  }
  for (const auto& step : c.steps) {
    broken.push_back(unhealthy(*step) ? m_scale.non_finite_rail() : undefined);
    flips.push_back(step->flipped ? m_scale.coordinate(metric_value(*step, "max_abs")) : undefined);
  }
  m_unhealthy.set_heights(std::move(broken));
  m_flips.set_heights(std::move(flips));
}

void LogitDifferencePlot::refill(const StepView& view) {
  m_largest.refill(m_scale, view);
  m_rms.refill(m_scale, view);
  m_centred.refill(m_scale, view);
  m_unhealthy.refill(view);
  m_flips.refill(view);
  apply_rail_axis(*plot().yAxis, m_scale, std::max(2, view.height / 32));
  plot().yAxis->setLabel(QStringLiteral("logit"));
}

QString LogitDifferencePlot::empty_reason() const {
  if (!comparison()) return QStringLiteral("Open a capture (Ctrl+O) or start a run (Ctrl+R)");
  if (comparison()->steps.empty()) {
    return QStringLiteral("No step of A and B has been compared yet");
  }
  return {};
}

QString LogitDifferencePlot::readout(std::int64_t step) const {
  const StepComparison* row = comparison() ? step_at(*comparison(), step) : nullptr;
  if (row == nullptr) return {};
  QString text = QStringLiteral("largest %1, RMS %2, centred %3 logit")
                     .arg(short_number(metric_value(*row, "max_abs"), 3),
                          short_number(metric_value(*row, "rms"), 3),
                          short_number(metric_value(*row, "centred_rms"), 3));
  if (unhealthy(*row)) text += QStringLiteral("; NaN or ∞ in the row");
  return text;
}

QString LogitDifferencePlot::summary() const {
  if (!comparison()) return {};
  const auto& steps = comparison()->steps;
  const auto broken =
      std::count_if(steps.begin(), steps.end(), [](const auto& step) { return unhealthy(*step); });
  return QStringLiteral("%1 steps; %2 with NaN or infinity.").arg(steps.size()).arg(broken);
}

}  // namespace driftscope::ui
