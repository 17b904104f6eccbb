// SPDX-License-Identifier: GPL-3.0-or-later
// The top-K inspector: the best tokens of both sides at one step.
#pragma once

#include <vector>

#include "analysis/compare/comparison.h"
#include "ui/models/table_model.h"

namespace driftscope::ui {

class TopKModel final : public TableModel {
  Q_OBJECT
 public:
  using TableModel::TableModel;
  enum Column { token, id, rank_a, rank_b, logit_a, logit_b, difference, column_total };
  void show(ComparisonPointer comparison, std::int64_t step);
  [[nodiscard]] TableCell cell(int row, int column) const override;
  [[nodiscard]] QString empty_text() const override;

 protected:
  [[nodiscard]] int row_total() const override { return static_cast<int>(m_rows.size()); }
  [[nodiscard]] QStringList headings() const override;

 private:
  struct Row {
    TokenId token{};
    int rank_a = -1;  // from 0; -1: not in this side's list
    int rank_b = -1;
    float logit_a = 0.0F;
    float logit_b = 0.0F;
  };
  [[nodiscard]] TableCell rank_cell(int own, int other) const;
  ComparisonPointer m_comparison;
  std::int64_t m_step = 0;
  std::vector<Row> m_rows;
};

}  // namespace driftscope::ui
