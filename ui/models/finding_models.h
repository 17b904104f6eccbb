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
  void show(const ComparisonPointer& comparison);
  // Any list of findings; `empty` says why there are none.
  void show(std::vector<Finding> findings, const QString& empty);
  [[nodiscard]] TableCell cell(int row, int column) const override;
  [[nodiscard]] QString empty_text() const override { return m_empty; }

 protected:
  [[nodiscard]] int row_total() const override { return static_cast<int>(m_findings.size()); }
  [[nodiscard]] QStringList headings() const override;

 private:
  std::vector<Finding> m_findings;
  QString m_empty = QStringLiteral("Open a capture or start a run to see findings.");
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
