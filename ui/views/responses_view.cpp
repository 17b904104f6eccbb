// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/responses_view.h"

#include <QAbstractItemView>
#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QSignalBlocker>
#include <QSplitter>
#include <QTabBar>
#include <QTabWidget>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "ui/models/response_series.h"
#include "ui/models/response_set_models.h"
#include "ui/models/response_verdict.h"
#include "ui/models/token_text.h"
#include "ui/theme/theme.h"
#include "ui/views/answer_set_panel.h"
#include "ui/views/plot_stack.h"
#include "ui/views/population_panel.h"
#include "ui/views/response_fact_panel.h"
#include "ui/views/table_view.h"
#include "ui/views/token_ribbon_view.h"
#include "ui/views/verdict_bar.h"

namespace driftscope::ui {
namespace {

constexpr int kSideWidth = 430;

QWidget* column_of(QWidget* parent, std::initializer_list<QWidget*> widgets) {
  auto* column = new QWidget(parent);
  auto* layout = new QVBoxLayout(column);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  for (QWidget* widget : widgets) layout->addWidget(widget);
  return column;
}

QToolButton* tool_button(QWidget* parent, const QString& text, const QString& tip) {
  auto* button = new QToolButton(parent);
  button->setText(text);
  button->setToolTip(tip);
  button->setAccessibleName(tip);
  return button;
}

QLabel* text_label(QWidget* parent, const QString& name) {
  auto* label = new QLabel(parent);
  label->setAccessibleName(name);
  label->setTextFormat(Qt::PlainText);
  return label;
}

QString first_open_text() {
  return QObject::tr(
      "Open two or more saved responses: drop the files here, or File > Open "
      "responses … (JSON, JSON Lines, SSE, curl -i, HAR).");
}

}  // namespace

ResponsesView::ResponsesView(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("responses"));
  setAccessibleName(tr("Responses"));
  m_message = text_label(this, tr("Message"));
  m_message->setObjectName(QStringLiteral("response_message"));
  m_message->setWordWrap(true);
  m_message->setMargin(6);
  m_message->hide();
  m_verdict = new VerdictBar(this);
  m_verdict->setObjectName(QStringLiteral("response_verdict"));
  m_verdict->set_note(first_open_text());
  m_pages = new QTabWidget(this);
  m_pages->setObjectName(QStringLiteral("response_pages"));
  m_pages->setDocumentMode(true);
  m_all = new AnswerSetPanel(this);
  m_populations = new PopulationPanel(this);
  m_pages->addTab(make_pair_page(), tr("Pair"));
  m_pages->addTab(m_all, tr("All answers"));
  m_pages->addTab(m_populations, tr("Populations"));
  auto* splitter = new QSplitter(Qt::Horizontal, this);
  splitter->addWidget(m_pages);
  m_pair_side = make_side();
  splitter->addWidget(m_pair_side);
  splitter->setStretchFactor(0, 1);
  splitter->setStretchFactor(1, 0);
  splitter->setSizes({850, kSideWidth});
  splitter->setChildrenCollapsible(false);
  splitter->setHandleWidth(4);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(3);
  layout->addWidget(make_choosers());
  layout->addWidget(m_message);
  layout->addWidget(m_verdict);
  layout->addWidget(splitter, 1);
  connect(m_all, &AnswerSetPanel::pair_chosen, this, &ResponsesView::choose);
  connect(m_all, &AnswerSetPanel::pair_opened, this, [this] { show_page(Page::pair); });
  connect(m_populations, &PopulationPanel::save_requested, this,
          &ResponsesView::save_populations_requested);
  connect(m_verdict, &VerdictBar::divergence_requested, this,
          &ResponsesView::go_to_first_divergence);
  connect(m_pages, &QTabWidget::currentChanged, this, [this] { show_verdict(); });
  name_tabs();
}

