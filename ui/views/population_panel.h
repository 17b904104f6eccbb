// SPDX-License-Identifier: GPL-3.0-or-later
// Two populations: the sentence, the figures, and each prompt's test as a table.
#pragma once

#include <QWidget>

#include "ui/models/response_population.h"

class QLabel;
class QPushButton;

namespace driftscope::ui {

class PopulationPlots;
class TableView;

class PopulationPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit PopulationPanel(QWidget* parent);
  void set_population(const PopulationPointer& population);
  // Figures of one prompt, -1: of all together.
  void show_prompt(int row);
  [[nodiscard]] QString sentence() const;
  [[nodiscard]] PopulationPlots& plots() { return *m_plots; }
  // The prompt that the left figure shows, -1: all together.
  [[nodiscard]] int shown_prompt() const { return m_row; }

 signals:
  void save_requested();

 private:
  PopulationModel m_model;
  PopulationPointer m_population;
  int m_row = -1;
  QLabel* m_sentence;
  QPushButton* m_all;
  QPushButton* m_save;
  QLabel* m_shown;
  PopulationPlots* m_plots;
  TableView* m_table;
};

}  // namespace driftscope::ui
