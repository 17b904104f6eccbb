// SPDX-License-Identifier: GPL-3.0-or-later
// The main window on comparisons made by hand: what every view shows, keys, axes, themes, pictures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAction>
#include <QApplication>
#include <QDir>
#include <QDockWidget>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSet>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>

#include "engine/config/knob.h"
#include "tests/ui/synthetic_comparison.h"
#include "ui/shell/main_window.h"
#include "ui/views/inspector.h"
#include "ui/views/plot_stack.h"
#include "ui/views/table_view.h"
#include "ui/views/token_ribbon_view.h"
#include "ui/views/verdict_bar.h"

namespace driftscope::ui {
namespace {

template <class Widget>
Widget& child(QWidget& parent, const char* name) {
  auto* found = parent.findChild<Widget*>(QLatin1String(name));
  EXPECT_NE(found, nullptr) << name;
  return *found;
}

class Window : public testing::Test {
 protected:
  void SetUp() override {
    window.resize(1280, 800);
    window.show();
    child<QDockWidget>(window, "dock_run_panel").hide();
    QApplication::processEvents();
  }
  void TearDown() override { apply_theme(ThemeKind::light); }
  void show(const std::shared_ptr<Comparison>& comparison) {
    window.show_comparison(comparison, true);
    QApplication::processEvents();
  }
  PlotStack& stack() { return child<PlotStack>(window, "plot_stack"); }
  MainWindow window{nullptr};
};

TEST_F(Window, ShowsTheVerdictAndStartsAtTheDivergence) {
  show(synthetic_comparison({.steps = 48, .divergence = 20}));
  EXPECT_EQ(window.selected_step(), 20);
  const auto& verdict = child<VerdictBar>(window, "verdict_bar");
  EXPECT_EQ(verdict.summary().tier, QStringLiteral("DIFFERENT"));
  EXPECT_THAT(verdict.accessibleDescription().toStdString(), testing::HasSubstr("step 20"));
  const auto& inspector = child<TopKInspector>(window, "inspector");
  EXPECT_THAT(inspector.heading().toStdString(), testing::HasSubstr("Step 20"));
  EXPECT_EQ(child<TokenRibbonView>(window, "token_ribbons").selected_step(), 20);
}

TEST_F(Window, KeysNavigate) {
  show(synthetic_comparison({.steps = 48, .divergence = 20}));  // flips at 20, 29, 38, 47
  QTest::keyClick(&window, Qt::Key_N);
  EXPECT_EQ(window.selected_step(), 29);
  QTest::keyClick(&window, Qt::Key_N);
  EXPECT_EQ(window.selected_step(), 38);
  QTest::keyClick(&window, Qt::Key_P);
  EXPECT_EQ(window.selected_step(), 29);
  QTest::keyClick(&window, Qt::Key_End);
  EXPECT_EQ(window.selected_step(), 47);
  QTest::keyClick(&window, Qt::Key_N);  // none further
  EXPECT_EQ(window.selected_step(), 47);
  QTest::keyClick(&window, Qt::Key_Home);
  EXPECT_EQ(window.selected_step(), 0);
  QTest::keyClick(&window, Qt::Key_Right);
  EXPECT_EQ(window.selected_step(), 1);
  QTest::keyClick(&window, Qt::Key_D);
  EXPECT_EQ(window.selected_step(), 20);
}

TEST_F(Window, StepAxesAlignAndZoomIsShared) {
  show(synthetic_comparison({.steps = 48, .divergence = 20}));
  QSet<int> lefts;
  for (const StepPlot* plot : stack().plots()) {
    EXPECT_TRUE(plot->isVisible()) << plot->id().toStdString();
    lefts << plot->axis_left();
  }
  EXPECT_EQ(lefts.size(), 1);
  QTest::keyClick(&window, Qt::Key_Plus);
  EXPECT_LT(stack().range_upper() - stack().range_lower(), 25.0);
  for (const StepPlot* plot : stack().plots()) {
    EXPECT_EQ(plot->range_lower(), stack().range_lower());
    EXPECT_EQ(plot->range_upper(), stack().range_upper());
  }
  const double lower = stack().range_lower();
  window.show_comparison(synthetic_comparison({.steps = 48, .divergence = 20}), false);
  EXPECT_EQ(stack().range_lower(), lower);  // zoom survives new data
  QTest::keyClick(&window, Qt::Key_0);
  EXPECT_EQ(stack().range_lower(), -0.5);
  EXPECT_EQ(stack().range_upper(), 47.5);
}

TEST_F(Window, HeatmapWithoutTapsIsAStripThatSaysWhatToDo) {
  show(synthetic_comparison({.taps = false}));
  const auto& heat = child<StepPlot>(window, "plot_layer_heatmap");
  EXPECT_TRUE(heat.isVisible());
  EXPECT_LE(heat.height(), 70);
  const auto* canvas = heat.findChild<QWidget*>();
  EXPECT_THAT(canvas->accessibleDescription().toStdString(),
              testing::HasSubstr("record with --taps layers"));
  show(synthetic_comparison({.taps = true}));
  EXPECT_GT(heat.height(), 70);
}

TEST_F(Window, TheSecondCursorShowsDifferencesFromItsStep) {
  show(synthetic_comparison({.steps = 48, .divergence = 20}));
  EXPECT_TRUE(window.delta_text().isEmpty());
  window.select_step(10);
  QTest::keyClick(&window, Qt::Key_M);
  EXPECT_EQ(window.anchor_step(), 10);
  QTest::keyClick(&window, Qt::Key_Right);
  EXPECT_THAT(window.delta_text().toStdString(), testing::StartsWith("steps 10 → 11 (Δ 1)"));
  for (const StepPlot* plot : stack().plots()) EXPECT_EQ(plot->anchor_step(), 10);
  StepPlot& plot = *stack().plots()[0];
  const double width = plot.width() - plot.axis_left() - 14;
  const int x = plot.axis_left() + static_cast<int>((30 + 0.5) / 48.0 * width);
  QTest::mouseClick(plot.findChild<QWidget*>(), Qt::LeftButton, Qt::ShiftModifier,
                    QPoint(x, plot.height() / 2));
  EXPECT_EQ(window.anchor_step(), 30);
  EXPECT_EQ(window.selected_step(), 11);
  QTest::keyClick(&window, Qt::Key_Escape);
  EXPECT_TRUE(window.delta_text().isEmpty());
}

TEST_F(Window, TheHeadlineStandsBelowTheBadgeWhereThereIsLittleRoom) {
  child<QDockWidget>(window, "dock_run_panel").show();
  show(synthetic_comparison({.steps = 48, .divergence = 20}));
  const auto& bar = child<VerdictBar>(window, "verdict_bar");
  ASSERT_LT(bar.width(), 500);
  for (const QLabel* label : bar.findChildren<QLabel*>()) {
    if (label->accessibleName() != QLatin1String("First divergence")) continue;
    EXPECT_GT(label->width(), bar.width() * 3 / 4);
    EXPECT_LE(label->height(), 2 * label->fontMetrics().lineSpacing() + 4);
  }
  EXPECT_THAT(child<QLabel>(window, "verdict_prompt").text().toStdString(),
              testing::HasSubstr("‘In the beginning’"));
}

TEST_F(Window, MetricNamesKeepTheirWidth) {
  show(synthetic_comparison({.steps = 48, .divergence = 20}));
  const auto& table = child<MetricPanel>(window, "metrics").table();
  EXPECT_GE(table.columnWidth(MetricTableModel::title), 180);
}

TEST_F(Window, TheFirstPageOffersWhereToBegin) {
  auto& welcome = child<QWidget>(window, "welcome_bar");
  EXPECT_TRUE(welcome.isVisible());
  child<QPushButton>(window, "welcome_run").click();
  EXPECT_TRUE(child<QDockWidget>(window, "dock_run_panel").isVisible());
  show(synthetic_comparison({}));
  EXPECT_FALSE(welcome.isVisible());
}

TEST_F(Window, StopNeedsARun) {
  auto& stop = child<QAction>(window, "run_stop");
  EXPECT_FALSE(stop.isEnabled());
  window.cancel_run();
  EXPECT_FALSE(window.state_text().contains(QLatin1String("Stopping")));
}

TEST_F(Window, EveryPlotHasItsOwnExport) {
  for (const StepPlot* plot : stack().plots()) {
    EXPECT_NE(window.findChild<QAction*>(QStringLiteral("export_") + plot->id()), nullptr);
  }
}

// The form beside a capture describes the capture's run, changed knobs included.
TEST_F(Window, OpeningACaptureFillsTheRunForm) {
  const QString capture = QStringLiteral(DRIFTSCOPE_SOURCE_DIR "/samples/captures/neighbours.h5");
  RunRequest other = window.run_panel().request();
  other.prompt = QStringLiteral("of another session");
  other.output = QStringLiteral("mine.h5");
  window.run_panel().set_request(other);
  QSignalSpy shown(&window, &MainWindow::capture_shown);
  window.open_capture(capture);
  ASSERT_TRUE(shown.wait(60000));
  const Comparison& c = *window.comparison();
  const RunRequest request = window.run_panel().request();
  EXPECT_EQ(request.prompt.toStdString(), c.prompt_text);
  EXPECT_EQ(request.steps, c.planned_steps);
  EXPECT_EQ(request.output, QStringLiteral("mine.h5"));
  EXPECT_TRUE(request.model.endsWith(QLatin1String("samples/model")));
  const auto knobs =
      std::count_if(c.envelope_difference.begin(), c.envelope_difference.end(),
                    [](const FieldDifference& d) { return d.field.starts_with("knob."); });
  EXPECT_EQ(
      static_cast<std::ptrdiff_t>(config_difference(request.config_a, request.config_b).size()),
      knobs);
  EXPECT_GT(knobs, 0);
}

TEST_F(Window, NanIsSaidInThePlotAndItsReadout) {
  show(synthetic_comparison({.steps = 48, .divergence = 20, .nan_step = 5}));
  const auto& plot = child<StepPlot>(window, "plot_logit_difference");
  EXPECT_THAT(plot.summary().toStdString(), testing::HasSubstr("1 with NaN"));
  EXPECT_THAT(plot.readout(5).toStdString(), testing::HasSubstr("NaN"));
  EXPECT_THAT(plot.readout(6).toStdString(), testing::Not(testing::HasSubstr("NaN")));
}

TEST_F(Window, RibbonDrawsOnlyWhatIsInView) {
  show(synthetic_comparison({.steps = 5000, .divergence = 20, .taps = false}));
  auto& ribbon = child<TokenRibbonView>(window, "token_ribbons");
  ribbon.viewport()->repaint();
  EXPECT_GT(ribbon.drawn_steps(), 5);
  EXPECT_LT(ribbon.drawn_steps(), 100);
  window.select_step(4000);  // scrolled into view
  bool seen = false;
  for (int x = 0; x < ribbon.viewport()->width(); x += 4) seen = seen || ribbon.step_at(x) == 4000;
  EXPECT_TRUE(seen);
}

TEST_F(Window, ClickInThePlotSelectsTheStep) {
  show(synthetic_comparison({.steps = 48, .divergence = 20}));
  StepPlot& plot = *stack().plots()[0];
  QWidget* canvas = plot.findChild<QWidget*>();
  const double width = plot.width() - plot.axis_left() - 14;
  const int x = plot.axis_left() + static_cast<int>((10 + 0.5) / 48.0 * width);
  QTest::mouseClick(canvas, Qt::LeftButton, {}, QPoint(x, plot.height() / 2));
  EXPECT_EQ(window.selected_step(), 10);
}

TEST_F(Window, EveryControlHasAnAccessibleName) {
  show(synthetic_comparison({}));
  for (const QWidget* widget : window.findChildren<QWidget*>()) {
    const bool control = qobject_cast<const QLineEdit*>(widget) != nullptr ||
                         qobject_cast<const QAbstractItemView*>(widget) != nullptr ||
                         qobject_cast<const QAbstractButton*>(widget) != nullptr;
    // Parts that Qt makes itself are named by their owner.
    if (!control || widget->objectName().startsWith(QLatin1String("qt_"))) continue;
    const auto* button = qobject_cast<const QAbstractButton*>(widget);
    const QString name = widget->accessibleName().isEmpty() && button != nullptr
                             ? button->text() + button->objectName()
                             : widget->accessibleName();
    const QString owner = widget->parentWidget()->metaObject()->className();
    if (owner.startsWith(QLatin1String("Q")) && owner != QLatin1String("QWidget")) continue;
    const bool part_of_table =
        qobject_cast<const QAbstractItemView*>(widget->parentWidget()) != nullptr;
    if (part_of_table) continue;
    EXPECT_FALSE(name.isEmpty()) << widget->metaObject()->className() << " in "
                                 << owner.toStdString();
  }
}

TEST_F(Window, EmptyPanesSayWhatToDo) {
  EXPECT_THAT(child<VerdictBar>(window, "verdict_bar").accessibleDescription().toStdString(),
              testing::HasSubstr("Open a capture"));
  EXPECT_GE(window.comparison() == nullptr, true);
  QTest::keyClick(&window, Qt::Key_N);  // nothing to go to
  EXPECT_EQ(window.selected_step(), -1);
}

TEST_F(Window, MissingCaptureIsOneClearLine) {
  window.open_capture(QStringLiteral("/no/such/file.h5"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window.last_error().isEmpty(); }));
  EXPECT_THAT(window.last_error().toStdString(), testing::HasSubstr("/no/such/file.h5"));
  EXPECT_FALSE(window.last_error().contains(QLatin1Char('\n')));
}

// Colours in a picture: a blank one has very few.
int colours(const QImage& image) {
  QSet<QRgb> seen;
  for (int y = 0; y < image.height(); y += 3) {
    for (int x = 0; x < image.width(); x += 3) seen << image.pixel(x, y);
  }
  return static_cast<int>(seen.size());
}

bool has_colour(const QImage& image, const QColor& colour) {
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      if (image.pixelColor(x, y) == colour) return true;
    }
  }
  return false;
}