QComboBox* ResponsesView::make_chooser(const QString& name, const char* object) {
  auto* box = new QComboBox(this);
  box->setObjectName(QLatin1String(object));
  box->setAccessibleName(name);
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(16);
  box->setMaxVisibleItems(24);
  box->view()->setTextElideMode(Qt::ElideMiddle);  // what differs is often the name's end
  connect(box, &QComboBox::currentIndexChanged, this, [this] { take_choosers(); });
  return box;
}

QWidget* ResponsesView::make_choosers() {
  auto* bar = new QWidget(this);
  bar->setAutoFillBackground(true);
  bar->setBackgroundRole(QPalette::Base);
  m_choose_a = make_chooser(tr("Answer A"), "choose_a");
  m_choose_b = make_chooser(tr("Answer B"), "choose_b");
  m_swap = tool_button(bar, tr("Swap"), tr("Swap A and B"));
  m_copy_command = tool_button(bar, tr("Copy as command"),
                               tr("Copy the command that says the same in a terminal"));
  m_copy_command->setObjectName(QStringLiteral("copy_command"));
  m_summary = text_label(bar, tr("What is open"));
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(10, 4, 10, 4);
  for (auto* box : {m_choose_a, m_choose_b}) {
    auto* label = new QLabel(box == m_choose_a ? tr("<b>A</b>") : tr("<b>B</b>"), bar);
    label->setBuddy(box);
    row->addWidget(label);
    row->addWidget(box, 1);
  }
  row->addWidget(m_swap);
  row->addWidget(m_copy_command);
  row->addWidget(m_summary);
  connect(m_swap, &QToolButton::clicked, this, &ResponsesView::swap_sides);
  connect(m_copy_command, &QToolButton::clicked, this, &ResponsesView::copy_command_requested);
  fill_choosers();
  return bar;
}

QWidget* ResponsesView::make_pair_page() {
  m_ribbons = new TokenRibbonView(this);
  m_ribbons->setObjectName(QStringLiteral("response_ribbons"));
  m_ribbons->set_ribbon({}, {}, tr("The tokens of both answers appear here."));
  m_key = text_label(this, tr("Marks of the ribbons"));
  m_key->setContentsMargins(34, 1, 6, 2);
  m_key->setFont(text_font(8));
  m_key->setForegroundRole(QPalette::PlaceholderText);
  m_key->setWordWrap(true);
  QSizePolicy policy(QSizePolicy::Ignored, QSizePolicy::Minimum);
  policy.setHeightForWidth(true);
  m_key->setSizePolicy(policy);
  m_plots = new PlotStack(this, response_plot_catalogue());
  m_plots->setObjectName(QStringLiteral("response_plot_stack"));
  connect(m_ribbons, &TokenRibbonView::step_selected, this, &ResponsesView::select_column);
  connect(m_plots, &PlotStack::step_selected, this, &ResponsesView::select_column);
  QWidget* page = column_of(this, {m_ribbons, m_key, m_plots});
  qobject_cast<QVBoxLayout*>(page->layout())->setStretchFactor(m_plots, 1);
  return page;
}

QWidget* ResponsesView::make_side() {
  m_heading = text_label(this, tr("Selected token"));
  m_heading->setWordWrap(true);
  m_heading->setMargin(6);
  m_top_k = new TableView(m_top_k_model, ResponseTopKModel::token,
                          tr("Tokens that A and B list at the cursor"), this);
  m_top_k->setObjectName(QStringLiteral("response_top_k"));
  m_findings = new TableView(m_findings_model, 1, tr("Findings"), this);
  m_findings->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  m_findings_model.show({}, tr("Open two answers to see findings."));
  m_facts = new ResponseFactPanel(this);
  m_side = new QTabWidget(this);
  m_side->setObjectName(QStringLiteral("response_side"));
  m_side->setDocumentMode(true);
  m_side->addTab(m_facts, tr("Version and fields"));
  m_side->addTab(m_findings, tr("Findings"));
  auto* splitter = new QSplitter(Qt::Vertical, this);
  splitter->addWidget(column_of(this, {m_heading, m_top_k}));
  splitter->addWidget(m_side);
  splitter->setSizes({300, 320});
  splitter->setHandleWidth(4);
  return splitter;
}

