// SPDX-License-Identifier: GPL-3.0-or-later
// One step in numbers: the best tokens of both sides, and every metric.
#pragma once

#include <QWidget>

#include "ui/models/metric_table_model.h"
#include "ui/models/top_k_model.h"

class QLabel;

namespace driftscope::ui {

class TableView;

class TopKInspector final : public QWidget {
  Q_OBJECT
 public:
  explicit TopKInspector(QWidget* parent);
  void show_step(const ComparisonPointer& comparison, std::int64_t step);
  [[nodiscard]] TopKModel& model() { return m_model; }
  [[nodiscard]] TableView& table() { return *m_table; }
  [[nodiscard]] QString heading() const;

 private:
  TopKModel m_model;
  QLabel* m_heading;
  TableView* m_table;
};

class MetricPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit MetricPanel(QWidget* parent);
  void show_step(const ComparisonPointer& comparison, std::int64_t step);
  [[nodiscard]] MetricTableModel& model() { return m_model; }
  [[nodiscard]] TableView& table() { return *m_table; }

 private:
  MetricTableModel m_model;
  TableView* m_table;
};

}  // namespace driftscope::ui
