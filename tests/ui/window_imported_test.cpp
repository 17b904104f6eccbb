// SPDX-License-Identifier: GPL-3.0-or-later
// Plots of captures read from other programs' files, one answer without a partner, and figures of
// populations as pictures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QComboBox>
#include <QFile>
#include <QImage>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>

#include "tests/ui/responses_window.h"
#include "tests/ui/synthetic_comparison.h"
#include "ui/plots/logit_difference_plot.h"
#include "ui/plots/margin_plot.h"
#include "ui/plots/rank_flip_plot.h"
#include "ui/plots/render.h"
#include "ui/plots/response_plot.h"
#include "ui/shell/main_window.h"
#include "ui/views/plot_stack.h"
#include "ui/views/responses_view.h"
#include "ui/views/table_view.h"
#include "ui/views/token_ribbon_view.h"
#include "ui/views/verdict_bar.h"

namespace driftscope::ui {
namespace {

std::string said(const StepPlot& plot) {
  return plot.findChild<QWidget*>()->accessibleDescription().toStdString();
}

TEST(ImportedPlots, DifferencesAreThoseOfTokensThatBothList) {
  LogitDifferencePlot plot(nullptr);
  plot.set_comparison(listed_comparison());
  EXPECT_EQ(plot.title().toStdString(),
            "Log probability difference |B − A| of tokens that both list");
  EXPECT_EQ(plot.value_axis().toStdString(), "log probability");
  EXPECT_EQ(plot.readout(0).toStdString(), "largest 0.25 nat, A's token 0.25 nat");
  EXPECT_EQ(plot.readout(1).toStdString(), "largest not known, A's token not known");
  EXPECT_EQ(plot.summary().toStdString(), "2 steps; at 1 no token has a value on both sides.");
  // A run shown next has its own words again.
  plot.set_comparison(synthetic_comparison({.steps = 4, .divergence = -1}));
  EXPECT_EQ(plot.title().toStdString(), "Logit difference |B − A|");
  EXPECT_EQ(plot.value_axis().toStdString(), "logit");
  EXPECT_THAT(plot.readout(0).toStdString(), testing::EndsWith(" logit"));
}

TEST(ImportedPlots, MarginsSayWhatIsNotKnown) {
  MarginPlot plot(nullptr);
  plot.set_comparison(listed_comparison());
  EXPECT_EQ(plot.title().toStdString(), "Margin of the best token");
  EXPECT_EQ(plot.value_axis().toStdString(), "log probability");
  EXPECT_EQ(plot.readout(0).toStdString(), "margin A 1 nat, B 0.5 nat");
  EXPECT_EQ(plot.readout(1).toStdString(), "margin A not known, B not known");
  EXPECT_EQ(plot.summary().toStdString(), "The margin of A is known at 1 of 2 steps, of B at 1.");
}

TEST(ImportedPlots, WithoutOneKnownValueThePlotSaysWhy) {
  auto c = listed_comparison();
  c->steps.erase(c->steps.begin());
  LogitDifferencePlot differences(nullptr);
  MarginPlot margins(nullptr);
  RankFlipPlot ranks(nullptr);
  for (StepPlot* plot : std::initializer_list<StepPlot*>{&differences, &margins, &ranks}) {
    plot->set_comparison(c);
    EXPECT_THAT(said(*plot), testing::ContainsRegex("[Nn]ot known|are not known"));
  }
}

// Nothing stands on the rail of NaN: what is not known is a gap.
TEST(ImportedPlots, WhatIsNotKnownIsNotDrawnAsNan) {
  QTemporaryDir folder;
  const QColor mark = theme_of(ThemeKind::light).non_finite;
  const auto marks = [&](const std::shared_ptr<Comparison>& c, const char* plot) {
    const QString path = folder.filePath(QLatin1String(plot) + QStringLiteral(".png"));
    EXPECT_TRUE(render_plot(c, {.plot = QLatin1String(plot), .path = path, .size = {600, 240}}));
    const QImage image(path);
    int count = 0;
    for (int y = 50; y < image.height(); ++y) {
      for (int x = 0; x < image.width(); ++x) count += image.pixelColor(x, y) == mark ? 1 : 0;
    }
    return count;
  };
  for (const char* plot : {"logit_difference", "margins"}) {
    EXPECT_EQ(marks(listed_comparison(), plot), 0) << plot;
  }
  EXPECT_GT(marks(synthetic_comparison({.steps = 12, .divergence = -1, .nan_step = 5}),
                  "logit_difference"),
            0);
}

TEST(PictureSize, IsWhatIsAskedTimesTheScale) {
  QTemporaryDir folder;
  const auto size_at = [&](int scale) {
    const QString path = folder.filePath(QStringLiteral("plot.png"));
    EXPECT_TRUE(render_plot(
        listed_comparison(),
        {.plot = QStringLiteral("margins"), .path = path, .size = {801, 301}, .scale = scale}));
    return QImage(path).size();
  };
  EXPECT_EQ(size_at(1), QSize(801, 301));
  EXPECT_EQ(size_at(3), QSize(2403, 903));
  for (const int scale : {0, 5}) {
    const auto done = render_plot(
        listed_comparison(), {.path = folder.filePath(QStringLiteral("x.png")), .scale = scale});
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().kind, ErrorKind::usage);
  }
  const auto large = render_plot(
      listed_comparison(),
      {.path = folder.filePath(QStringLiteral("x.png")), .size = {4000, 4000}, .scale = 3});
  ASSERT_FALSE(large.has_value());
  EXPECT_THAT(large.error().message, testing::HasSubstr("10000 pixels"));
}

class ImportedWindow : public Responses {};

TEST_F(ImportedWindow, OneAnswerIsShownWithTheWayToASecond) {
  open({write("red.json", chat_json({{"It", -0.5, {{"So", -1.5}}}, {" is", -0.25}}))});
  const ResponsesView& view = window.responses();
  EXPECT_EQ(view.pair(), nullptr);
  EXPECT_EQ(view.column_count(), 2);
  EXPECT_EQ(view.selected_column(), 0);
  EXPECT_EQ(window.responses().top_k_table().model()->rowCount(), 2);
  const auto* ribbon = window.findChild<TokenRibbonView*>(QStringLiteral("response_ribbons"));
  EXPECT_THAT(ribbon->accessibleDescription().toStdString(),
              testing::AllOf(testing::HasSubstr("2 steps of A"),
                             testing::HasSubstr("no second file: drop one here")));
  const auto* second = window.findChild<QComboBox*>(QStringLiteral("choose_b"));
  EXPECT_EQ(second->placeholderText().toStdString(), "no second file: drop one here");
  const auto& plots = window.responses().plots().plots();
  EXPECT_THAT(said(*plots[0]), testing::HasSubstr("drop a second file"));
  EXPECT_EQ(plots[1]->summary().toStdString(), "The answer lists 2 logprobs, of 2 columns.");
  window.responses().select_column(1);
  EXPECT_EQ(ribbon->selected_step(), 1);
  // With a second file it is a pair, and nothing of this is left.
  open({write("red.json", chat_json({{"It", -0.5}})),
        write("blue.json", chat_json({{"So", -0.5}}))});
  EXPECT_NE(view.pair(), nullptr);
  EXPECT_EQ(second->placeholderText(), QString());
}

TEST_F(ImportedWindow, NamesAreElidedInTheMiddle) {
  for (const char* name : {"pair_table", "cluster_table"}) {
    const auto* table = window.findChild<TableView*>(QLatin1String(name));
    ASSERT_NE(table, nullptr) << name;
    EXPECT_EQ(table->textElideMode(), Qt::ElideMiddle) << name;
  }
}

TEST_F(ImportedWindow, FiguresOfPopulationsAreSaved) {
  open_populations();
  QSignalSpy asked(&window.responses(), &ResponsesView::save_populations_requested);
  auto* save = window.findChild<QPushButton*>(QStringLiteral("save_populations"));
  ASSERT_NE(save, nullptr);
  EXPECT_TRUE(save->isEnabled());
  QObject::disconnect(&window.responses(), &ResponsesView::save_populations_requested, &window,
                      nullptr);  // its dialog would wait for a person
  save->click();
  EXPECT_EQ(asked.count(), 1);
  const QString path = m_folder.filePath(QStringLiteral("p.png"));
  ASSERT_TRUE(render_populations(window.responses().population(), -1,
                                 {.path = path, .size = {900, 0}, .scale = 1}));
  const QImage image(path);
  EXPECT_EQ(image.size(), QSize(900, 320));
  const Theme& theme = theme_of(ThemeKind::light);
  int caption = 0;  // the verdict stands above the figures, in its colour
  for (int y = 0; y < 28; ++y) {
    for (int x = 0; x < 120; ++x) caption += image.pixelColor(x, y) == theme.divergence ? 1 : 0;
  }
  EXPECT_GT(caption, 20);
  for (const QColor& colour : {theme.side_a, theme.side_b}) {  // rates of both sides
    int found = 0;
    for (int y = 0; y < image.height(); ++y) {
      for (int x = 450; x < image.width(); ++x) found += image.pixelColor(x, y) == colour ? 1 : 0;
    }
    EXPECT_GT(found, 0) << colour.name().toStdString();
  }
  for (const auto& [format, magic] : {std::pair{"svg", "<?xml"}, {"pdf", "%PDF"}}) {
    const QString other = m_folder.filePath(QLatin1String("p.") + QLatin1String(format));
    ASSERT_TRUE(render_populations(window.responses().population(), 0,
                                   {.format = QLatin1String(format), .path = other}));
    QFile file(other);
    ASSERT_TRUE(file.open(QIODevice::ReadOnly));
    EXPECT_TRUE(file.readAll().startsWith(magic));
  }
}

}  // namespace
}  // namespace driftscope::ui
