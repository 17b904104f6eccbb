// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/response_fact_panel.h"

#include <QHeaderView>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/views/table_view.h"

namespace driftscope::ui {

ResponseFactPanel::ResponseFactPanel(QWidget* parent)
    : QWidget(parent),
      m_only(new QPushButton(tr("Diff only"), this)),
      m_table(new TableView(m_model, ResponseFactModel::side_b,
                            tr("Version evidence and fields of A and B"), this)) {
  setObjectName(QStringLiteral("response_facts"));
  setAccessibleName(tr("Version and fields"));
  m_only->setObjectName(QStringLiteral("diff_only"));
  m_only->setCheckable(true);
  m_only->setAccessibleName(tr("Show only fields that differ"));
  m_only->setToolTip(tr("Show only fields that differ"));
  m_table->horizontalHeader()->setSectionResizeMode(ResponseFactModel::side_a,
                                                    QHeaderView::Stretch);
  m_table->setTextElideMode(Qt::ElideMiddle);
  m_table->setWordWrap(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 2, 0, 0);
  layout->setSpacing(2);
  layout->addWidget(m_only, 0, Qt::AlignLeft);
  layout->addWidget(m_table, 1);
  connect(m_only, &QPushButton::toggled, this,
          [this](bool on) { m_model.set_differences_only(on); });
}

void ResponseFactPanel::set_pair(const ResponsePairPointer& pair) { m_model.show(pair); }

}  // namespace driftscope::ui
