// SPDX-License-Identifier: GPL-3.0-or-later
// Menus, keys and what they do.
#include <QAction>
#include <QActionGroup>
#include <QApplication>
#include <QClipboard>
#include <QDockWidget>
#include <QFileDialog>
#include <QMenu>
#include <QMenuBar>
#include <QMessageBox>
#include <QTabWidget>

#include "ui/models/navigation.h"
#include "ui/plots/plot_catalogue.h"
#include "ui/plots/render.h"
#include "ui/shell/main_window.h"
#include "ui/views/fact_panels.h"
#include "ui/views/inspector.h"
#include "ui/views/plot_stack.h"
#include "ui/views/responses_view.h"
#include "ui/views/table_view.h"
#include "ui/views/verdict_bar.h"

namespace driftscope::ui {
namespace {

template <class Receiver, class Slot>
QAction* add(QMenu* menu, const QString& text, const QKeySequence& key, Receiver* receiver,
             Slot slot) {
  QAction* action = menu->addAction(text);
  action->setShortcut(key);
  QObject::connect(action, &QAction::triggered, receiver, slot);
  return action;
}

}  // namespace

void MainWindow::make_menus() {
  make_file_menu();
  make_edit_menu();
  make_go_menu();
  make_view_menu();
  make_run_menu();
  make_help_menu();
}

void MainWindow::make_file_menu() {
  QMenu* menu = menuBar()->addMenu(tr("&File"));
  add(menu, tr("&Open capture …"), QKeySequence::Open, this, &MainWindow::choose_capture);
  QAction* responses = add(menu, tr("Open re&sponses …"), QKeySequence(tr("Ctrl+Shift+O")), this,
                           [this] { choose_responses(false); });
  responses->setObjectName(QStringLiteral("open_responses"));
  add(menu, tr("A&dd responses …"), {}, this, [this] { choose_responses(true); });
  QMenu* recent = menu->addMenu(tr("Open &recent"));
  connect(recent, &QMenu::aboutToShow, this, [this, recent] { show_recent(*recent); });
  add(menu, tr("Re&load"), QKeySequence(Qt::Key_F5), this, &MainWindow::reload);
  menu->addSeparator();
  add(menu, tr("&Export all plots …"), QKeySequence(tr("Ctrl+E")), this, &MainWindow::export_shown);
  QMenu* one = menu->addMenu(tr("Export &one plot"));
  for (const PlotInfo& info : plot_catalogue()) {
    const auto text = [](std::string_view name) {
      return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
    };
    QAction* action = add(one, text(info.title) + QStringLiteral(" …"), {}, this,
                          [this, id = text(info.id)] { export_plot(id); });
    action->setObjectName(QStringLiteral("export_") + text(info.id));
  }
  for (const PlotInfo& info : response_plot_catalogue()) {
    const auto text = [](std::string_view name) {
      return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
    };
    QAction* action = add(one, tr("%1 of responses …").arg(text(info.title)), {}, this,
                          [this, id = text(info.id)] { export_response_plot(id); });
    action->setObjectName(QStringLiteral("export_") + text(info.id));
  }
  add(one, tr("Figures of populations …"), {}, this, &MainWindow::export_populations)
      ->setObjectName(QStringLiteral("export_populations"));
  menu->addSeparator();
  add(menu, tr("&Quit"), QKeySequence::Quit, this, [this] { close(); });
}

void MainWindow::make_edit_menu() {
  QMenu* menu = menuBar()->addMenu(tr("&Edit"));
  add(menu, tr("Copy &verdict as text"), QKeySequence(tr("Ctrl+Shift+C")), this,
      [this] { current_verdict().copy_text(); });
  add(menu, tr("Copy verdict as &Markdown"), {}, this,
      [this] { current_verdict().copy_markdown(); });
  add(menu, tr("Copy responses as &command"), {}, this, &MainWindow::copy_response_command);
  menu->addSeparator();
  add(menu, tr("Copy &table as TSV"), {}, this, [this] { copy_table(false); });
  add(menu, tr("Copy table as Mar&kdown"), {}, this, [this] { copy_table(true); });
}

void MainWindow::make_go_menu() {
  QMenu* menu = menuBar()->addMenu(tr("&Go"));
  add(menu, tr("&Next flip or difference"), QKeySequence(Qt::Key_N), this,
      &MainWindow::go_to_next_flip);
  add(menu, tr("&Previous flip or difference"), QKeySequence(Qt::Key_P), this,
      &MainWindow::go_to_previous_flip);
  add(menu, tr("First &divergence"), QKeySequence(Qt::Key_D), this,
      &MainWindow::go_to_first_difference);
  menu->addSeparator();
  add(menu, tr("Step &forward"), QKeySequence(Qt::Key_Right), this, [this] { move_by(1); });
  add(menu, tr("Step &back"), QKeySequence(Qt::Key_Left), this, [this] { move_by(-1); });
  add(menu, tr("Fi&rst step"), QKeySequence(Qt::Key_Home), this, [this] { go_to_end(false); });
  add(menu, tr("&Last step"), QKeySequence(Qt::Key_End), this, [this] { go_to_end(true); });
}

void MainWindow::make_view_menu() {
  QMenu* menu = menuBar()->addMenu(tr("&View"));
  add(menu, tr("Zoom &in"), QKeySequence(Qt::Key_Plus), this,
      [this] { current_plots().zoom(0.5); });
  add(menu, tr("Zoom &out"), QKeySequence(Qt::Key_Minus), this,
      [this] { current_plots().zoom(2.0); });
  add(menu, tr("Show &all steps"), QKeySequence(Qt::Key_0), this,
      [this] { current_plots().show_all(); });
  add(menu, tr("Set the &second cursor"), QKeySequence(Qt::Key_M), this,
      [this] { set_anchor_step(m_selected); });
  add(menu, tr("&Remove the second cursor"), QKeySequence(Qt::Key_Escape), this,
      [this] { set_anchor_step(-1); });
  menu->addSeparator();
  auto* themes = new QActionGroup(this);
  for (const auto& [kind, text] :
       {std::pair{ThemeKind::light, tr("&Light")}, {ThemeKind::dark, tr("&Dark")}}) {
    QAction* action = add(menu, text, {}, this, [this, kind = kind] { set_theme(kind); });
    action->setCheckable(true);
    action->setChecked(theme_kind_of(palette()) == kind);
    action->setObjectName(kind == ThemeKind::dark ? QStringLiteral("theme_dark")
                                                  : QStringLiteral("theme_light"));
    themes->addAction(action);
  }
  menu->addSeparator();
  add(menu, tr("&Capture"), QKeySequence(tr("Ctrl+1")), this, &MainWindow::show_capture_page);
  add(menu, tr("&Responses"), QKeySequence(tr("Ctrl+2")), this, &MainWindow::show_responses_page);
  menu->addSeparator();
  for (QDockWidget* dock : findChildren<QDockWidget*>()) menu->addAction(dock->toggleViewAction());
}

void MainWindow::make_run_menu() {
  QMenu* menu = menuBar()->addMenu(tr("&Run"));
  add(menu, tr("&Set up a run"), QKeySequence(tr("Ctrl+R")), this, &MainWindow::show_run_panel);
  m_start = add(menu, tr("S&tart"), QKeySequence(tr("Ctrl+Return")), this, &MainWindow::start_run);
  m_stop = add(menu, tr("Sto&p"), QKeySequence(tr("Ctrl+.")), this, &MainWindow::cancel_run);
  m_stop->setObjectName(QStringLiteral("run_stop"));
  menu->addSeparator();
  add(menu, tr("S&wap A and B of the next run"), QKeySequence(tr("Ctrl+Shift+X")), this,
      [this] { m_run_panel->swap_sides(); });
}

void MainWindow::make_help_menu() {
  QMenu* menu = menuBar()->addMenu(tr("&Help"));
  add(menu, tr("&Keys"), QKeySequence(Qt::Key_F1), this, &MainWindow::show_keys);
  add(menu, tr("&About Driftscope"), {}, this, &MainWindow::show_about);
}

void MainWindow::choose_capture() {
  const QString path = QFileDialog::getOpenFileName(this, tr("Open a capture"), m_path,
                                                    tr("Captures (*.h5 *.part);;All files (*)"));
  if (!path.isEmpty()) open_capture(path);
}

void MainWindow::reload() {
  if (responses_current()) return open_responses(m_response_paths);
  if (m_path.isEmpty() || m_run.running()) return;
  open_capture(m_path);
}

void MainWindow::go_to_next_flip() {
  if (responses_current()) return m_responses->go_to_next_difference();
  const auto step = m_comparison ? next_flip(*m_comparison, m_selected) : std::nullopt;
  if (!step) return;
  m_user_selected = true;
  select_step(*step);
}

void MainWindow::go_to_previous_flip() {
  if (responses_current()) return m_responses->go_to_previous_difference();
  const auto step = m_comparison ? previous_flip(*m_comparison, m_selected) : std::nullopt;
  if (!step) return;
  m_user_selected = true;
  select_step(*step);
}

void MainWindow::go_to_first_difference() {
  if (responses_current()) return m_responses->go_to_first_divergence();
  const auto step = m_comparison ? first_difference(*m_comparison) : std::nullopt;
  if (!step) return;
  m_user_selected = true;
  select_step(*step);
}

void MainWindow::go_to_end(bool last) {
  if (responses_current()) {
    m_responses->select_column(last ? m_responses->column_count() : 0);
  } else if (m_comparison) {
    move_by(last ? step_count(*m_comparison) : -m_selected);
  }
}

void MainWindow::move_by(std::int64_t steps) {
  if (responses_current()) return m_responses->move_by(steps);
  m_user_selected = true;
  select_step(m_selected + steps);
}

void MainWindow::show_run_panel() {
  show_capture_page();
  m_run_dock->show();
  m_run_dock->raise();
  m_run_panel->setFocus();
}

void MainWindow::export_plot(const QString& id) {
  if (!m_comparison) {
    show_error(tr("There is nothing to export yet: open a capture or start a run"));
    return;
  }
  save_picture(id,
               [this](const RenderRequest& request) { return render_plot(m_comparison, request); });
}

void MainWindow::export_response_plot(const QString& id) {
  const ResponsePairPointer pair = m_responses->pair();
  if (!pair) {
    show_error(tr("There is nothing to export yet: open two responses"));
    return;
  }
  save_picture(id,
               [pair](const RenderRequest& request) { return render_responses(pair, request); });
}

void MainWindow::export_populations() {
  const PopulationPointer population = m_responses->population();
  if (!population) {
    show_error(tr("There is nothing to export yet: open two files of many samples"));
    return;
  }
  save_picture(QStringLiteral("populations"),
               [population, row = m_responses->population_prompt()](const RenderRequest& request) {
                 return render_populations(population, row, request);
               });
}

// Ctrl+E: what is before the eyes.
void MainWindow::export_shown() {
  if (!responses_current()) return export_plot(QStringLiteral("overview"));
  const int page = m_responses->pages().currentIndex();
  if (page == static_cast<int>(ResponsesView::Page::population)) return export_populations();
  export_response_plot(QStringLiteral("overview"));
}

void MainWindow::save_picture(const QString& id,
                              const std::function<Result<void>(const RenderRequest&)>& render) {
  const QStringList filters{tr("PNG (*.png)"), tr("SVG (*.svg)"), tr("PDF (*.pdf)")};
  const QString path = QFileDialog::getSaveFileName(
      this, tr("Export plots"), id + QStringLiteral(".png"), filters.join(QStringLiteral(";;")));
  if (path.isEmpty()) return;
  const auto done = render({.plot = id,
                            .format = path.section(QLatin1Char('.'), -1).toLower(),
                            .path = path,
                            .size = QSize(1200, 0),
                            .theme = theme_kind_of(palette())});
  if (!done) {
    show_error(QString::fromStdString(done.error().message));
    return;
  }
  m_state->setText(tr("Saved %1").arg(path));
}

PlotStack& MainWindow::current_plots() const {
  return responses_current() ? m_responses->plots() : *m_plots;
}

VerdictBar& MainWindow::current_verdict() const {
  return responses_current() ? m_responses->verdict() : *m_verdict;
}

void MainWindow::show_capture_page() { m_pages->setCurrentIndex(0); }

void MainWindow::copy_table(bool markdown) const {
  // The table that has the focus, else the best tokens of the selected step.
  const TableView* table = qobject_cast<TableView*>(QApplication::focusWidget());
  if (table == nullptr) {
    table = responses_current() ? &m_responses->top_k_table() : &m_inspector->table();
  }
  if (markdown) {
    table->copy_markdown();
  } else {
    table->copy_tsv();
  }
}

void MainWindow::set_theme(ThemeKind kind) {
  apply_theme(kind);
  const QString name =
      kind == ThemeKind::dark ? QStringLiteral("theme_dark") : QStringLiteral("theme_light");
  if (auto* action = findChild<QAction*>(name)) action->setChecked(true);
}

void MainWindow::show_keys() {
  QString rows;
  for (const QAction* action : findChildren<QAction*>()) {
    if (action->shortcut().isEmpty()) continue;
    rows += QStringLiteral("<tr><td><b>%1</b>&nbsp;&nbsp;</td><td>%2</td></tr>")
                .arg(action->shortcut().toString(QKeySequence::NativeText).toHtmlEscaped(),
                     action->text().remove(QLatin1Char('&')).toHtmlEscaped());
  }
  QMessageBox::information(
      this, tr("Keys"),
      QStringLiteral("<table>%1</table>").arg(rows) +
          tr("<p>On the plots: wheel zooms, dragging pans, a click selects a "
             "step, Shift and a click set the second cursor, a double click shows all "
             "steps.</p>"));
}

void MainWindow::show_about() {
  QMessageBox::about(this, tr("About Driftscope"),
                     tr("<b>Driftscope</b><p>The same prompt gave a different answer: where did it "
                        "start, which setting did it, and does it matter?</p><p>The window is free "
                        "software under the GNU General Public License, version 3 or later, and "
                        "comes without any warranty. It uses Qt %1, QCustomPlot and the DejaVu "
                        "fonts.</p>")
                         .arg(QLatin1String(qVersion())));
}

}  // namespace driftscope::ui
