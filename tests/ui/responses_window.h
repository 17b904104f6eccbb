// SPDX-License-Identifier: GPL-3.0-or-later
// A window with answers in it, for tests.
#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QDragEnterEvent>
#include <QDropEvent>
#include <QFile>
#include <QMimeData>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QUrl>

#include "tests/ui/response_files.h"
#include "ui/plots/response_plot.h"
#include "ui/shell/main_window.h"
#include "ui/views/plot_stack.h"
#include "ui/views/responses_view.h"

namespace driftscope::ui {

inline constexpr int kPatience = 30000;  // ms

template <class Widget>
Widget& part(QWidget& parent, const char* name) {
  auto* found = parent.findChild<Widget*>(QLatin1String(name));
  EXPECT_NE(found, nullptr) << name;
  return *found;
}

class Responses : public testing::Test {
 protected:
  void SetUp() override {
    window.resize(1280, 800);
    window.show();
  }
  void TearDown() override { apply_theme(ThemeKind::light); }
  QString write(const char* name, const std::string& text) {
    QFile file(m_folder.filePath(QLatin1String(name)));
    EXPECT_TRUE(file.open(QIODevice::WriteOnly));
    file.write(text.data(), static_cast<qint64>(text.size()));
    return file.fileName();
  }
  QString red() {
    return write("red.json",
                 chat_json({{"It", -0.5}, {" is", -0.25}, {" red", -0.5}, {".", -1.0}}));
  }
  QString blue() {
    return write("blue.json", chat_json({{"It", -0.5}, {" is", -0.5}, {" blue", -0.75}}, "fp_2"));
  }
  void open(const QStringList& paths) {
    QSignalSpy shown(&window, &MainWindow::responses_shown);
    window.open_files(paths);
    ASSERT_TRUE(shown.wait(kPatience)) << window.last_error().toStdString();
  }
  // Six samples a side: A says "red" each time, B "blue" but for once.
  void open_populations() {
    std::string a, b;
    for (int i = 0; i < 6; ++i) {
      a += chat_json({{"red", -0.5}}) + "\n";
      b += chat_json({{i < 5 ? "blue" : "red", -0.5}}) + "\n";
    }
    QSignalSpy populated(&window, &MainWindow::population_shown);
    open({write("a.jsonl", a), write("b.jsonl", b)});
    if (populated.isEmpty()) {
      ASSERT_TRUE(populated.wait(kPatience));
    }
  }
  void drop(const QStringList& paths) {
    QMimeData data;
    QList<QUrl> urls;
    for (const QString& path : paths) urls << QUrl::fromLocalFile(path);
    data.setUrls(urls);
    QDragEnterEvent enter(QPoint(5, 5), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&window, &enter);
    EXPECT_TRUE(enter.isAccepted());
    QDropEvent event(QPointF(5, 5), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&window, &event);
  }
  ResponsesView& view() { return window.responses(); }
  const ResponsePlot& plot(std::size_t index) {
    return *qobject_cast<ResponsePlot*>(view().plots().plots()[index]);
  }
  MainWindow window{nullptr};
  QTemporaryDir m_folder;
};

}  // namespace driftscope::ui
