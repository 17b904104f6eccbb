// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/program_locator.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>

namespace driftscope::ui {

QString locate_program() {
  const QString named = qEnvironmentVariable("DRIFTSCOPE_CLI");
  if (!named.isEmpty()) return named;
  const QDir here(QCoreApplication::applicationDirPath());
  for (const char* candidate : {"driftscope", "../cli/driftscope"}) {
    const QFileInfo file(here.filePath(QLatin1String(candidate)));
    if (file.isFile() && file.isExecutable()) return file.canonicalFilePath();
  }
  return QStandardPaths::findExecutable(QStringLiteral("driftscope"));
}

QString locate_sample() {
  const QDir here(QCoreApplication::applicationDirPath());
  for (const char* folder :
       {"../share/driftscope/samples", "../../../../samples/captures", "samples/captures"}) {
    const QFileInfo file(here.filePath(QLatin1String(folder) + QStringLiteral("/neighbours.h5")));
    if (file.isFile()) return file.canonicalFilePath();
  }
  return {};
}

QString program_missing_text() {
  return QStringLiteral(
      "The program driftscope was not found beside driftscope-gui or in PATH; build it, or name it "
      "in the environment variable DRIFTSCOPE_CLI");
}

}  // namespace driftscope::ui
