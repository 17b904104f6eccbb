// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/main_window.h"

#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QLabel>
#include <QMimeData>
#include <QProgressBar>
#include <QScrollArea>
#include <QStatusBar>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/bridge/program_locator.h"
#include "ui/models/cursor_delta.h"
#include "ui/models/navigation.h"
#include "ui/views/fact_panels.h"
#include "ui/views/inspector.h"
#include "ui/views/plot_stack.h"
#include "ui/views/token_ribbon_view.h"
#include "ui/views/verdict_bar.h"
#include "ui/views/welcome_bar.h"

namespace driftscope::ui {

MainWindow::MainWindow(QSettings* settings, QWidget* parent)
    : QMainWindow(parent), m_settings(settings) {
  setWindowTitle(QStringLiteral("Driftscope"));
  setAcceptDrops(true);
  setDockNestingEnabled(true);
  setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
  make_centre();
  make_docks();
  make_menus();
  m_state = new QLabel(tr("Ready"), this);
  m_state->setAccessibleName(tr("State"));
  m_progress = new QProgressBar(this);
  m_progress->setAccessibleName(tr("Progress of the run"));
  m_progress->setFixedWidth(220);
  m_progress->hide();
  m_delta = new QLabel(this);
  m_delta->setAccessibleName(tr("Difference from the second cursor"));
  m_delta->hide();
  // A long line is cut off rather than that the window grows with it.
  for (QLabel* label : {m_state, m_delta}) {
    label->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  }
  statusBar()->addWidget(m_state, 1);
  statusBar()->addWidget(m_delta, 3);
  statusBar()->addPermanentWidget(m_progress);
  connect(&m_loader, &CaptureLoader::loaded, this, &MainWindow::show_loaded);
  connect(&m_loader, &CaptureLoader::failed, this, &MainWindow::show_error);
  connect_run();
  resize(1280, 800);
  restore_session();
  update_run_actions();
}

MainWindow::~MainWindow() = default;

void MainWindow::make_centre() {
  auto* centre = new QWidget(this);
  m_verdict = new VerdictBar(centre);
  m_welcome = new WelcomeBar(locate_sample(), centre);
  m_ribbons = new TokenRibbonView(centre);
  m_plots = new PlotStack(centre);
  auto* layout = new QVBoxLayout(centre);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(3);
  layout->addWidget(m_verdict);
  layout->addWidget(m_welcome);
  layout->addWidget(m_ribbons);
  layout->addWidget(m_plots, 1);
  make_pages(centre);
  const auto choose = [this](qint64 step) {
    m_user_selected = true;
    select_step(step);
  };
  connect(m_ribbons, &TokenRibbonView::step_selected, this, choose);
  connect(m_plots, &PlotStack::step_selected, this, choose);
  connect(m_plots, &PlotStack::anchor_selected, this, &MainWindow::set_anchor_step);
  connect(m_verdict, &VerdictBar::divergence_requested, this, &MainWindow::go_to_first_difference);
  connect(m_welcome, &WelcomeBar::open_requested, this, &MainWindow::choose_capture);
  connect(m_welcome, &WelcomeBar::responses_requested, this, [this] { choose_responses(false); });
  connect(m_welcome, &WelcomeBar::run_requested, this, &MainWindow::show_run_panel);
  connect(m_welcome, &WelcomeBar::sample_requested, this, &MainWindow::open_capture);
}

QDockWidget* MainWindow::add_dock(const QString& title, QWidget* panel, Qt::DockWidgetArea area) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName(QStringLiteral("dock_") + panel->objectName());
  dock->setAccessibleName(title);
  dock->setWidget(panel);
  addDockWidget(area, dock);
  return dock;
}