void ResponsesView::set_message(const QString& message, bool error) {
  const Theme& theme = theme_of(palette());
  m_message->setText(message);
  m_message->setStyleSheet(
      QStringLiteral("color:%1; background:%2;")
          .arg(theme.text.name(),
               mix(theme.surface, error ? theme.divergence : theme.selection, 0.18).name()));
  m_message->setVisible(!message.isEmpty());
  m_message->setAccessibleDescription(message);
}

QString ResponsesView::message() const { return m_message->text(); }

void ResponsesView::set_files(const ResponseFilesPointer& files) {
  m_files = files;
  m_pair.reset();
  m_shown.reset();
  m_survey.reset();
  m_fresh = true;
  m_population.reset();
  set_message({}, false);
  QString summary = files_text(*files);
  if (!files->failures.isEmpty()) {
    summary += tr(", %1 without an answer").arg(files->failures.size());
  }
  m_summary->setText(summary);
  m_summary->setToolTip(files->paths.join(QLatin1Char('\n')) + QLatin1Char('\n') +
                        files->failures.mid(0, 20).join(QLatin1Char('\n')));
  m_all->set_files(files);
  m_populations->set_population(nullptr);
  fill_choosers();
  if (const auto choice = first_choice(*files)) {
    choose(*choice);
  } else {
    show_single();
  }
  name_tabs();
  show_opening_page();
}

void ResponsesView::take_choosers() {
  if (m_filling || m_choose_a->currentIndex() < 0 || m_choose_b->currentIndex() < 0) return;
  const AnswerChoice choice{static_cast<std::size_t>(m_choose_a->currentIndex()),
                            static_cast<std::size_t>(m_choose_b->currentIndex())};
  if (choice.a == choice.b) {
    set_message(tr("A and B are the same answer: choose another one for one side"), false);
    return;
  }
  choose(choice);
  show_page(Page::pair);
}

void ResponsesView::choose(AnswerChoice choice) {
  if (!m_files || choice.a == choice.b) return;
  set_message({}, false);
  show_choice(choice);
  emit pair_requested(choice);
}

void ResponsesView::swap_sides() {
  if (m_pair) choose({m_pair->choice.b, m_pair->choice.a});
}

void ResponsesView::set_pair(const ResponsePairPointer& pair) {
  if (pair->files != m_files) return;
  m_pair = m_shown = pair;
  show_choice(pair->choice);
  show_verdict();
  show_ribbon();
  m_plots->set_pair(pair);
  m_facts->set_pair(pair);
  m_findings_model.show(pair->findings, tr("Nothing stands out in these answers."));
  m_all->set_choice(pair->choice);
  name_tabs();
  // What an expert would want to know first comes to the front, once.
  if (!pair->findings.empty() && std::exchange(m_fresh, false)) {
    const bool grave = pair->findings.front().severity >= Severity::warning;
    m_side->setCurrentIndex(grave ? 1 : 0);
  }
  select_column(initial_column(*pair));
}

