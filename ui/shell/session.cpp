// SPDX-License-Identifier: GPL-3.0-or-later
// What the window remembers between starts.
#include <QFileInfo>
#include <QMenu>
#include <QSettings>

#include "ui/shell/main_window.h"

namespace driftscope::ui {
namespace {

constexpr int kRecentFiles = 10;
constexpr int kLayoutVersion = 1;  // raise when docks are added or renamed
const QString kRecent = QStringLiteral("recent_files");

}  // namespace

void MainWindow::restore_session() {
  if (m_settings == nullptr) return;
  restoreGeometry(m_settings->value(QStringLiteral("geometry")).toByteArray());
  restoreState(m_settings->value(QStringLiteral("docks")).toByteArray(), kLayoutVersion);
  RunRequest request = m_run_panel->request();
  const auto text = [this](const char* key, const QString& otherwise) {
    return m_settings->value(QStringLiteral("run/") + QLatin1String(key), otherwise).toString();
  };
  request.model = text("model", request.model);
  request.model_b = text("model_b", request.model_b);
  request.prompt = text("prompt", request.prompt);
  request.taps = text("taps", request.taps);
  request.preset_a = text("preset_a", request.preset_a);
  request.preset_b = text("preset_b", request.preset_b);
  request.steps = m_settings->value(QStringLiteral("run/steps"), request.steps).toInt();
  request.control = m_settings->value(QStringLiteral("run/control"), request.control).toBool();
  m_run_panel->set_request(request);
  m_run_panel->suggest_output();
  m_run_panel->set_remote(m_settings->value(QStringLiteral("run/remote")).toStringList());
}

void MainWindow::save_session() {
  if (m_settings == nullptr) return;
  show_capture_page();  // with the docks as they belong to it
  m_settings->setValue(QStringLiteral("geometry"), saveGeometry());
  m_settings->setValue(QStringLiteral("docks"), saveState(kLayoutVersion));
  m_settings->setValue(QStringLiteral("theme"), theme_kind_of(palette()) == ThemeKind::dark
                                                    ? QStringLiteral("dark")
                                                    : QStringLiteral("light"));
  const RunRequest request = m_run_panel->request();
  m_settings->setValue(QStringLiteral("run/model"), request.model);
  m_settings->setValue(QStringLiteral("run/model_b"), request.model_b);
  m_settings->setValue(QStringLiteral("run/prompt"), request.prompt);
  m_settings->setValue(QStringLiteral("run/taps"), request.taps);
  m_settings->setValue(QStringLiteral("run/preset_a"), request.preset_a);
  m_settings->setValue(QStringLiteral("run/preset_b"), request.preset_b);
  m_settings->setValue(QStringLiteral("run/control"), request.control);
  m_settings->setValue(QStringLiteral("run/steps"), request.steps);
  m_settings->setValue(QStringLiteral("run/remote"), m_run_panel->remote());
}

void MainWindow::remember(const QString& path) {
  if (m_settings == nullptr || path.isEmpty()) return;
  const QString absolute = QFileInfo(path).absoluteFilePath();
  QStringList files = m_settings->value(kRecent).toStringList();
  files.removeAll(absolute);
  files.prepend(absolute);
  m_settings->setValue(kRecent, files.mid(0, kRecentFiles));
}

void MainWindow::show_recent(QMenu& menu) {
  menu.clear();
  const QStringList files =
      m_settings == nullptr ? QStringList() : m_settings->value(kRecent).toStringList();
  for (const QString& file : files) {
    QString name = file;
    connect(menu.addAction(name.replace(QLatin1Char('&'), QStringLiteral("&&"))),
            &QAction::triggered, this, [this, file] { open_capture(file); });
  }
  if (files.isEmpty()) menu.addAction(tr("No capture has been opened yet"))->setEnabled(false);
}

}  // namespace driftscope::ui
