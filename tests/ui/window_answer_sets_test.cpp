// SPDX-License-Identifier: GPL-3.0-or-later
// The page of answers, of many: the matrix, samples, errors, and what the badge says of each page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QDropEvent>
#include <QFile>
#include <QHeaderView>
#include <QImage>
#include <QMimeData>
#include <QPushButton>
#include <QSignalSpy>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>
#include <QUrl>

#include "tests/ui/responses_window.h"
#include "ui/plots/population_plots.h"
#include "ui/plots/render.h"
#include "ui/plots/response_plot.h"
#include "ui/shell/main_window.h"
#include "ui/views/answer_set_panel.h"
#include "ui/views/pair_matrix_view.h"
#include "ui/views/plot_stack.h"
#include "ui/views/population_panel.h"
#include "ui/views/response_fact_panel.h"
#include "ui/views/responses_view.h"
#include "ui/views/table_view.h"
#include "ui/views/token_ribbon_view.h"
#include "ui/views/verdict_bar.h"

namespace driftscope::ui {
namespace {

TEST_F(Responses, TheMatrixIsClickable) {
  const QString third =
      write("third.json", chat_json({{"It", -0.5}, {" is", -0.25}, {" so", -1.0}}));
  QSignalSpy surveyed(&window, &MainWindow::survey_shown);
  open({red(), blue(), third});
  if (surveyed.isEmpty()) {
    ASSERT_TRUE(surveyed.wait(kPatience));
  }
  view().show_page(ResponsesView::Page::all);
  QApplication::processEvents();
  auto& matrix = part<PairMatrixView>(window, "pair_matrix");
  ASSERT_TRUE(matrix.isVisible());
  QSignalSpy shown(&window, &MainWindow::responses_shown);
  QTest::mouseClick(&matrix, Qt::LeftButton, {}, matrix.cell_centre(1, 2));
  ASSERT_TRUE(shown.wait(kPatience));
  EXPECT_EQ(view().pair()->choice, (AnswerChoice{1, 2}));
  QTest::mouseClick(&matrix, Qt::LeftButton, {}, matrix.cell_centre(1, 1));  // itself: nothing
  EXPECT_EQ(view().pair()->choice, (AnswerChoice{1, 2}));
  QTest::keyClick(&matrix, Qt::Key_Left);  // past the diagonal
  ASSERT_TRUE(shown.wait(kPatience));
  EXPECT_EQ(view().pair()->choice, (AnswerChoice{1, 0}));
}

TEST_F(Responses, CellsOfOtherQuestionsAreGreyWithTheReason) {
  const auto line = [](const std::string& id, const std::string& text) {
    return R"({"custom_id":")" + id + R"(","response":{"status_code":200,"body":)" +
           chat_json({{text, -0.5}}) + "}}\n";
  };
  QSignalSpy surveyed(&window, &MainWindow::survey_shown);
  open({write("a.jsonl", line("q1", "x") + line("q2", "x") + line("q1", "x"))});
  if (surveyed.isEmpty()) {
    ASSERT_TRUE(surveyed.wait(kPatience));
  }
  view().show_page(ResponsesView::Page::all);
  QApplication::processEvents();
  auto& matrix = part<PairMatrixView>(window, "pair_matrix");
  EXPECT_THAT(matrix.pair_text({0, 1}).toStdString(),
              testing::HasSubstr("custom_ids q1 and q2 are other questions"));
  const QImage image = matrix.grab().toImage();
  const auto colour = [&](std::size_t i, std::size_t j) {
    return image.pixelColor(matrix.cell_centre(i, j) - QPoint(8, 8));  // beside the mark
  };
  const QColor grey = colour(0, 1);
  EXPECT_LT(grey.hsvSaturation(), 40);
  EXPECT_EQ(colour(1, 2), grey);
  EXPECT_NE(colour(0, 2), grey);
  ASSERT_EQ(matrix.legend().size(), 2U);
  EXPECT_EQ(matrix.legend()[1].text.toStdString(), "other questions");
}

TEST_F(Responses, TheLegendOfTheMatrixIsNeverCut) {
  const QString third = write("third.json", chat_json({{"It", -0.5}}, "fp_1", false));
  QSignalSpy surveyed(&window, &MainWindow::survey_shown);
  open({red(), blue(), third, write("fourth.json", chat_json({{"It", -0.5}}))});
  if (surveyed.isEmpty()) {
    ASSERT_TRUE(surveyed.wait(kPatience));
  }
  auto& matrix = part<PairMatrixView>(window, "pair_matrix");
  ASSERT_GE(matrix.legend().size(), 2U);
  for (const int width : {400, 160, 110}) {
    matrix.resize(width, 160);
    for (const auto& entry : matrix.legend()) {
      EXPECT_LE(entry.x + entry.width, width) << entry.text.toStdString();
    }
    EXPECT_LT(matrix.cell_centre(3, 3).y(), 160 - matrix.legend_height()) << width;
  }
}

TEST_F(Responses, ManySamplesAreTwoPopulations) {
  open_populations();
  EXPECT_EQ(view().page(), ResponsesView::Page::population);  // samples: their test first
  EXPECT_EQ(view().verdict().summary().tier.toStdString(), "CHANGED");
  const auto& tests = part<TableView>(window, "population_table");
  QApplication::processEvents();
  EXPECT_LE(tests.horizontalHeader()->length(), tests.viewport()->width());
  const auto& panel = part<PopulationPanel>(window, "populations");
  // 6 against 6: 12 over 6 ways to deal them out, 12 of which are as uneven: p of about 0.015.
  EXPECT_THAT(panel.sentence().toStdString(), testing::HasSubstr("1 of 1 prompt changed"));
  const auto& plots = part<PopulationPlots>(window, "population_plots");
  EXPECT_THAT(plots.summary().toStdString(),
              testing::HasSubstr("within A 5 of 5 pairs never part"));
  EXPECT_THAT(plots.summary().toStdString(),
              testing::HasSubstr("within B 4 of 5 pairs never part"));
  EXPECT_THAT(plots.summary().toStdString(),
              testing::HasSubstr("A against B 1 of 6 pairs never part"));
}

TEST_F(Responses, TheBadgeSpeaksOfThePageInView) {
  QSignalSpy surveyed(&window, &MainWindow::survey_shown);
  open({red(), blue(), write("again.json", chat_json({{"It", -0.5}}))});
  if (surveyed.isEmpty()) {
    ASSERT_TRUE(surveyed.wait(kPatience));
  }
  EXPECT_EQ(view().page(), ResponsesView::Page::all);  // more than two: together first
  EXPECT_EQ(view().verdict().summary().headline.toStdString(),
            "3 answers in 3 groups; 3 of 3 pairs differ");
  view().show_page(ResponsesView::Page::pair);
  EXPECT_THAT(view().verdict().summary().headline.toStdString(),
              testing::StartsWith("First divergence at token 2"));
  view().show_page(ResponsesView::Page::all);
  EXPECT_EQ(view().verdict().summary().tier.toStdString(), "DIFFERENT");
  // A pair that is chosen from the lists is to be seen.
  part<QComboBox>(window, "choose_b").setCurrentIndex(2);
  EXPECT_EQ(view().page(), ResponsesView::Page::pair);
}

TEST_F(Responses, AnErrorBesideAnAnswerIsAPair) {
  open({write("e.json", R"({"error":{"message":"rate limit","code":"429"}})"), red()});
  ASSERT_NE(view().pair(), nullptr);
  EXPECT_EQ(view().verdict().summary().tier.toStdString(), "INCONCLUSIVE");
  EXPECT_THAT(view().verdict().summary().headline.toStdString(), testing::HasSubstr("rate limit"));
  EXPECT_EQ(part<QComboBox>(window, "choose_a").currentText().toStdString(), "e.json (error)");
  EXPECT_EQ(view().column_count(), 4);
}

TEST_F(Responses, TheTableOfPairsFitsItsPlace) {
  QSignalSpy surveyed(&window, &MainWindow::survey_shown);
  open({red(), blue(), write("again.json", chat_json({{"It", -0.5}}))});
  if (surveyed.isEmpty()) {
    ASSERT_TRUE(surveyed.wait(kPatience));
  }
  QApplication::processEvents();
  const auto& table = part<TableView>(window, "pair_table");
  EXPECT_LE(table.horizontalHeader()->length(), table.viewport()->width());
}

}  // namespace
}  // namespace driftscope::ui
