// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/margin_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ui/models/fitting_words.h"
#include "ui/models/navigation.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {

MarginPlot::MarginPlot(QWidget* parent)
    : StepPlot(QStringLiteral("margins"), QStringLiteral("Margin and headroom"), parent),
      m_pull(plot()),
      m_margin_a(plot()),
      m_margin_b(plot()),
      m_possible(plot(), QCPScatterStyle::ssTriangle, 6),
      m_flips(plot(), QCPScatterStyle::ssDiamond, 9),
      m_scale({}) {
  set_short_title(QStringLiteral("Margin"));
}

void MarginPlot::rebuild() {
  const Theme& t = theme();
  const bool lists = from_lists();
  set_title(lists ? QStringLiteral("Margin of the best token")
                  : QStringLiteral("Margin and headroom"));
  m_margin_a.set_style({.colour = t.side_a,
                        .shape = QCPScatterStyle::ssDisc,
                        .mark_non_finite = !lists,
                        .mark_size = 9.0},
                       t);
  // Dashed and with smaller marks, so that A shows through where both are the same.
  m_margin_b.set_style({.colour = t.side_b,
                        .shape = QCPScatterStyle::ssSquare,
                        .pen = Qt::DashLine,
                        .mark_non_finite = !lists,
                        .mark_size = 4.0},
                       t);
  m_pull.set_style({.colour = t.series_two, .pen = Qt::DashDotLine, .mark_non_finite = false}, t);
  m_possible.set_colour(t.warning);
  m_flips.set_colour(t.divergence);
  m_possible_count = 0;
  show_legend();
  if (!comparison()) return;
  MarginSeries series = margin_series(*comparison());
  // Of lists a margin that is not known is no NaN: it leaves a gap.
  m_scale = lists ? RailScale({}) : RailScale({&series.margin_a, &series.margin_b});
  m_scale.include(series.margin_a);
  m_scale.include(series.margin_b);
  m_scale.include(series.pull);
  const double undefined = std::numeric_limits<double>::quiet_NaN();
  StepValues possible, flips;
  for (std::size_t i = 0; i < comparison()->steps.size(); ++i) {
    const bool can_flip = series.headroom[i] < 1.0;
    m_possible_count += can_flip ? 1 : 0;
    possible.push_back(can_flip ? m_scale.lower() + 0.08 * (m_scale.upper() - m_scale.lower())
                                : undefined);
    const bool shown =
        comparison()->steps[i]->flipped && !(lists && std::isnan(series.margin_a[i]));
    flips.push_back(shown ? m_scale.coordinate(series.margin_a[i]) : undefined);
  }
  m_margin_a.set_values(std::move(series.margin_a));
  m_margin_b.set_values(std::move(series.margin_b));
  m_pull.set_values(std::move(series.pull));
  m_possible.set_heights(std::move(possible));
  m_flips.set_heights(std::move(flips));
  show_legend();
}

// Names the triangles only where there are some, and then before the wider entries.
void MarginPlot::show_legend() {
  const Theme& t = theme();
  std::vector<LegendEntry> entries{
      {LegendMark::circle, t.side_a, QStringLiteral("margin A"), QStringLiteral("A")},
      {LegendMark::square, t.side_b, QStringLiteral("margin B"), QStringLiteral("B")}};
  if (m_possible_count > 0) {
    entries.push_back({LegendMark::triangle, t.warning,
                       QStringLiteral("headroom < 1: a flip is possible"),
                       QStringLiteral("headroom < 1")});
  }
  entries.push_back({LegendMark::diamond, t.divergence, QStringLiteral("flip")});
  if (!from_lists()) {  // headroom needs whole rows
    entries.push_back({LegendMark::dashed_line, t.series_two,
                       QStringLiteral("rival's pull (margin A / headroom)"),
                       QStringLiteral("pull")});
  }
  set_legend(std::move(entries));
}

void MarginPlot::refill(const StepView& view) {
  m_pull.refill(m_scale, view);
  m_margin_a.refill(m_scale, view);
  m_margin_b.refill(m_scale, view);
  m_possible.refill(view);
  m_flips.refill(view);
  apply_rail_axis(*plot().yAxis, m_scale, std::max(2, view.height / 32));
  plot().yAxis->setLabel(fitting_words(comparison().get(), QStringLiteral("logit")));
}

QString MarginPlot::empty_reason() const {
  if (!comparison()) return QStringLiteral("Margins appear here with the first step");
  if (comparison()->steps.empty()) {
    return QStringLiteral("No step of A and B has been compared yet");
  }
  if (!from_lists()) return {};
  const auto known = [](const RailCurve& curve) {
    return std::any_of(curve.values().begin(), curve.values().end(),
                       [](double v) { return !std::isnan(v); });
  };
  if (known(m_margin_a) || known(m_margin_b)) return {};
  return QStringLiteral(
      "Margins are not known: no list is sure to hold the two best tokens. Ask the server for "
      "top_logprobs of 3 or more");
}

QString MarginPlot::readout(std::int64_t step) const {
  const StepComparison* row = comparison() ? step_at(*comparison(), step) : nullptr;
  if (row == nullptr) return {};
  const double margin_a = metric_value(*row, "margin_a");
  const double margin_b = metric_value(*row, "margin_b");
  if (from_lists()) {
    return QStringLiteral("margin A %1, B %2")
        .arg(value_with_unit(*comparison(), margin_a, 3),
             value_with_unit(*comparison(), margin_b, 3));
  }
  return QStringLiteral("margin A %1, B %2 %3, headroom %4")
      .arg(short_number(margin_a, 3), short_number(margin_b, 3), fitting_unit(comparison().get()),
           short_number(metric_value(*row, "headroom"), 3));
}

QString MarginPlot::summary() const {
  if (!comparison()) return {};
  if (from_lists()) {
    const auto count = [](const RailCurve& curve) {
      return std::count_if(curve.values().begin(), curve.values().end(),
                           [](double v) { return !std::isnan(v); });
    };
    return QStringLiteral("The margin of A is known at %1 of %3 steps, of B at %2.")
        .arg(count(m_margin_a))
        .arg(count(m_margin_b))
        .arg(comparison()->steps.size());
  }
  return QStringLiteral("%1 of %2 steps have a headroom below 1.")
      .arg(m_possible_count)
      .arg(comparison()->steps.size());
}

}  // namespace driftscope::ui
