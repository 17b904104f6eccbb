// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/metric_table_model.h"

#include <algorithm>
#include <cmath>

#include "analysis/compare/value_words.h"
#include "ui/models/fitting_words.h"
#include "ui/models/navigation.h"
#include "ui/models/series.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

QString latin(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

const char* const kWhyNotKnown =
    "Not known: it needs the whole vocabulary, and the files list a few tokens of each step";

TableCell value_cell(double value, bool lists) {
  if (std::isnan(value)) {
    return {.text = QStringLiteral("–"),
            .number = true,
            .emphasis = Emphasis::muted,
            .tooltip = lists ? QStringLiteral("Not known at this step from what is listed")
                             : QStringLiteral("Undefined here")};
  }
  return {.text = short_number(value),
          .number = true,
          .emphasis = Emphasis::none,
          .tooltip = number_text(value)};
}

}  // namespace

void MetricTableModel::show(ComparisonPointer comparison, std::int64_t step) {
  beginResetModel();
  m_comparison = std::move(comparison);
  m_step = step;
  m_rows.clear();
  m_unknown.clear();
  const bool empty = !m_comparison || m_comparison->steps.empty();
  for (std::size_t i = 0; !empty && i < metric_registry().size(); ++i) {
    const bool unknown = m_comparison->listed() && statistic(metric_registry()[i].id) == nullptr;
    (unknown ? m_unknown : m_rows).push_back(i);
  }
  endResetModel();
}

int MetricTableModel::row_total() const {
  return static_cast<int>(m_rows.size()) + (m_unknown.empty() ? 0 : 1);
}

QStringList MetricTableModel::headings() const {
  return {QStringLiteral("Metric"), QStringLiteral("Step %1").arg(m_step),
          QStringLiteral("Median"), QStringLiteral("p99"),
          QStringLiteral("Max"),    QStringLiteral("at step"),
          QStringLiteral("Unit")};
}

QString MetricTableModel::empty_text() const {
  return QStringLiteral("No step has been compared yet. Open a capture or start a run.");
}

const RunStatistic* MetricTableModel::statistic(std::string_view metric) const {
  const auto& all = m_comparison->statistics;
  const auto found = std::find_if(all.begin(), all.end(),
                                  [metric](const RunStatistic& s) { return s.metric == metric; });
  return found == all.end() || found->count == 0 ? nullptr : &*found;
}

// One row for all that lists cannot tell, with the reason.
TableCell MetricTableModel::rest_cell(int column) const {
  if (column != title) return {.text = QString(), .emphasis = Emphasis::muted};
  QStringList names;
  for (const std::size_t i : m_unknown) names << latin(metric_registry()[i].id);
  return {.text = QStringLiteral("%1 others: not known, they need the whole vocabulary")
                      .arg(m_unknown.size()),
          .emphasis = Emphasis::muted,
          .tooltip = QLatin1String(kWhyNotKnown) + QStringLiteral(": ") +
                     names.join(QStringLiteral(", "))};
}

TableCell MetricTableModel::cell(int row, int column) const {
  if (static_cast<std::size_t>(row) >= m_rows.size()) return rest_cell(column);
  const MetricSpec& spec = metric_registry()[m_rows[static_cast<std::size_t>(row)]];
  const bool lists = m_comparison->listed();
  const RunStatistic* run = statistic(spec.id);
  const double undefined = std::nan("");
  switch (static_cast<Column>(column)) {
    case title:
      return {.text = fitting_words(m_comparison.get(), latin(spec.title)),
              .tooltip = latin(spec.id) + QStringLiteral(": ") +
                         fitting_words(m_comparison.get(), latin(spec.definition))};
    case at_step: {
      const StepComparison* shown = step_at(*m_comparison, m_step);
      return value_cell(shown == nullptr ? undefined : metric_value(*shown, spec.id), lists);
    }
    case median:
      return value_cell(run == nullptr ? undefined : run->p50, lists);
    case p99:
      return value_cell(run == nullptr ? undefined : run->p99, lists);
    case maximum:
      return value_cell(run == nullptr ? undefined : run->maximum, lists);
    case argmax_step:
      return {.text = run == nullptr ? QStringLiteral("–") : QString::number(run->argmax_step),
              .number = true,
              .emphasis = Emphasis::muted};
    case unit:
      return {.text = latin(metric_unit(*m_comparison, spec)), .emphasis = Emphasis::muted};
    case column_total:
      break;
  }
  return {};
}

}  // namespace driftscope::ui
