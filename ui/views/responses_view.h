// SPDX-License-Identifier: GPL-3.0-or-later
// Saved answers of servers: two of them side by side, all of them against each other, and, of many
// samples, the two populations.
#pragma once

#include <QWidget>

#include "ui/models/finding_models.h"
#include "ui/models/response_top_k_model.h"

class QComboBox;
class QLabel;
class QTabWidget;
class QToolButton;

namespace driftscope::ui {

class AnswerSetPanel;
class PlotStack;
class PopulationPanel;
class ResponseFactPanel;
class TableView;
class TokenRibbonView;
class VerdictBar;

class ResponsesView final : public QWidget {
  Q_OBJECT
 public:
  enum class Page { pair, all, population };
  explicit ResponsesView(QWidget* parent);
  // New files; asks for the first pair, where there is one.
  void set_files(const ResponseFilesPointer& files);
  void set_pair(const ResponsePairPointer& pair);
  void set_survey(const PairSurveyPointer& survey);
  void set_population(const PopulationPointer& population);
  // One line above everything; what is open stays. Empty: none.
  void set_message(const QString& message, bool error);
  // Asks for the pair; nothing where both are the same answer.
  void choose(AnswerChoice choice);
  void swap_sides();
  void show_page(Page page);
  [[nodiscard]] Page page() const;

  void select_column(std::int64_t column);
  void move_by(std::int64_t columns) { select_column(m_selected + columns); }
  void go_to_next_difference();
  void go_to_previous_difference();
  void go_to_first_divergence();
  [[nodiscard]] std::int64_t column_count() const;
  [[nodiscard]] std::int64_t selected_column() const { return m_selected; }
  [[nodiscard]] const ResponseFilesPointer& files() const { return m_files; }
  [[nodiscard]] const ResponsePairPointer& pair() const { return m_pair; }
  [[nodiscard]] const PopulationPointer& population() const { return m_population; }
  [[nodiscard]] int population_prompt() const;  // the one that is shown, -1: all together
  [[nodiscard]] QString message() const;
  [[nodiscard]] PlotStack& plots() { return *m_plots; }
  [[nodiscard]] VerdictBar& verdict() { return *m_verdict; }
  [[nodiscard]] TableView& top_k_table() { return *m_top_k; }
  [[nodiscard]] QTabWidget& pages() { return *m_pages; }

 signals:
  void pair_requested(driftscope::ui::AnswerChoice choice);
  void copy_command_requested();
  void save_populations_requested();

 private:
  QWidget* make_choosers();
  QComboBox* make_chooser(const QString& name, const char* object);
  QWidget* make_pair_page();
  QWidget* make_side();
  void fill_choosers();
  void show_choice(AnswerChoice choice);
  void take_choosers();
  void show_single();
  void show_names();
  void show_ribbon();
  // The bar speaks of the page in view.
  void show_verdict();
  void show_opening_page();
  void name_tabs();

  ResponseFilesPointer m_files;
  ResponsePairPointer m_pair;
  ResponsePairPointer m_shown;  // the pair, or one answer alone
  PairSurveyPointer m_survey;
  PopulationPointer m_population;
  std::int64_t m_selected = -1;
  bool m_filling = false;
  bool m_fresh = false;  // no pair of these files has been shown yet

  QLabel* m_summary = nullptr;
  QLabel* m_message = nullptr;
  QComboBox* m_choose_a = nullptr;
  QComboBox* m_choose_b = nullptr;
  QToolButton* m_swap = nullptr;
  QToolButton* m_copy_command = nullptr;
  VerdictBar* m_verdict = nullptr;
  TokenRibbonView* m_ribbons = nullptr;
  QLabel* m_key = nullptr;
  PlotStack* m_plots = nullptr;
  QTabWidget* m_pages = nullptr;
  QTabWidget* m_side = nullptr;
  QWidget* m_pair_side = nullptr;  // what is beside the pages: of the pair
  AnswerSetPanel* m_all = nullptr;
  PopulationPanel* m_populations = nullptr;
  ResponseFactPanel* m_facts = nullptr;
  QLabel* m_heading = nullptr;
  ResponseTopKModel m_top_k_model;
  TableView* m_top_k = nullptr;
  FindingsModel m_findings_model;
  TableView* m_findings = nullptr;
};

}  // namespace driftscope::ui