void ResponsesView::show_ribbon() {
  const ResponsePairPointer pair = m_pair;
  TokenRibbon ribbon = response_ribbon(pair->columns);
  if (m_files->is_error(pair->choice.b)) {
    ribbon.absent_b = tr("an error, not an answer: %1").arg(escaped_text(pair->response_b().error));
  } else if (m_files->is_error(pair->choice.a) && !ribbon.items.empty()) {
    ribbon.items.front().text_a = tr("error");
  }
  m_ribbons->set_ribbon(
      std::move(ribbon), [pair](std::int64_t column) { return column_tool_tip(*pair, column); },
      tr("Neither answer holds text or tokens."));
  QStringList marks;
  const auto has = [&](ColumnState state) {
    return std::any_of(pair->columns.columns.begin(), pair->columns.columns.end(),
                       [state](const ResponseColumn& c) { return c.state == state; });
  };
  if (has(ColumnState::differs)) {
    marks << tr("underlined: A and B differ") << tr("dotted box: nothing of this side");
  } else if (!pair->columns.columns.empty() && !pair->failed()) {
    marks << tr("A and B are the same");
  }
  if (has(ColumnState::joined)) marks << tr("green: the texts run together again");
  if (has(ColumnState::split)) marks << tr("dotted line: same text, cut into other tokens");
  if (pair->columns.unit == ColumnUnit::words) {
    marks.prepend(pair->failed()
                      ? tr("the answer lists no tokens: pieces of its text stand for them")
                  : neither_lists_tokens(*pair)
                      ? tr("neither side lists tokens: pieces of the texts stand for them")
                      : tr("a side lists no tokens: pieces of its text stand for them"));
  }
  if (pair->columns.unit == ColumnUnit::prompt) {
    marks.prepend(tr("no answers: these are the tokens of the prompt"));
  }
  m_key->setText(marks.join(QStringLiteral("   ·   ")));
  m_key->setToolTip(m_key->text());
}

void ResponsesView::set_survey(const PairSurveyPointer& survey) {
  if (survey->files != m_files) return;
  m_survey = survey;
  m_all->set_survey(survey);
  show_verdict();
}

void ResponsesView::set_population(const PopulationPointer& population) {
  if (population->files != m_files) return;
  m_population = population;
  m_populations->set_population(population);
  name_tabs();
  show_verdict();
}

void ResponsesView::name_tabs() {
  const std::size_t answers = m_files ? m_files->answered : 0;
  const bool many = m_files && is_set(*m_files);
  const bool samples = m_files && is_population(*m_files);
  m_pages->setTabText(1, answers > 0 ? tr("All %1 answers").arg(answers) : tr("All answers"));
  m_pages->setTabVisible(1, many);
  m_pages->setTabVisible(2, samples);
  m_pages->tabBar()->setVisible(many || samples);
  const auto findings = m_findings_model.rowCount();
  m_side->setTabText(1, findings > 0 ? tr("Findings (%1)").arg(findings) : tr("Findings"));
  const int differ = m_facts->difference_count();
  m_side->setTabText(
      0, differ > 0 ? tr("Version and fields (%1 differ)").arg(differ) : tr("Version and fields"));
}

int ResponsesView::population_prompt() const { return m_populations->shown_prompt(); }

std::int64_t ResponsesView::column_count() const {
  return m_shown ? static_cast<std::int64_t>(m_shown->columns.columns.size()) : 0;
}

void ResponsesView::select_column(std::int64_t column) {
  const std::int64_t count = column_count();
  m_selected = count == 0 ? -1 : std::clamp<std::int64_t>(column, 0, count - 1);
  m_ribbons->set_selected_step(m_selected);
  m_plots->set_selected_step(m_selected);
  m_top_k_model.show(m_shown, m_selected);
  const QString unit = m_shown ? unit_name(m_shown->columns.unit) : QString();
  m_heading->setText(m_selected < 0 ? QString()
                                    : QStringLiteral("%1 %2: %3")
                                          .arg(unit.left(1).toUpper() + unit.mid(1))
                                          .arg(m_selected)
                                          .arg(column_text(*m_shown, m_selected)));
  m_heading->setVisible(!m_heading->text().isEmpty());
}

void ResponsesView::go_to_next_difference() {
  if (!m_pair) return;
  if (const auto column = next_difference(m_pair->columns, m_selected)) select_column(*column);
}

void ResponsesView::go_to_previous_difference() {
  if (!m_pair) return;
  if (const auto column = previous_difference(m_pair->columns, m_selected)) select_column(*column);
}

void ResponsesView::go_to_first_divergence() {
  if (m_pair && m_pair->columns.divergence >= 0) select_column(m_pair->columns.divergence);
}

}  // namespace driftscope::ui
