// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/metric_table_model.h"

#include <algorithm>
#include <cmath>

#include "ui/models/navigation.h"
#include "ui/models/series.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

QString latin(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

TableCell value_cell(double value, Emphasis emphasis = Emphasis::none) {
  if (std::isnan(value)) {
    return {.text = QStringLiteral("–"),
            .number = true,
            .emphasis = Emphasis::muted,
            .tooltip = QStringLiteral("Undefined here")};
  }
  return {.text = short_number(value),
          .number = true,
          .emphasis = emphasis,
          .tooltip = number_text(value)};
}

}  // namespace

void MetricTableModel::show(ComparisonPointer comparison, std::int64_t step) {
  beginResetModel();
  m_comparison = std::move(comparison);
  m_step = step;
  endResetModel();
}

int MetricTableModel::row_total() const {
  const bool empty = !m_comparison || m_comparison->steps.empty();
  return empty ? 0 : static_cast<int>(metric_registry().size());
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

TableCell MetricTableModel::cell(int row, int column) const {
  const MetricSpec& spec = metric_registry()[static_cast<std::size_t>(row)];
  const RunStatistic* run = statistic(spec.id);
  const double undefined = std::nan("");
  switch (static_cast<Column>(column)) {
    case title:
      return {.text = latin(spec.title),
              .tooltip = latin(spec.id) + QStringLiteral(": ") + latin(spec.definition)};
    case at_step: {
      const StepComparison* shown = step_at(*m_comparison, m_step);
      return value_cell(shown == nullptr ? undefined : metric_value(*shown, spec.id));
    }
    case median:
      return value_cell(run == nullptr ? undefined : run->p50);
    case p99:
      return value_cell(run == nullptr ? undefined : run->p99);
    case maximum:
      return value_cell(run == nullptr ? undefined : run->maximum);
    case argmax_step:
      return {.text = run == nullptr ? QStringLiteral("–") : QString::number(run->argmax_step),
              .number = true,
              .emphasis = Emphasis::muted};
    case unit:
      return {.text = latin(spec.unit), .emphasis = Emphasis::muted};
    case column_total:
      break;
  }
  return {};
}

}  // namespace driftscope::ui
