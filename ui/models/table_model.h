// SPDX-License-Identifier: GPL-3.0-or-later
// The one Qt model behind all read-only tables: a new table is a list of columns and a cell
// function that returns text. data() is final, so that copying, tooltips and emphasis work alike.
#pragma once

#include <QAbstractTableModel>
#include <QString>
#include <QStringList>

namespace driftscope::ui {

// Meaning, not colour: views choose the colour.
enum class Emphasis { none, side_a, side_b, alert, warning, good, muted };

struct TableCell {
  QString text;
  bool number = false;  // right-aligned
  Emphasis emphasis = Emphasis::none;
  QString tooltip = {};
};

class TableModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  static constexpr int kEmphasisRole = Qt::UserRole + 1;
  using QAbstractTableModel::QAbstractTableModel;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const final;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const final;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const final;
  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const final;
  [[nodiscard]] virtual TableCell cell(int row, int column) const = 0;
  // Why there is nothing and what to do, for an empty table.
  [[nodiscard]] virtual QString empty_text() const = 0;

 protected:
  [[nodiscard]] virtual int row_total() const = 0;
  [[nodiscard]] virtual QStringList headings() const = 0;
};

// Tab-separated: tabs and line ends inside cells become blanks.
[[nodiscard]] QString to_tsv(const QAbstractItemModel& model);
// A Markdown table: bars are escaped.
[[nodiscard]] QString to_markdown(const QAbstractItemModel& model);

}  // namespace driftscope::ui
