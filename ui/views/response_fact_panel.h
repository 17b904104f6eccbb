// SPDX-License-Identifier: GPL-3.0-or-later
// What both servers say of themselves, whole or only what differs.
#pragma once

#include <QWidget>

#include "ui/models/response_fact_model.h"

class QPushButton;

namespace driftscope::ui {

class TableView;

class ResponseFactPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit ResponseFactPanel(QWidget* parent);
  void set_pair(const ResponsePairPointer& pair);
  [[nodiscard]] int difference_count() const { return m_model.difference_count(); }
  [[nodiscard]] ResponseFactModel& model() { return m_model; }

 private:
  ResponseFactModel m_model;
  QPushButton* m_only;
  TableView* m_table;
};

}  // namespace driftscope::ui