void MainWindow::make_docks() {
  m_inspector = new TopKInspector(this);
  m_metrics = new MetricPanel(this);
  m_findings = new FindingsPanel(this);
  m_differences = new DifferencesPanel(this);
  m_run_panel = new RunPanel(this);
  QDockWidget* top = add_dock(tr("Top-K"), m_inspector, Qt::RightDockWidgetArea);
  QDockWidget* metrics = add_dock(tr("Metrics"), m_metrics, Qt::RightDockWidgetArea);
  QDockWidget* findings = add_dock(tr("Findings"), m_findings, Qt::RightDockWidgetArea);
  QDockWidget* differences =
      add_dock(tr("Settings that differ"), m_differences, Qt::RightDockWidgetArea);
  m_run_dock = add_dock(tr("Run"), m_run_panel, Qt::LeftDockWidgetArea);
  tabifyDockWidget(top, metrics);
  tabifyDockWidget(findings, differences);
  top->raise();
  findings->raise();
  resizeDocks({top, findings}, {440, 440}, Qt::Horizontal);
  resizeDocks({top, findings}, {420, 260}, Qt::Vertical);
  resizeDocks({m_run_dock}, {340}, Qt::Horizontal);
}

void MainWindow::connect_run() {
  connect(m_run_panel, &RunPanel::run_requested, this, &MainWindow::start_run);
  connect(m_run_panel, &RunPanel::cancel_requested, this, &MainWindow::cancel_run);
  connect(&m_run, &RunProcess::snapshot, this,
          [this](Generation, const ComparisonPointer& comparison) {
            show_comparison(comparison, comparison->steps.empty());
          });
  connect(&m_run, &RunProcess::progress, this,
          [this](Generation, const QString& phase, qint64 done, qint64 total) {
            show_progress(phase, done, total);
          });
  connect(&m_run, &RunProcess::failed, this, [this](Generation, const QString& message) {
    m_run_panel->set_error(message);
    show_error(message);
  });
  connect(&m_run, &RunProcess::finished, this,
          [this](Generation, int code, const QString& capture) { end_run(code, capture); });
}

void MainWindow::open_capture(const QString& path) {
  show_capture_page();
  m_fresh_load = path != m_path || !m_comparison;
  m_path = path;
  m_state->setText(tr("Opening %1 …").arg(path));
  if (!m_comparison) m_verdict->set_note(tr("Opening %1 …").arg(QFileInfo(path).fileName()));
  m_loader.load(path);
}

// A capture from a file: the form beside it then describes its run, so that it can be repeated or
// changed from there.
void MainWindow::show_loaded(const ComparisonPointer& comparison) {
  show_comparison(comparison, m_fresh_load);
  if (m_fresh_load && !m_run.running()) {
    m_run_panel->show_request(request_of(*comparison, m_path));
  }
  setWindowTitle(tr("%1 — Driftscope").arg(QFileInfo(m_path).fileName()));
  m_state->setText(m_path);
  remember(m_path);
  emit capture_shown();
}

void MainWindow::show_comparison(const ComparisonPointer& comparison, bool fresh) {
  m_comparison = comparison;
  m_last_error.clear();
  m_welcome->hide();
  m_verdict->set_comparison(comparison, m_run.running());
  if (fresh) set_anchor_step(-1);
  m_ribbons->set_comparison(comparison);
  m_plots->set_comparison(comparison);
  m_findings->set_comparison(comparison);
  m_differences->set_comparison(comparison);
  if (fresh) m_user_selected = false;
  const std::int64_t count = step_count(*comparison);
  if (!m_user_selected) {
    const bool live = comparison->state == TraceState::partial && m_run.running();
    select_step(live ? first_difference(*comparison).value_or(count - 1)
                     : initial_step(*comparison));
  } else {
    select_step(std::min(m_selected, count - 1));
  }
}

void MainWindow::select_step(std::int64_t step) {
  const std::int64_t count = m_comparison ? step_count(*m_comparison) : 0;
  if (count == 0) return;
  m_selected = std::clamp<std::int64_t>(step, 0, count - 1);
  m_ribbons->set_selected_step(m_selected);
  m_plots->set_selected_step(m_selected);
  m_inspector->show_step(m_comparison, m_selected);
  m_metrics->show_step(m_comparison, m_selected);
  show_delta();
}

