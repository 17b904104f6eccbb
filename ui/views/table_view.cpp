// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/table_view.h"

#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QHeaderView>
#include <QMenu>
#include <QPainter>

#include "ui/theme/theme.h"

namespace driftscope::ui {
namespace {

class EmphasisDelegate final : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    QStyledItemDelegate::initStyleOption(option, index);
    const Theme& theme = theme_of(option->palette);
    const auto emphasis = static_cast<Emphasis>(index.data(TableModel::kEmphasisRole).toInt());
    const auto colour = [&](const QColor& value) {
      option->palette.setColor(QPalette::Text, value);
    };
    switch (emphasis) {
      case Emphasis::none:
        break;
      case Emphasis::side_a:
        colour(theme.side_a);
        break;
      case Emphasis::side_b:
        colour(theme.side_b);
        break;
      case Emphasis::alert:
        colour(theme.divergence);
        option->font.setBold(true);
        break;
      case Emphasis::warning:
        colour(theme.warning);
        option->font.setBold(true);
        break;
      case Emphasis::good:
        colour(theme.good);
        break;
      case Emphasis::muted:
        colour(theme.muted);
        break;
    }
  }
};

}  // namespace

TableView::TableView(TableModel& model, int stretched, const QString& name, QWidget* parent)
    : QTableView(parent), m_model(model) {
  setModel(&model);
  setAccessibleName(name);
  setItemDelegate(new EmphasisDelegate(this));
  setSelectionBehavior(QAbstractItemView::SelectRows);
  setShowGrid(false);
  setAlternatingRowColors(true);
  setWordWrap(true);
  setFrameShape(QFrame::NoFrame);
  setTabKeyNavigation(false);
  setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  verticalHeader()->hide();
  verticalHeader()->setDefaultSectionSize(21);
  verticalHeader()->setMinimumSectionSize(18);
  horizontalHeader()->setHighlightSections(false);
  horizontalHeader()->setMinimumSectionSize(30);
  horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  horizontalHeader()->setSectionResizeMode(stretched, QHeaderView::Stretch);
}

void TableView::copy_tsv() const { QApplication::clipboard()->setText(to_tsv(m_model)); }
void TableView::copy_markdown() const { QApplication::clipboard()->setText(to_markdown(m_model)); }

void TableView::paintEvent(QPaintEvent* event) {
  QTableView::paintEvent(event);
  if (m_model.rowCount() > 0) return;
  QPainter painter(viewport());
  painter.setPen(theme_of(palette()).muted);
  painter.drawText(viewport()->rect().adjusted(16, 8, -16, -8), Qt::AlignCenter | Qt::TextWordWrap,
                   m_model.empty_text());
}

void TableView::contextMenuEvent(QContextMenuEvent* event) {
  QMenu menu(this);
  menu.addAction(tr("Copy table as TSV"), this, &TableView::copy_tsv);
  menu.addAction(tr("Copy table as Markdown"), this, &TableView::copy_markdown);
  menu.exec(event->globalPos());
}

void TableView::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Copy)) {
    copy_tsv();
    return;
  }
  QTableView::keyPressEvent(event);
}

}  // namespace driftscope::ui
