// SPDX-License-Identifier: GPL-3.0-or-later
// Every registered metric: its value at the selected step and over the run. The table that stands
// beside the plots for people who do not see them.
#pragma once

#include <vector>

#include "analysis/compare/comparison.h"
#include "ui/models/table_model.h"

namespace driftscope::ui {

class MetricTableModel final : public TableModel {
  Q_OBJECT
 public:
  using TableModel::TableModel;
  enum Column { title, at_step, median, p99, maximum, argmax_step, unit, column_total };
  void show(ComparisonPointer comparison, std::int64_t step);
  [[nodiscard]] TableCell cell(int row, int column) const override;
  [[nodiscard]] QString empty_text() const override;

 protected:
  [[nodiscard]] int row_total() const override;
  [[nodiscard]] QStringList headings() const override;

 private:
  [[nodiscard]] const RunStatistic* statistic(std::string_view metric) const;
  [[nodiscard]] TableCell rest_cell(int column) const;
  ComparisonPointer m_comparison;
  std::int64_t m_step = 0;
  // Places in the registry. Of lists only the metrics that are known, then one row about the
  // others.
  std::vector<std::size_t> m_rows;
  std::vector<std::size_t> m_unknown;
};

}  // namespace driftscope::ui