void MainWindow::set_anchor_step(std::int64_t step) {
  m_anchor = step;
  m_plots->set_anchor_step(step);
  show_delta();
}

void MainWindow::show_delta() {
  const QString text = m_comparison && m_anchor >= 0
                           ? cursor_delta_text(*m_comparison, m_anchor, m_selected)
                           : QString();
  m_delta->setText(text);
  m_delta->setToolTip(text);
  m_delta->setVisible(!text.isEmpty() && !responses_current());
}

QString MainWindow::state_text() const { return m_state->text(); }
QString MainWindow::delta_text() const { return m_delta->text(); }

void MainWindow::update_run_actions() {
  const bool running = m_run.running();
  m_start->setEnabled(!running);
  m_stop->setEnabled(running);
}

void MainWindow::start_run() {
  if (m_run.running()) return;
  const RunRequest request = m_run_panel->request();
  const auto arguments = run_arguments(request);
  if (!arguments) {
    m_run_panel->set_error(QString::fromStdString(arguments.error().message));
    return;
  }
  const QStringList remote = m_run_panel->remote();
  const bool here = !runs_elsewhere(remote);
  if (here && !request.replace && QFileInfo::exists(request.output)) {
    m_run_panel->set_error(
        tr("%1 exists: tick “Replace”, or give another name").arg(request.output));
    return;
  }
  const QString program = here ? locate_program() : QStringLiteral("driftscope");
  if (program.isEmpty()) {
    m_run_panel->set_error(program_missing_text());
    show_error(program_missing_text());
    return;
  }
  m_loader.forget();
  m_user_selected = false;
  m_path = request.output;
  setWindowTitle(tr("Running — Driftscope"));
  m_run_panel->set_running(true);
  m_last_error.clear();
  m_state->setText(tr("Starting …"));
  m_run.start(program, *arguments, remote);
  update_run_actions();
}

void MainWindow::cancel_run() {
  if (!m_run.running()) return;
  m_run_panel->set_progress(tr("Stopping: the capture is being closed …"));
  m_run.cancel();
}

void MainWindow::end_run(int exit_code, const QString& capture) {
  m_run_panel->set_running(false);
  m_progress->hide();
  if (!capture.isEmpty()) m_path = capture;
  const QString name = QFileInfo(m_path).fileName();
  if (exit_code == 130) {
    m_run_panel->set_progress(tr("Stopped. What was captured is in %1").arg(m_path));
    m_state->setText(tr("Stopped: %1").arg(m_path));
  } else if (m_last_error.isEmpty()) {
    m_run_panel->set_progress(tr("Done: %1").arg(m_path));
    m_state->setText(m_path);
  }
  if (m_comparison) m_verdict->set_comparison(m_comparison);
  m_run_panel->suggest_output();
  update_run_actions();
  setWindowTitle(tr("%1 — Driftscope").arg(name));
  if (!capture.isEmpty() && !runs_elsewhere(m_run_panel->remote())) remember(capture);
  emit run_ended(exit_code);
}

void MainWindow::show_progress(const QString& phase, qint64 done, qint64 total) {
  const QString text = tr("%1: %2 of %3").arg(phase).arg(done).arg(total);
  m_progress->setRange(0, total > 0 && total < 1'000'000'000 ? static_cast<int>(total) : 0);
  m_progress->setValue(static_cast<int>(std::min<qint64>(done, 1'000'000'000)));
  m_progress->show();
  m_state->setText(text);
  m_run_panel->set_progress(text);
}

void MainWindow::show_error(const QString& message) {
  m_last_error = message;
  m_state->setText(message);
  if (!m_comparison) m_verdict->set_note(message);
  emit error_shown(message);
}

void MainWindow::closeEvent(QCloseEvent* event) {
  save_session();
  QMainWindow::closeEvent(event);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  QStringList paths;
  for (const QUrl& url : event->mimeData()->urls()) {
    if (url.isLocalFile()) paths << url.toLocalFile();
  }
  if (paths.isEmpty()) return;
  event->acceptProposedAction();
  drop_files(paths);
}

}  // namespace driftscope::ui
