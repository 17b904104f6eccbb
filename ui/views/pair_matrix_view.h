// SPDX-License-Identifier: GPL-3.0-or-later
// Every answer against every other: one cell a pair, its tier as colour and as a mark.
#pragma once

#include <QWidget>
#include <optional>
#include <vector>

#include "ui/models/response_snapshot.h"

class QPainter;

namespace driftscope::ui {

struct Theme;

[[nodiscard]] QColor tier_colour(const Theme& theme, Tier tier);

class PairMatrixView final : public QWidget {
  Q_OBJECT
 public:
  explicit PairMatrixView(QWidget* parent);
  void set_survey(const PairSurveyPointer& survey);
  void set_choice(AnswerChoice choice);
  // Middle of the cell in row i (side A), column j, for tests and keys.
  [[nodiscard]] QPoint cell_centre(std::size_t i, std::size_t j) const;
  // What the colours and marks mean, each in its place, for tests too.
  struct LegendEntry {
    std::optional<Tier> tier;  // empty: answers to other questions, not compared
    QString text;
    int x = 0, line = 0, width = 0;
  };
  [[nodiscard]] std::vector<LegendEntry> legend() const;
  [[nodiscard]] int legend_height() const;
  // What a tool tip says of a cell.
  [[nodiscard]] QString pair_text(AnswerChoice choice) const;
  [[nodiscard]] QSize sizeHint() const override;
  [[nodiscard]] QSize minimumSizeHint() const override { return {160, 120}; }

 signals:
  void pair_chosen(driftscope::ui::AnswerChoice choice);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Grid {
    int left = 0, top = 0, cell = 1;
  };
  [[nodiscard]] Grid grid() const;
  [[nodiscard]] std::optional<AnswerChoice> pair_at(QPoint position) const;
  void draw_cells(QPainter& painter, const Theme& theme, const Grid& grid) const;
  void draw_labels(QPainter& painter, const Theme& theme, const Grid& grid) const;
  void draw_legend(QPainter& painter, const Theme& theme) const;
  void describe();
  PairSurveyPointer m_survey;
  std::optional<AnswerChoice> m_choice;
};

}  // namespace driftscope::ui
