// SPDX-License-Identifier: GPL-3.0-or-later
// Findings in words, and the settings that differ.
#pragma once

#include <QWidget>

#include "ui/models/finding_models.h"

class QLabel;

namespace driftscope::ui {

class TableView;

class FindingsPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit FindingsPanel(QWidget* parent);
  void set_comparison(const ComparisonPointer& comparison);
  [[nodiscard]] FindingsModel& model() { return m_model; }
  [[nodiscard]] TableView& table() { return *m_table; }

 private:
  FindingsModel m_model;
  TableView* m_table;
};

class DifferencesPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit DifferencesPanel(QWidget* parent);
  void set_comparison(const ComparisonPointer& comparison);
  [[nodiscard]] DifferenceModel& model() { return m_model; }
  [[nodiscard]] TableView& table() { return *m_table; }

 private:
  DifferenceModel m_model;
  QLabel* m_names;
  TableView* m_table;
};

}  // namespace driftscope::ui
