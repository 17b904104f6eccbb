// SPDX-License-Identifier: GPL-3.0-or-later
// The two configuration editors: a table of all knobs, A beside B, differences highlighted.
#pragma once

#include <QWidget>

#include "ui/models/knob_model.h"

class QCheckBox;
class QLabel;
class QTableView;

namespace driftscope::ui {

class KnobEditor final : public QWidget {
  Q_OBJECT
 public:
  explicit KnobEditor(QWidget* parent);
  [[nodiscard]] KnobModel& model() { return m_model; }

 private:
  void show_count();
  KnobModel m_model;
  QCheckBox* m_differences_only;
  QLabel* m_note;
  QTableView* m_table;
};

}  // namespace driftscope::ui