struct Picture {
  const char* name;
  QSize size;
  ThemeKind theme;
};

class WindowPicture : public Window, public testing::WithParamInterface<Picture> {};

TEST_P(WindowPicture, IsNotBlankAndHoldsBothSides) {
  window.set_theme(GetParam().theme);
  window.resize(GetParam().size);
  show(synthetic_comparison({.steps = 64, .divergence = 20, .nan_step = 40}));
  QApplication::processEvents();
  const QImage image = window.grab().toImage();
  const QString folder = QStringLiteral(DRIFTSCOPE_BINARY_DIR "/tests/ui/pictures");
  QDir().mkpath(folder);
  image.save(folder + QLatin1Char('/') + QLatin1String(GetParam().name) + QStringLiteral(".png"));
  const Theme& theme = theme_of(GetParam().theme);
  EXPECT_EQ(image.size(), GetParam().size);
  EXPECT_GT(colours(image), 50);
  for (const QColor& colour : {theme.surface, theme.side_a, theme.side_b, theme.divergence}) {
    EXPECT_TRUE(has_colour(image, colour)) << colour.name().toStdString();
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, WindowPicture,
                         testing::Values(Picture{"small_light", {1280, 800}, ThemeKind::light},
                                         Picture{"small_dark", {1280, 800}, ThemeKind::dark},
                                         Picture{"large_light", {2560, 1440}, ThemeKind::light},
                                         Picture{"large_dark", {2560, 1440}, ThemeKind::dark}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace driftscope::ui
