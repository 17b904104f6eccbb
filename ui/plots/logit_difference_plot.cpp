// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/logit_difference_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/compare/listed_step.h"
#include "analysis/compare/value_words.h"
#include "ui/models/fitting_words.h"
#include "ui/models/navigation.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

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
  const bool lists = comparison() && comparison()->listed();
  // Not known is no NaN.
  const bool marked = !lists && (!comparison() || numbers_comparable(*comparison()));
  m_largest.set_style(
      {.colour = t.series, .shape = QCPScatterStyle::ssDisc, .mark_non_finite = marked}, t);
  m_rms.set_style({.colour = t.series_three, .pen = Qt::DashLine, .mark_non_finite = marked}, t);
  m_centred.set_style(
      {.colour = t.series_two, .shape = QCPScatterStyle::ssTriangle, .mark_non_finite = !lists}, t);
  m_unhealthy.set_colour(t.non_finite);
  m_flips.set_colour(t.divergence);
  set_title(fitting_words(comparison().get(), lists ? QStringLiteral("Logit difference |B − A| of "
                                                                     "tokens that both list")
                                                    : QStringLiteral("Logit difference |B − A|")));
  const LegendEntry flip{LegendMark::diamond, t.divergence, QStringLiteral("flip")};
  if (lists) {
    set_legend({{LegendMark::line, t.series, QStringLiteral("largest")},
                {LegendMark::line, t.series_two, QStringLiteral("A's token")},
                flip});
    fill_from_lists(*comparison());
    return;
  }
  set_legend({{LegendMark::line, t.series, QStringLiteral("largest")},
              {LegendMark::dashed_line, t.series_three, QStringLiteral("RMS")},
              {LegendMark::line, t.series_two, QStringLiteral("centred RMS")},
              flip});
  if (comparison()) fill_from_rows(*comparison());
}

void LogitDifferencePlot::fill_from_rows(const Comparison& c) {
  m_largest.set_values(metric_values(c, "max_abs"));
  m_rms.set_values(metric_values(c, "rms"));
  m_centred.set_values(metric_values(c, "centred_rms"));
  m_scale = RailScale({&m_largest.values(), &m_rms.values(), &m_centred.values()});
  StepValues broken;
  for (const auto& step : c.steps) {
    if (unhealthy(*step)) m_scale.note_non_finite();
  }
  for (const auto& step : c.steps) {
    broken.push_back(unhealthy(*step) ? m_scale.non_finite_rail() : kNoValue);
  }
  m_unhealthy.set_heights(std::move(broken));
  fill_flips(m_largest.values());
}

// What is not known leaves a gap: it is no NaN.
void LogitDifferencePlot::fill_from_lists(const Comparison& c) {
  StepValues largest, chosen;
  for (const auto& step : c.steps) {
    largest.push_back(largest_listed_difference(c, step->metrics));
    chosen.push_back(listed_difference(c, step->metrics, step->token_a));
  }
  m_scale = RailScale({});
  m_scale.include(largest);
  m_scale.include(chosen);
  m_largest.set_values(std::move(largest));
  m_centred.set_values(std::move(chosen));
  m_rms.set_values({});
  m_unhealthy.set_heights({});
  fill_flips(m_largest.values());
}

void LogitDifferencePlot::fill_flips(const StepValues& heights) {
  const bool lists = comparison()->listed();
  StepValues flips;
  for (std::size_t i = 0; i < comparison()->steps.size(); ++i) {
    const bool shown = comparison()->steps[i]->flipped && !(lists && std::isnan(heights[i]));
    flips.push_back(shown ? m_scale.coordinate(heights[i]) : kNoValue);
  }
  m_flips.set_heights(std::move(flips));
}

void LogitDifferencePlot::refill(const StepView& view) {
  m_largest.refill(m_scale, view);
  m_rms.refill(m_scale, view);
  m_centred.refill(m_scale, view);
  m_unhealthy.refill(view);
  m_flips.refill(view);
  apply_rail_axis(*plot().yAxis, m_scale, std::max(2, view.height / 32));
  plot().yAxis->setLabel(fitting_words(comparison().get(), QStringLiteral("logit")));
}

QString LogitDifferencePlot::empty_reason() const {
  if (!comparison()) return QStringLiteral("Open a capture (Ctrl+O) or start a run (Ctrl+R)");
  if (comparison()->steps.empty()) {
    return QStringLiteral("No step of A and B has been compared yet");
  }
  if (!comparison()->listed()) return {};
  const StepValues& largest = m_largest.values();
  const bool known =
      std::any_of(largest.begin(), largest.end(), [](double v) { return !std::isnan(v); });
  if (known) return {};
  return numbers_comparable(*comparison())
             ? QStringLiteral("Not known: no token has a value on both sides at any step")
             : QStringLiteral("Not known: the sides' numbers are not of one kind");
}

QString LogitDifferencePlot::readout(std::int64_t step) const {
  const StepComparison* row = comparison() ? step_at(*comparison(), step) : nullptr;
  if (row == nullptr) return {};
  if (comparison()->listed()) return readout_of_lists(*row);
  QString text = QStringLiteral("largest %1, RMS %2, centred %3 ")
                     .arg(short_number(metric_value(*row, "max_abs"), 3),
                          short_number(metric_value(*row, "rms"), 3),
                          short_number(metric_value(*row, "centred_rms"), 3)) +
                 fitting_unit(comparison().get());
  if (unhealthy(*row)) text += QStringLiteral("; NaN or ∞ in the row");
  return text;
}

QString LogitDifferencePlot::readout_of_lists(const StepComparison& row) const {
  return QStringLiteral("largest %1, A's token %2")
      .arg(value_with_unit(*comparison(), largest_listed_difference(*comparison(), row.metrics), 3),
           value_with_unit(*comparison(),
                           listed_difference(*comparison(), row.metrics, row.token_a), 3));
}

QString LogitDifferencePlot::summary() const {
  if (!comparison()) return {};
  if (comparison()->listed()) {
    const StepValues& largest = m_largest.values();
    const auto unknown =
        std::count_if(largest.begin(), largest.end(), [](double v) { return std::isnan(v); });
    return QStringLiteral("%1 steps; at %2 no token has a value on both sides.")
        .arg(largest.size())
        .arg(unknown);
  }
  const auto& steps = comparison()->steps;
  const auto broken =
      std::count_if(steps.begin(), steps.end(), [](const auto& step) { return unhealthy(*step); });
  return QStringLiteral("%1 steps; %2 with NaN or infinity.").arg(steps.size()).arg(broken);
}

}  // namespace driftscope::ui
