// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/table_model.h"

namespace driftscope::ui {
namespace {

QString one_line(QString text) {
  return text.replace(QLatin1Char('\t'), QLatin1Char(' '))
      .replace(QLatin1Char('\n'), QLatin1Char(' '));
}

template <class Format>
QString table_text(const QAbstractItemModel& model, const Format& format) {
  QStringList heading;
  for (int column = 0; column < model.columnCount(); ++column) {
    heading << one_line(model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString());
  }
  QString text = format(heading, true);
  for (int row = 0; row < model.rowCount(); ++row) {
    QStringList cells;
    for (int column = 0; column < model.columnCount(); ++column) {
      cells << one_line(model.index(row, column).data(Qt::DisplayRole).toString());
    }
    text += format(cells, false);
  }
  return text;
}

}  // namespace

QVariant TableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const TableCell shown = cell(index.row(), index.column());
  switch (role) {
    case Qt::DisplayRole:
    case Qt::AccessibleTextRole:
      return shown.text;
    case Qt::ToolTipRole:
      return shown.tooltip.isEmpty() ? QVariant() : QVariant(shown.tooltip);
    case Qt::TextAlignmentRole:
      return QVariant::fromValue(Qt::AlignVCenter |
                                 (shown.number ? Qt::AlignRight : Qt::AlignLeft));
    case kEmphasisRole:
      return static_cast<int>(shown.emphasis);
    default:
      return {};
  }
}

QVariant TableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  const QStringList names = headings();
  if (section < 0 || section >= names.size()) return {};
  if (role == Qt::DisplayRole) return names[section];
  if (role == Qt::TextAlignmentRole) {
    const bool number = row_total() > 0 && cell(0, section).number;
    return QVariant::fromValue(Qt::AlignVCenter | (number ? Qt::AlignRight : Qt::AlignLeft));
  }
  return {};
}

int TableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(headings().size());
}

int TableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : row_total();
}

QString to_tsv(const QAbstractItemModel& model) {
  return table_text(model, [](const QStringList& cells, bool) {
    return cells.join(QLatin1Char('\t')) + QLatin1Char('\n');
  });
}

QString to_markdown(const QAbstractItemModel& model) {
  return table_text(model, [](QStringList cells, bool heading) {
    for (QString& cell : cells) cell.replace(QLatin1Char('|'), QStringLiteral("\\|"));
    QString line =
        QStringLiteral("| ") + cells.join(QStringLiteral(" | ")) + QStringLiteral(" |\n");
    if (heading)
      line +=
          QStringLiteral("|") + QStringLiteral(" --- |").repeated(cells.size()) + QLatin1Char('\n');
    return line;
  });
}

}  // namespace driftscope::ui
