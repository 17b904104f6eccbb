// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/answer_set_panel.h"

#include <QHeaderView>
#include <QLabel>
#include <QSplitter>
#include <QVBoxLayout>

#include "ui/views/pair_matrix_view.h"
#include "ui/views/table_view.h"

namespace driftscope::ui {

AnswerSetPanel::AnswerSetPanel(QWidget* parent)
    : QWidget(parent),
      m_summary(new QLabel(this)),
      m_matrix(new PairMatrixView(this)),
      m_pair_table(new TableView(m_pairs, PairListModel::cause, tr("Pairs of answers"), this)),
      m_cluster_table(
          new TableView(m_clusters, ClusterModel::text, tr("Answers that are the same"), this)) {
  setObjectName(QStringLiteral("answer_set"));
  setAccessibleName(tr("All answers"));
  m_summary->setMargin(6);
  m_summary->setAccessibleName(tr("Summary of the pairs"));
  m_summary->setTextFormat(Qt::PlainText);
  m_pair_table->setObjectName(QStringLiteral("pair_table"));
  m_cluster_table->setObjectName(QStringLiteral("cluster_table"));
  for (TableView* table : {m_pair_table, m_cluster_table}) {
    table->setWordWrap(false);
    table->setTextElideMode(Qt::ElideMiddle);  // what differs is often the name's end
    table->setSelectionMode(QAbstractItemView::SingleSelection);
  }
  m_pair_table->horizontalHeader()->setSectionResizeMode(PairListModel::cause,
                                                         QHeaderView::ResizeToContents);
  for (const int column : {PairListModel::side_a, PairListModel::side_b}) {
    m_pair_table->horizontalHeader()->setSectionResizeMode(column, QHeaderView::Stretch);
  }
  QHeaderView* columns = m_cluster_table->horizontalHeader();
  columns->setSectionResizeMode(ClusterModel::members, QHeaderView::Interactive);
  columns->resizeSection(ClusterModel::members, 220);
  auto* top = new QSplitter(Qt::Horizontal, this);
  top->addWidget(m_matrix);
  top->addWidget(m_pair_table);
  top->setSizes({330, 510});
  top->setChildrenCollapsible(false);
  auto* all = new QSplitter(Qt::Vertical, this);
  all->addWidget(top);
  all->addWidget(m_cluster_table);
  all->setSizes({360, 180});
  all->setChildrenCollapsible(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(m_summary);
  layout->addWidget(all, 1);
  connect(m_matrix, &PairMatrixView::pair_chosen, this, &AnswerSetPanel::pair_chosen);
  connect(m_pair_table, &QTableView::clicked, this, [this](const QModelIndex& index) {
    emit pair_chosen(m_pairs.outcome(index.row()).choice);
  });
  connect(m_pair_table, &QTableView::activated, this, [this](const QModelIndex& index) {
    emit pair_chosen(m_pairs.outcome(index.row()).choice);
    emit pair_opened();
  });
  connect(m_cluster_table, &QTableView::clicked, this,
          [this](const QModelIndex& index) { choose_cluster(index.row()); });
}

void AnswerSetPanel::set_files(const ResponseFilesPointer& files) {
  m_files = files;
  m_clusters.show(files);
  m_pairs.show(nullptr);
  m_matrix->set_survey(nullptr);
  m_matrix->show();
  m_summary->setText(is_set(*files) ? tr("Comparing every pair …") : QString());
}

void AnswerSetPanel::set_survey(const PairSurveyPointer& survey) {
  m_pairs.show(survey);
  m_matrix->set_survey(survey);
  m_matrix->setVisible(!survey->partners_only);
  m_summary->setText(survey_text(*survey));
}

void AnswerSetPanel::set_choice(AnswerChoice choice) {
  m_matrix->set_choice(choice);
  const int row = m_pairs.row_of(choice);
  if (row >= 0) m_pair_table->selectRow(row);
}

// The most frequent answer against the one that was clicked; of the most frequent one itself, its
// first two members.
void AnswerSetPanel::choose_cluster(int row) {
  if (!m_files || row < 0) return;
  const auto& clusters = m_files->clusters;
  const auto& first = clusters.front().members;
  if (row > 0) {
    emit pair_chosen({first[0], clusters[static_cast<std::size_t>(row)].members[0]});
  } else if (first.size() > 1) {
    emit pair_chosen({first[0], first[1]});
  }
}

}  // namespace driftscope::ui
