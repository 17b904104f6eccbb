// SPDX-License-Identifier: GPL-3.0-or-later
// Findings in words, and settings that differ between A and B.
#pragma once

#include "analysis/compare/comparison.h"
#include "ui/models/table_model.h"

namespace driftscope::ui {

class FindingsModel final : public TableModel {
  Q_OBJECT
 public:
  using TableModel::TableModel;
  void show(ComparisonPointer comparison);
  [[nodiscard]] TableCell cell(int row, int column) const override;
  [[nodiscard]] QString empty_text() const override;

 protected:
  [[nodiscard]] int row_total() const override;
  [[nodiscard]] QStringList headings() const override;

 private:
  ComparisonPointer m_comparison;
};

// Only what differs. Knobs come first and are named by their titles.
class DifferenceModel final : public TableModel {
  Q_OBJECT
 public:
  using TableModel::TableModel;
  void show(ComparisonPointer comparison);
  [[nodiscard]] TableCell cell(int row, int column) const override;
  [[nodiscard]] QString empty_text() const override;

 protected:
  [[nodiscard]] int row_total() const override;
  [[nodiscard]] QStringList headings() const override;

 private:
  ComparisonPointer m_comparison;
  std::vector<FieldDifference> m_rows;
};

}  // namespace driftscope::ui
