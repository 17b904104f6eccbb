// SPDX-License-Identifier: GPL-3.0-or-later
// More than two answers as tables: groups of identical ones, and every pair.
#pragma once

#include <array>

#include "ui/models/response_snapshot.h"
#include "ui/models/table_model.h"
#include "ui/models/verdict_summary.h"

namespace driftscope::ui {

class ClusterModel final : public TableModel {
  Q_OBJECT
 public:
  using TableModel::TableModel;
  enum Column { size, text, members, column_total };
  void show(ResponseFilesPointer files);
  [[nodiscard]] const ResponseFilesPointer& files() const { return m_files; }
  [[nodiscard]] TableCell cell(int row, int column) const override;
  [[nodiscard]] QString empty_text() const override;

 protected:
  [[nodiscard]] int row_total() const override;
  [[nodiscard]] QStringList headings() const override;

 private:
  ResponseFilesPointer m_files;
};

class PairListModel final : public TableModel {
  Q_OBJECT
 public:
  using TableModel::TableModel;
  enum Column { side_a, side_b, tier, parts_at, cause, largest, column_total };
  void show(PairSurveyPointer survey);
  // Pairs that were compared; those of other questions have no row.
  [[nodiscard]] const PairOutcome& outcome(int row) const {
    return m_survey->outcomes[m_rows[static_cast<std::size_t>(row)]];
  }
  // Row of this pair in either order, -1: none.
  [[nodiscard]] int row_of(AnswerChoice choice) const;
  [[nodiscard]] TableCell cell(int row, int column) const override;
  [[nodiscard]] QString empty_text() const override;

 protected:
  [[nodiscard]] int row_total() const override;
  [[nodiscard]] QStringList headings() const override;

 private:
  PairSurveyPointer m_survey;
  std::vector<std::size_t> m_rows;  // into the outcomes
};

// How many pairs came to what.
struct SurveyCounts {
  std::array<std::size_t, 6> tiers{};  // [Tier]
  std::size_t compared = 0;
  std::size_t other_questions = 0;
  Tier weakest = Tier::bitwise;  // of those compared
};
[[nodiscard]] SurveyCounts counts_of(const PairSurvey& survey);
// "4 token, 2 different".
[[nodiscard]] QString tiers_text(const SurveyCounts& counts);
// "6 pairs: 4 token, 2 different", how many are not compared, and how many answers are left out of
// the matrix.
[[nodiscard]] QString survey_text(const PairSurvey& survey);
// Of the badge above all answers: the weakest tier of the pairs, as the command judges them, and
// how many groups and pairs differ.
[[nodiscard]] VerdictSummary survey_verdict(const PairSurvey& survey);
// "12 answers of 2 files, 3 unique".
[[nodiscard]] QString files_text(const ResponseFiles& files);
// "vendor a.json b.json": the arguments that say the same in a terminal.
[[nodiscard]] QStringList vendor_arguments(const ResponseFiles& files, bool population);

}  // namespace driftscope::ui
