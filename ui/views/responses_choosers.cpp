// SPDX-License-Identifier: GPL-3.0-or-later
// Which answers are shown: the two boxes above the pages, the page in view and what the bar says of
// it, and one answer that has no partner yet.
#include <QComboBox>
#include <QLabel>
#include <QTabWidget>
#include <QToolButton>

#include "ui/models/response_population.h"
#include "ui/models/response_set_models.h"
#include "ui/models/response_verdict.h"
#include "ui/views/plot_stack.h"
#include "ui/views/response_fact_panel.h"
#include "ui/views/responses_view.h"
#include "ui/views/token_ribbon_view.h"
#include "ui/views/verdict_bar.h"

namespace driftscope::ui {

// One answer is open: what can be said of it alone.
void ResponsesView::show_single() {
  m_verdict->set_note(
      tr("%1 holds one answer. Drop a second file here, or add one with File > Add responses …, to "
         "compare.")
          .arg(m_files->names.value(0)));
  m_selected = -1;
  m_shown = view_alone(m_files, 0);
  m_plots->set_pair(m_shown);
  m_facts->set_pair(m_shown);
  const ResponsePairPointer shown = m_shown;
  TokenRibbon ribbon = response_ribbon(shown->columns);
  ribbon.absent_b = tr("no second file: drop one here, or File > Add responses …");
  m_ribbons->set_ribbon(
      std::move(ribbon), [shown](std::int64_t column) { return column_tool_tip(*shown, column); },
      tr("The answer holds neither text nor tokens."));
  m_key->setText(shown->columns.unit == ColumnUnit::words
                     ? tr("the answer lists no tokens: pieces of its text stand for them")
                     : QString());
  m_findings_model.show(shown->findings, tr("Nothing stands out in this answer."));
  select_column(0);
}

void ResponsesView::fill_choosers() {
  m_filling = true;
  for (QComboBox* box : {m_choose_a, m_choose_b}) {
    box->clear();
    for (std::size_t i = 0; m_files && i < m_files->answers.size(); ++i) {
      box->addItem(m_files->label(i));
      box->setItemData(box->count() - 1, m_files->label(i), Qt::ToolTipRole);
    }
    box->setEnabled(m_files && m_files->answers.size() > 1);
    box->setCurrentIndex(m_files && m_files->answers.size() == 1 && box == m_choose_a ? 0 : -1);
  }
  const bool single = m_files && m_files->answers.size() == 1;
  m_choose_b->setPlaceholderText(single ? tr("no second file: drop one here") : QString());
  show_names();
  m_swap->setEnabled(m_choose_a->isEnabled());
  m_copy_command->setEnabled(m_files != nullptr);
  m_filling = false;
}

// A name that does not fit its box is whole in the tool tip.
void ResponsesView::show_names() {
  for (QComboBox* box : {m_choose_a, m_choose_b}) box->setToolTip(box->currentText());
}

void ResponsesView::show_choice(AnswerChoice choice) {
  m_filling = true;
  m_choose_a->setCurrentIndex(static_cast<int>(choice.a));
  m_choose_b->setCurrentIndex(static_cast<int>(choice.b));
  show_names();
  m_filling = false;
}

// What many answers say together comes first.
void ResponsesView::show_opening_page() {
  show_page(Page::pair);
  show_page(Page::all);  // where there is such a page
  show_page(Page::population);
  show_verdict();
}

void ResponsesView::show_verdict() {
  m_pair_side->setVisible(page() != Page::population);
  if (!m_files || !first_choice(*m_files)) return;  // a note stands there
  switch (page()) {
    case Page::pair:
      return m_pair ? m_verdict->set_summary(response_verdict(*m_pair))
                    : m_verdict->set_note(tr("Comparing …"));
    case Page::all:
      return m_survey ? m_verdict->set_summary(survey_verdict(*m_survey))
                      : m_verdict->set_note(tr("Comparing every pair …"));
    case Page::population:
      return m_population ? m_verdict->set_summary(population_verdict(*m_population))
                          : m_verdict->set_note(tr("Testing whether both sides answer alike …"));
  }
}

void ResponsesView::show_page(Page page) {
  const int index = static_cast<int>(page);
  if (m_pages->isTabVisible(index)) m_pages->setCurrentIndex(index);
}

ResponsesView::Page ResponsesView::page() const {
  return static_cast<Page>(std::max(0, m_pages->currentIndex()));
}

}  // namespace driftscope::ui
