// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/knob_editor.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>

#include "ui/theme/theme.h"

namespace driftscope::ui {
namespace {

// A list to choose from where the registry names the values, a line of text elsewhere.
class KnobDelegate final : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  QWidget* createEditor(QWidget* parent, const QStyleOptionViewItem& option,
                        const QModelIndex& index) const override {
    const QStringList choices = index.data(KnobModel::kChoicesRole).toStringList();
    if (choices.isEmpty()) return QStyledItemDelegate::createEditor(parent, option, index);
    auto* box = new QComboBox(parent);
    box->addItems(choices);
    connect(box, &QComboBox::activated, this, [this, box] {
      auto* delegate = const_cast<KnobDelegate*>(this);
      emit delegate->commitData(box);
      emit delegate->closeEditor(box);
    });
    return box;
  }
  void setEditorData(QWidget* editor, const QModelIndex& index) const override {
    if (auto* box = qobject_cast<QComboBox*>(editor)) {
      box->setCurrentText(index.data(Qt::EditRole).toString());
      return;
    }
    QStyledItemDelegate::setEditorData(editor, index);
  }
  void setModelData(QWidget* editor, QAbstractItemModel* model,
                    const QModelIndex& index) const override {
    if (const auto* box = qobject_cast<QComboBox*>(editor)) {
      model->setData(index, box->currentText());
      return;
    }
    QStyledItemDelegate::setModelData(editor, model, index);
  }

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    QStyledItemDelegate::initStyleOption(option, index);
    if (!index.data(KnobModel::kDiffersRole).toBool()) return;
    const Theme& theme = theme_of(option->palette);
    option->font.setBold(true);
    if (index.column() == KnobModel::knob) return;
    const QColor side = index.column() == KnobModel::side_a ? theme.side_a : theme.side_b;
    option->palette.setColor(QPalette::Text, side);
    option->backgroundBrush = mix(theme.surface, side, 0.14);
  }
};

}  // namespace

KnobEditor::KnobEditor(QWidget* parent)
    : QWidget(parent),
      m_differences_only(new QCheckBox(tr("Differences only"), this)),
      m_note(new QLabel(this)),
      m_table(new QTableView(this)) {
  setAccessibleName(tr("Configurations of A and B"));
  m_differences_only->setAccessibleName(tr("Show only knobs that differ"));
  m_note->setAccessibleName(tr("Differences between A and B"));
  m_note->setWordWrap(true);
  m_note->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  m_note->setFixedHeight(2 * m_note->fontMetrics().lineSpacing() + 2);  // a message moves nothing
  m_table->setModel(&m_model);
  m_table->setAccessibleName(tr("Knobs of A and B"));
  m_table->setItemDelegate(new KnobDelegate(m_table));
  m_table->setEditTriggers(QAbstractItemView::AllEditTriggers);
  m_table->setSelectionMode(QAbstractItemView::SingleSelection);
  m_table->setShowGrid(false);
  m_table->setAlternatingRowColors(true);
  m_table->setFrameShape(QFrame::NoFrame);
  m_table->verticalHeader()->hide();
  m_table->verticalHeader()->setDefaultSectionSize(21);
  m_table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  m_table->horizontalHeader()->setSectionResizeMode(KnobModel::knob, QHeaderView::ResizeToContents);
  m_table->setMinimumHeight(120);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(m_differences_only);
  layout->addWidget(m_table, 1);
  layout->addWidget(m_note);
  connect(m_differences_only, &QCheckBox::toggled, &m_model, &KnobModel::set_differences_only);
  connect(&m_model, &KnobModel::edited, this, &KnobEditor::show_count);
  connect(&m_model, &KnobModel::rejected, this, [this](const QString& reason) {
    m_note->setText(reason);
    m_note->setToolTip(reason);
  });
  show_count();
}

void KnobEditor::show_count() {
  const int count = m_model.difference_count();
  m_note->setText(count == 0   ? tr("A and B have the same configuration: no drift is expected.")
                  : count == 1 ? tr("1 knob differs.")
                               : tr("%1 knobs differ.").arg(count));
  m_note->setToolTip({});
}

}  // namespace driftscope::ui
