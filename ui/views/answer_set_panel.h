// SPDX-License-Identifier: GPL-3.0-or-later
// More than two answers: the matrix of pairs, the pairs as a table, and which answers are the same.
#pragma once

#include <QWidget>

#include "ui/models/response_set_models.h"

class QLabel;

namespace driftscope::ui {

class PairMatrixView;
class TableView;

class AnswerSetPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit AnswerSetPanel(QWidget* parent);
  // Its survey is still to come.
  void set_files(const ResponseFilesPointer& files);
  void set_survey(const PairSurveyPointer& survey);
  void set_choice(AnswerChoice choice);
  [[nodiscard]] PairMatrixView& matrix() { return *m_matrix; }

 signals:
  void pair_chosen(driftscope::ui::AnswerChoice choice);
  void pair_opened();  // chosen, and to be looked at

 private:
  void choose_cluster(int row);
  ClusterModel m_clusters;
  PairListModel m_pairs;
  ResponseFilesPointer m_files;
  QLabel* m_summary;
  PairMatrixView* m_matrix;
  TableView* m_pair_table;
  TableView* m_cluster_table;
};

}  // namespace driftscope::ui
