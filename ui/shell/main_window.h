// SPDX-License-Identifier: GPL-3.0-or-later
// The main window: docks, menus, keys, and the way of a comparison to every view.
#pragma once

#include <QMainWindow>
#include <QString>
#include <cstdint>
#include <functional>

#include "ui/bridge/capture_loader.h"
#include "ui/bridge/response_loader.h"
#include "ui/bridge/run_process.h"
#include "ui/theme/theme.h"
#include "ui/views/run_panel.h"

class QDockWidget;
class QLabel;
class QMenu;
class QProgressBar;
class QSettings;
class QTabWidget;

namespace driftscope::ui {

class DifferencesPanel;
class FindingsPanel;
class MetricPanel;
class PlotStack;
struct RenderRequest;
class ResponsesView;
class TableView;
class TokenRibbonView;
class TopKInspector;
class VerdictBar;
class WelcomeBar;

class MainWindow final : public QMainWindow {
  Q_OBJECT
 public:
  // `settings` keeps geometry, recent files and the last run; null: nothing is kept. It outlives
  // the window.
  explicit MainWindow(QSettings* settings, QWidget* parent = nullptr);
  ~MainWindow() override;

  void open_capture(const QString& path);
  // Answers of servers, compared on a page of their own. What is open stays until they are read.
  void open_responses(const QStringList& paths);
  // Either kind, by the first bytes of the files.
  void open_files(const QStringList& paths);
  // Shows it from now on. Zoom survives; the selected step too, unless `fresh`.
  void show_comparison(const ComparisonPointer& comparison, bool fresh);
  void select_step(std::int64_t step);
  // The second cursor: differences between it and the selected step are shown; -1: none.
  void set_anchor_step(std::int64_t step);
  void set_theme(ThemeKind kind);
  void start_run();
  void cancel_run();

  [[nodiscard]] std::int64_t selected_step() const { return m_selected; }
  [[nodiscard]] const ComparisonPointer& comparison() const { return m_comparison; }
  [[nodiscard]] QString last_error() const { return m_last_error; }
  [[nodiscard]] std::int64_t anchor_step() const { return m_anchor; }
  // What the line at the bottom says, and the line of the second cursor.
  [[nodiscard]] QString state_text() const;
  [[nodiscard]] QString delta_text() const;
  [[nodiscard]] bool running() const { return m_run.running(); }
  [[nodiscard]] RunPanel& run_panel() { return *m_run_panel; }
  [[nodiscard]] RunProcess& run() { return m_run; }
  [[nodiscard]] ResponsesView& responses() { return *m_responses; }
  // Whether the page of answers is the one that is seen.
  [[nodiscard]] bool responses_current() const;

 signals:
  void capture_shown();
  void error_shown(const QString& message);
  void run_ended(int exit_code);
  // A pair of answers, or a single one, is on view; every pair has been compared; so have the
  // populations.
  void responses_shown();
  void survey_shown();
  void population_shown();

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void make_centre();
  void make_pages(QWidget* capture_page);
  void make_docks();
  QDockWidget* add_dock(const QString& title, QWidget* panel, Qt::DockWidgetArea area);
  void make_menus();
  void make_file_menu();
  void make_edit_menu();
  void make_go_menu();
  void make_view_menu();
  void make_run_menu();
  void make_help_menu();
  void connect_run();

  void choose_capture();
  void choose_responses(bool add);
  void drop_files(const QStringList& paths);
  void show_responses_page();
  void show_capture_page();
  void fit_docks_to_page();
  void show_response_files(const ResponseFilesPointer& files);
  void show_response_error(const QString& message);
  void copy_response_command();
  [[nodiscard]] PlotStack& current_plots() const;
  [[nodiscard]] VerdictBar& current_verdict() const;
  void go_to_end(bool last);
  void reload();
  void export_plot(const QString& id);
  void export_response_plot(const QString& id);
  void export_populations();
  void export_shown();
  void save_picture(const QString& id,
                    const std::function<Result<void>(const RenderRequest&)>& render);
  void show_run_panel();
  void show_loaded(const ComparisonPointer& comparison);
  void show_delta();
  void update_run_actions();
  void show_recent(QMenu& menu);
  void remember(const QString& path);
  void go_to_next_flip();
  void go_to_previous_flip();
  void go_to_first_difference();
  void move_by(std::int64_t steps);
  void show_error(const QString& message);
  void show_progress(const QString& phase, qint64 done, qint64 total);
  void end_run(int exit_code, const QString& capture);
  void show_keys();
  void show_about();
  void restore_session();
  void save_session();
  void copy_table(bool markdown) const;

  QSettings* m_settings;
  CaptureLoader m_loader;
  ResponseLoader m_response_loader;
  RunProcess m_run;
  ComparisonPointer m_comparison;
  std::int64_t m_selected = -1;
  std::int64_t m_anchor = -1;
  bool m_fresh_load = false;
  bool m_user_selected = false;  // a live run follows its newest step until someone chooses one
  QString m_path;
  QString m_last_error;

  QStringList m_response_paths;
  QList<QDockWidget*> m_docks_aside;

  QTabWidget* m_pages = nullptr;
  ResponsesView* m_responses = nullptr;
  VerdictBar* m_verdict = nullptr;
  WelcomeBar* m_welcome = nullptr;
  TokenRibbonView* m_ribbons = nullptr;
  PlotStack* m_plots = nullptr;
  TopKInspector* m_inspector = nullptr;
  MetricPanel* m_metrics = nullptr;
  FindingsPanel* m_findings = nullptr;
  DifferencesPanel* m_differences = nullptr;
  RunPanel* m_run_panel = nullptr;
  QDockWidget* m_run_dock = nullptr;
  QLabel* m_state = nullptr;
  QLabel* m_delta = nullptr;
  QAction* m_start = nullptr;
  QAction* m_stop = nullptr;
  QProgressBar* m_progress = nullptr;
};

}  // namespace driftscope::ui
