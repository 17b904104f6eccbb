// SPDX-License-Identifier: GPL-3.0-or-later
// The widget tests' main: offscreen, the program's own fonts, and every Qt warning is a failure.
#include <gtest/gtest.h>

#include <QApplication>
#include <QStandardPaths>

#include "ui/theme/theme.h"

namespace {

void fail_on_warning(QtMsgType type, const QMessageLogContext&, const QString& message) {
  if (type == QtDebugMsg || type == QtInfoMsg) return;
  // The offscreen platform says this once of itself; it says nothing about the program.
  if (message.contains(QLatin1String("does not support propagateSizeHints"))) return;
  ADD_FAILURE() << "Qt: " << message.toStdString();
}

}  // namespace

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  testing::InitGoogleTest(&argc, argv);
  QStandardPaths::setTestModeEnabled(true);
  QApplication application(argc, argv);
  qInstallMessageHandler(fail_on_warning);
  driftscope::ui::apply_theme(driftscope::ui::ThemeKind::light);
  return RUN_ALL_TESTS();
}
