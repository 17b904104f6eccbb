// SPDX-License-Identifier: GPL-3.0-or-later
// Plots as files: every plot and format, a hot cell in the picture, clear errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QFile>
#include <QImage>
#include <QTemporaryDir>

#include "tests/ui/synthetic_comparison.h"
#include "ui/plots/plot_catalogue.h"
#include "ui/plots/render.h"

namespace driftscope::ui {
namespace {

class Render : public testing::Test {
 protected:
  QByteArray bytes(const QString& path) {
    QFile file(path);
    EXPECT_TRUE(file.open(QIODevice::ReadOnly)) << path.toStdString();
    return file.readAll();
  }
  QTemporaryDir m_folder;
  std::shared_ptr<Comparison> m_comparison = synthetic_comparison({.steps = 64, .divergence = 20});
};

TEST_F(Render, EveryPlotInEveryFormat) {
  std::vector<QString> ids{QStringLiteral("overview")};
  for (const PlotInfo& info : plot_catalogue()) {
    ids.push_back(QString::fromUtf8(info.id.data(), static_cast<qsizetype>(info.id.size())));
  }
  for (const QString& id : ids) {
    for (const auto& [format, magic] :
         {std::pair{"png", "\x89PNG"}, {"svg", "<?xml"}, {"pdf", "%PDF"}}) {
      const QString path = m_folder.filePath(id + QLatin1Char('.') + QLatin1String(format));
      const auto done =
          render_plot(m_comparison, {.plot = id, .format = QLatin1String(format), .path = path});
      ASSERT_TRUE(done.has_value()) << done.error().message;
      EXPECT_TRUE(bytes(path).startsWith(magic)) << path.toStdString();
    }
  }
}

TEST_F(Render, PngHasTwoPixelsPerUnit) {
  const QString path = m_folder.filePath(QStringLiteral("plot.png"));
  ASSERT_TRUE(render_plot(m_comparison,
                          {.plot = QStringLiteral("margins"), .path = path, .size = {800, 300}})
                  .has_value());
  EXPECT_EQ(QImage(path).size(), QSize(1600, 600));
}

TEST_F(Render, SamePictureTwice) {
  const QString one = m_folder.filePath(QStringLiteral("one.png"));
  const QString two = m_folder.filePath(QStringLiteral("two.png"));
  ASSERT_TRUE(render_plot(m_comparison, {.path = one}).has_value());
  ASSERT_TRUE(render_plot(m_comparison, {.path = two}).has_value());
  EXPECT_EQ(bytes(one), bytes(two));
}

// 131,072 steps on 700 pixels: the pooled picture still holds the hottest colour, and NaN its own.
TEST_F(Render, OneHotCellAndOneNanAreVisibleInTheHeatmap) {
  const std::int64_t steps = 131'072;
  Comparison c;
  const auto shared_row = step_row(0);
  c.steps.assign(static_cast<std::size_t>(steps), shared_row);
  for (int layer = 0; layer < 4; ++layer) {
    TapDrift tap{.spec = {.layer = layer, .operation = "l_out", .width = 1},
                 .max_abs = {},
                 .rms = {},
                 .relative_rms = {},
                 .max_ulp = {}};
    tap.relative_rms.assign(static_cast<std::size_t>(steps), 0.0);
    c.taps.push_back(tap);
  }
  c.taps[1].relative_rms[100] = 1e-7;
  c.taps[2].relative_rms[77'777] = 0.5;
  c.taps[3].relative_rms[90'000] = std::numeric_limits<double>::quiet_NaN();
  const QString path = m_folder.filePath(QStringLiteral("heat.png"));
  ASSERT_TRUE(
      render_plot(std::make_shared<const Comparison>(std::move(c)),
                  {.plot = QStringLiteral("layer_heatmap"), .path = path, .size = {700, 240}})
          .has_value());
  const QImage image(path);
  const Theme& theme = theme_of(ThemeKind::light);
  int hot = 0, broken = 0;
  for (int y = 60; y < image.height(); ++y) {  // below the legend
    for (int x = 0; x < image.width(); ++x) {
      hot += image.pixelColor(x, y) == ramp_colour(theme, 1.0) ? 1 : 0;
      broken += image.pixelColor(x, y) == theme.non_finite ? 1 : 0;
    }
  }
  EXPECT_GT(hot, 0);
  EXPECT_GT(broken, 0);
}

TEST_F(Render, ErrorsNameWhatToDo) {
  const auto error = [&](const RenderRequest& request) {
    return render_plot(m_comparison, request).error();
  };
  EXPECT_THAT(error({.plot = QStringLiteral("pie"), .path = m_folder.filePath("x.png")}).message,
              testing::HasSubstr("overview, logit_difference"));
  EXPECT_EQ(error({.plot = QStringLiteral("pie"), .path = m_folder.filePath("x.png")}).kind,
            ErrorKind::usage);
  EXPECT_EQ(error({.format = QStringLiteral("gif"), .path = m_folder.filePath("x.gif")}).kind,
            ErrorKind::usage);
  EXPECT_EQ(error({.path = QStringLiteral("/no/such/folder/x.png")}).kind, ErrorKind::output);
  EXPECT_EQ(error({.path = m_folder.filePath("x.png"), .size = {10, 10}}).kind, ErrorKind::usage);
  const Error large = error({.path = m_folder.filePath("x.png"), .size = {16000, 16000}});
  EXPECT_EQ(large.kind, ErrorKind::usage);
  EXPECT_THAT(large.message, testing::HasSubstr("200 to 5000"));
  m_comparison->taps.clear();
  EXPECT_EQ(
      error({.plot = QStringLiteral("layer_heatmap"), .path = m_folder.filePath("x.png")}).kind,
      ErrorKind::inconclusive);
}

TEST_F(Render, AnEmptyComparisonIsDrawnAndSaysSo) {
  const QString path = m_folder.filePath(QStringLiteral("empty.svg"));
  ASSERT_TRUE(render_plot(std::make_shared<const Comparison>(), {.plot = QStringLiteral("margins"),
                                                                 .format = QStringLiteral("svg"),
                                                                 .path = path})
                  .has_value());
  EXPECT_TRUE(bytes(path).contains("No step of A and B"));
}

}  // namespace
}  // namespace driftscope::ui
