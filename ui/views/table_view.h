// SPDX-License-Identifier: GPL-3.0-or-later
// The table widget of every panel: emphasis as colour and weight, copying as TSV or Markdown, and a
// note in place of an empty table.
#pragma once

#include <QStyledItemDelegate>
#include <QTableView>

#include "ui/models/table_model.h"

namespace driftscope::ui {

class TableView final : public QTableView {
  Q_OBJECT
 public:
  // `stretched`: the column that takes the rest of the width. `name` is its accessible name.
  TableView(TableModel& model, int stretched, const QString& name, QWidget* parent);
  void copy_tsv() const;
  void copy_markdown() const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  TableModel& m_model;
};

}  // namespace driftscope::ui
