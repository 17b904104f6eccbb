// SPDX-License-Identifier: GPL-3.0-or-later
// The page of answers: files dropped on the window, bad ones, pairs, keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QDropEvent>
#include <QFile>
#include <QImage>
#include <QMimeData>
#include <QPushButton>
#include <QSignalSpy>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>
#include <QUrl>

#include "tests/ui/responses_window.h"
#include "ui/plots/render.h"
#include "ui/plots/response_plot.h"
#include "ui/shell/main_window.h"
#include "ui/views/plot_stack.h"
#include "ui/views/response_fact_panel.h"
#include "ui/views/responses_view.h"
#include "ui/views/table_view.h"
#include "ui/views/token_ribbon_view.h"
#include "ui/views/verdict_bar.h"

namespace driftscope::ui {
namespace {

TEST_F(Responses, TwoDroppedFilesAreLaidSideBySide) {
  QSignalSpy shown(&window, &MainWindow::responses_shown);
  drop({red(), blue()});
  ASSERT_TRUE(shown.wait(kPatience));
  EXPECT_TRUE(window.responses_current());
  EXPECT_EQ(view().verdict().summary().headline,
            QStringLiteral("First divergence at token 2: A ‘ red’, B ‘ blue’"));
  EXPECT_EQ(view().selected_column(), 2);
  EXPECT_EQ(view().column_count(), 4);
  EXPECT_EQ(part<TokenRibbonView>(window, "response_ribbons").selected_step(), 2);
  ASSERT_EQ(view().plots().plots().size(), 2U);
  EXPECT_EQ(plot(0).series().difference[1], -0.25);
  EXPECT_THAT(plot(0).readout(1).toStdString(), testing::HasSubstr("-0.25"));
  EXPECT_THAT(plot(0).readout(2).toStdString(), testing::HasSubstr("not known"));
  for (const QDockWidget* dock : window.findChildren<QDockWidget*>()) {
    EXPECT_FALSE(dock->isVisible()) << dock->objectName().toStdString();
  }
}

TEST_F(Responses, DocksComeBackWithTheCapture) {
  auto& findings = part<QDockWidget>(window, "dock_findings");
  const bool before = !findings.isHidden();
  open({red(), blue()});
  EXPECT_TRUE(findings.isHidden());
  QSignalSpy shown(&window, &MainWindow::capture_shown);
  window.open_files({QStringLiteral(DRIFTSCOPE_SOURCE_DIR "/samples/captures/neighbours.h5")});
  ASSERT_TRUE(shown.wait(60000));
  EXPECT_FALSE(window.responses_current());
  EXPECT_EQ(!findings.isHidden(), before);
  EXPECT_NE(window.comparison(), nullptr);
  EXPECT_NE(view().pair(), nullptr);  // still there on its page
}

TEST_F(Responses, ABadFileIsOneLineAndKeepsWhatWasOpen) {
  open({red(), blue()});
  const ResponsePairPointer before = view().pair();
  QSignalSpy failed(&window, &MainWindow::error_shown);
  window.open_files({red(), write("bad.json", "{\"choices\": [")});
  ASSERT_TRUE(failed.wait(kPatience));
  EXPECT_THAT(view().message().toStdString(), testing::HasSubstr("bad.json"));
  EXPECT_FALSE(view().message().contains(QLatin1Char('\n')));
  EXPECT_EQ(view().pair(), before);
  EXPECT_EQ(window.last_error(), view().message());
  // The next good files take the line away.
  open({blue(), red()});
  EXPECT_TRUE(view().message().isEmpty());
}

TEST_F(Responses, EmptyMissingAndForeignFilesSayWhat) {
  const auto error = [&](const QStringList& paths) {
    QSignalSpy failed(&window, &MainWindow::error_shown);
    window.open_files(paths);
    if (failed.isEmpty()) {
      EXPECT_TRUE(failed.wait(kPatience));
    }
    return window.last_error().toStdString();
  };
  EXPECT_THAT(error({write("empty.json", "")}), testing::HasSubstr("is empty"));
  EXPECT_THAT(error({m_folder.filePath(QStringLiteral("none.json"))}),
              testing::HasSubstr("cannot be read"));
  EXPECT_THAT(error({m_folder.path()}), testing::HasSubstr("is a folder"));
  EXPECT_THAT(
      error({red(), QStringLiteral(DRIFTSCOPE_SOURCE_DIR "/samples/captures/neighbours.h5")}),
      testing::HasSubstr("open it alone"));
}

TEST_F(Responses, OneAnswerWaitsForItsPartner) {
  open({red()});
  EXPECT_EQ(view().pair(), nullptr);
  EXPECT_THAT(view().verdict().summary().headline.toStdString(),
              testing::HasSubstr("holds one answer"));
  QSignalSpy shown(&window, &MainWindow::responses_shown);
  drop({blue()});
  ASSERT_TRUE(shown.wait(kPatience));
  ASSERT_NE(view().pair(), nullptr);
  EXPECT_EQ(view().files()->paths.size(), 2);
}

TEST_F(Responses, KeysGoThroughTheTokens) {
  open({red(), blue()});
  QTest::keyClick(&window, Qt::Key_Home);
  EXPECT_EQ(view().selected_column(), 0);
  QTest::keyClick(&window, Qt::Key_Right);
  EXPECT_EQ(view().selected_column(), 1);
  QTest::keyClick(&window, Qt::Key_N);
  EXPECT_EQ(view().selected_column(), 2);
  QTest::keyClick(&window, Qt::Key_End);
  EXPECT_EQ(view().selected_column(), 3);
  QTest::keyClick(&window, Qt::Key_P);
  EXPECT_EQ(view().selected_column(), 2);
  QTest::keyClick(&window, Qt::Key_Left);
  EXPECT_EQ(view().selected_column(), 1);
  QTest::keyClick(&window, Qt::Key_D);
  EXPECT_EQ(view().selected_column(), 2);
}

TEST_F(Responses, AClickInTheRibbonMovesTheCursor) {
  open({red(), blue()});
  auto& ribbons = part<TokenRibbonView>(window, "response_ribbons");
  int x = -1;
  for (int i = 0; i < ribbons.viewport()->width() && x < 0; ++i) {
    if (ribbons.step_at(i) == 1) x = i + 2;
  }
  ASSERT_GE(x, 0);
  QTest::mouseClick(ribbons.viewport(), Qt::LeftButton, {}, QPoint(x, 30));
  EXPECT_EQ(view().selected_column(), 1);
}

TEST_F(Responses, ThePairIsChosenFromListsAndSwapped) {
  const QString third = write("third.json", chat_json({{"No", -0.5}}));
  open({red(), blue(), third});
  QSignalSpy shown(&window, &MainWindow::responses_shown);
  part<QComboBox>(window, "choose_b").setCurrentIndex(2);
  ASSERT_TRUE(shown.wait(kPatience));
  EXPECT_EQ(view().pair()->choice, (AnswerChoice{0, 2}));
  EXPECT_EQ(view().pair()->columns.divergence, 0);
  view().swap_sides();
  ASSERT_TRUE(shown.wait(kPatience));
  EXPECT_EQ(view().pair()->choice, (AnswerChoice{2, 0}));
  EXPECT_EQ(part<QComboBox>(window, "choose_a").currentText(), QStringLiteral("3 · third.json"));
  // The same answer on both sides is no pair.
  part<QComboBox>(window, "choose_b").setCurrentIndex(2);
  EXPECT_THAT(view().message().toStdString(), testing::HasSubstr("same answer"));
  EXPECT_EQ(view().pair()->choice, (AnswerChoice{2, 0}));
}

// However small the window: every line of the legend stands inside, below the cells.
TEST_F(Responses, DiffOnlyLeavesWhatDiffers) {
  open({red(), blue()});
  auto& facts = part<ResponseFactPanel>(window, "response_facts");
  const int all = facts.model().rowCount();
  part<QPushButton>(window, "diff_only").click();
  EXPECT_EQ(facts.model().rowCount(), 1);
  EXPECT_GT(all, 1);
  part<QPushButton>(window, "diff_only").click();
  EXPECT_EQ(facts.model().rowCount(), all);
}

TEST_F(Responses, TheNewestRequestWins) {
  QSignalSpy shown(&window, &MainWindow::responses_shown);
  window.open_files({red(), blue()});
  const QString third = write("third.json", chat_json({{"No", -0.5}}));
  window.open_files({third, red()});
  ASSERT_TRUE(shown.wait(kPatience));
  EXPECT_EQ(shown.count(), 1);
  EXPECT_EQ(view().files()->names.value(0), QStringLiteral("third.json"));
}

// What the columns need is there: nothing of them stands outside the table.
TEST_F(Responses, TheCommandIsCopied) {
  open({red(), blue()});
  QTest::mouseClick(view().findChild<QWidget*>(QStringLiteral("copy_command")), Qt::LeftButton);
  EXPECT_EQ(QApplication::clipboard()->text(),
            QStringLiteral("driftscope vendor %1 %2").arg(red(), blue()));
}

TEST_F(Responses, AnEmptyPlotSaysWhy) {
  open({write("a.json", chat_json({{"It", -0.5}}, "fp_1", false)),
        write("b.json", chat_json({{"No", -0.5}}, "fp_1", false))});
  for (std::size_t i : {0U, 1U}) {
    const auto* canvas = plot(i).findChild<QWidget*>();
    EXPECT_THAT(canvas->accessibleDescription().toStdString(),
                testing::HasSubstr("Neither answer lists logprobs"));
  }
}

TEST_F(Responses, PlotsAreWrittenAsPictures) {
  open({red(), blue()});
  for (const auto& [format, magic] :
       {std::pair{"png", "\x89PNG"}, {"svg", "<?xml"}, {"pdf", "%PDF"}}) {
    for (const char* id : {"overview", "logprob_difference", "logprobs"}) {
      const QString path =
          m_folder.filePath(QLatin1String(id) + QLatin1Char('.') + QLatin1String(format));
      const auto done = render_responses(
          view().pair(),
          {.plot = QLatin1String(id), .format = QLatin1String(format), .path = path});
      ASSERT_TRUE(done.has_value()) << done.error().message;
      QFile file(path);
      ASSERT_TRUE(file.open(QIODevice::ReadOnly));
      EXPECT_TRUE(file.readAll().startsWith(magic)) << path.toStdString();
    }
  }
}

// One spike among 20,000 tokens on 700 pixels, and a gap where one value is not known.
TEST_F(Responses, ASpikeIsNeverHidden) {
  std::vector<ChatToken> a, b;
  for (int i = 0; i < 20000; ++i) {
    a.push_back({.text = "x", .logprob = -0.5});
    b.push_back({.text = "x", .logprob = i == 12345 ? -9.5 : -0.5});
  }
  const auto pair = parsed_pair(chat_json(a), chat_json(b));
  const QString path = m_folder.filePath(QStringLiteral("spike.png"));
  ASSERT_TRUE(
      render_responses(
          pair, {.plot = QStringLiteral("logprob_difference"), .path = path, .size = {700, 240}})
          .has_value());
  const QImage image(path);
  // Two device pixels per unit; 74 and 14 units of margin. Half-covered pixels are half as dark.
  const int middle = static_cast<int>(2.0 * (74.0 + 12345.5 / 20000.0 * (700.0 - 88.0)));
  int lowest = 0;
  for (int y = 100; y < 380; ++y) {  // inside the axes, above the lower end of the spike
    for (int x = middle - 6; x <= middle + 6; ++x) {
      if (image.pixelColor(x, y).lightness() < 190) lowest = y;
    }
  }
  EXPECT_GT(lowest, 300);  // down from the zero line near the top
}

struct PageShot {
  const char* name;
  QSize size;
  ThemeKind theme;
};

class ResponsesPicture : public Responses, public testing::WithParamInterface<PageShot> {};

TEST_P(ResponsesPicture, HoldsBothSides) {
  window.set_theme(GetParam().theme);
  window.resize(GetParam().size);
  open({red(), blue()});
  QApplication::processEvents();
  QApplication::processEvents();
  const QImage image = window.grab().toImage();
  const Theme& theme = theme_of(GetParam().theme);
  EXPECT_EQ(image.size(), GetParam().size);
  for (const QColor& colour : {theme.surface, theme.side_a, theme.side_b, theme.divergence}) {
    bool found = false;
    for (int y = 0; y < image.height() && !found; ++y) {
      for (int x = 0; x < image.width() && !found; ++x) found = image.pixelColor(x, y) == colour;
    }
    EXPECT_TRUE(found) << colour.name().toStdString();
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ResponsesPicture,
                         testing::Values(PageShot{"small_light", {1280, 800}, ThemeKind::light},
                                         PageShot{"large_dark", {1920, 1080}, ThemeKind::dark}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace driftscope::ui
