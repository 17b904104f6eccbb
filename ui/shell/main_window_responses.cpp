// SPDX-License-Identifier: GPL-3.0-or-later
// Saved answers in the main window: opening files of either kind, and the page that shows answers.
#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QTabWidget>
#include <algorithm>

#include "ui/models/response_set_models.h"
#include "ui/models/run_request.h"
#include "ui/shell/main_window.h"
#include "ui/views/responses_view.h"

namespace driftscope::ui {

void MainWindow::make_pages(QWidget* capture_page) {
  m_pages = new QTabWidget(this);
  m_pages->setObjectName(QStringLiteral("pages"));
  m_pages->setDocumentMode(true);
  m_pages->setTabBarAutoHide(true);  // the second tab comes with the first answers
  m_responses = new ResponsesView(m_pages);
  m_responses->hide();
  m_pages->addTab(capture_page, tr("Capture"));
  setCentralWidget(m_pages);
  connect(m_pages, &QTabWidget::currentChanged, this, [this] { fit_docks_to_page(); });
  connect(m_responses, &ResponsesView::pair_requested, this,
          [this](AnswerChoice choice) { m_response_loader.compare(m_responses->files(), choice); });
  connect(m_responses, &ResponsesView::copy_command_requested, this,
          &MainWindow::copy_response_command);
  connect(m_responses, &ResponsesView::save_populations_requested, this,
          &MainWindow::export_populations);
  connect(&m_response_loader, &ResponseLoader::opened, this, &MainWindow::show_response_files);
  connect(&m_response_loader, &ResponseLoader::failed, this, &MainWindow::show_response_error);
  connect(&m_response_loader, &ResponseLoader::compared, this,
          [this](const ResponsePairPointer& pair) {
            m_responses->set_pair(pair);
            emit responses_shown();
          });
  connect(&m_response_loader, &ResponseLoader::surveyed, this,
          [this](const PairSurveyPointer& survey) {
            m_responses->set_survey(survey);
            emit survey_shown();
          });
  connect(&m_response_loader, &ResponseLoader::populated, this,
          [this](const PopulationPointer& population) {
            m_responses->set_population(population);
            emit population_shown();
          });
}

bool MainWindow::responses_current() const { return m_pages->currentWidget() == m_responses; }

void MainWindow::show_responses_page() {
  if (m_pages->indexOf(m_responses) < 0) m_pages->addTab(m_responses, tr("Responses"));
  m_pages->setCurrentWidget(m_responses);
}

// Docks belong to captures: they step aside for answers and come back as they were.
void MainWindow::fit_docks_to_page() {
  if (responses_current()) {
    m_docks_aside.clear();
    for (QDockWidget* dock : findChildren<QDockWidget*>()) {
      if (dock->isHidden() || dock->isFloating()) continue;
      m_docks_aside << dock;
      dock->hide();
    }
  } else {
    for (QDockWidget* dock : std::as_const(m_docks_aside)) dock->show();
    m_docks_aside.clear();
  }
  m_delta->setVisible(!responses_current() && !m_delta->text().isEmpty());
}

void MainWindow::open_files(const QStringList& paths) {
  if (paths.isEmpty()) return;
  const auto capture = std::find_if(paths.begin(), paths.end(), is_capture_file);
  if (capture == paths.end()) return open_responses(paths);
  const bool only_captures = std::all_of(paths.begin(), paths.end(), is_capture_file);
  if (only_captures) return open_capture(paths.front());
  const QString message =
      tr("%1 is a capture: open it alone, not together with responses").arg(*capture);
  show_error(message);
  if (responses_current()) m_responses->set_message(message, true);
}

void MainWindow::open_responses(const QStringList& paths) {
  if (paths.isEmpty()) return;
  show_responses_page();
  m_response_paths = paths;
  m_last_error.clear();
  m_state->setText(tr("Reading %1 …").arg(paths.join(QStringLiteral(", "))));
  m_response_loader.load(paths);
}

void MainWindow::drop_files(const QStringList& paths) {
  // One answer alone waits for its partner.
  const ResponseFilesPointer& open = m_responses->files();
  const bool waiting =
      responses_current() && open && open->answered == 1 && open->paths.size() == 1;
  const bool captures = std::any_of(paths.begin(), paths.end(), is_capture_file);
  open_files(waiting && !captures ? open->paths + paths : paths);
}

void MainWindow::choose_responses(bool add) {
  const QStringList paths = QFileDialog::getOpenFileNames(
      this, tr("Open responses"), QFileInfo(m_response_paths.value(0)).path(),
      tr("Responses (*.json *.jsonl *.ndjson *.sse *.txt *.har *.http);;All files (*)"));
  if (paths.isEmpty()) return;
  const ResponseFilesPointer& open = m_responses->files();
  open_responses(add && open ? open->paths + paths : paths);
}

void MainWindow::show_response_files(const ResponseFilesPointer& files) {
  m_responses->set_files(files);
  m_state->setText(files->paths.join(QStringLiteral(", ")));
  setWindowTitle(tr("%1 — Driftscope").arg(files->names.value(0)));
  if (files->answers.size() < 2) emit responses_shown();
}

// What was open stays; the page says in one line what could not be read.
void MainWindow::show_response_error(const QString& message) {
  if (const ResponseFilesPointer& open = m_responses->files()) m_response_paths = open->paths;
  show_error(message);
  m_responses->set_message(message, true);
}

void MainWindow::copy_response_command() {
  const ResponseFilesPointer& files = m_responses->files();
  if (!files) return;
  const bool population =
      m_responses->population() != nullptr &&
      m_responses->pages().currentIndex() == static_cast<int>(ResponsesView::Page::population);
  const QString command = shell_command(QStringList{QStringLiteral("driftscope")} +
                                        vendor_arguments(*files, population));
  QApplication::clipboard()->setText(command);
  m_state->setText(tr("Copied: %1").arg(command));
}

}  // namespace driftscope::ui
