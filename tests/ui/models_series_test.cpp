// SPDX-License-Identifier: GPL-3.0-or-later
// Series, scales, pyramids and the heat map: values from their definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/ui/synthetic_comparison.h"
#include "ui/models/heatmap.h"
#include "ui/models/margins.h"
#include "ui/models/rail_scale.h"
#include "ui/models/series.h"

namespace driftscope::ui {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(MetricValues, TakesTheColumnOfTheMetric) {
  const auto c = with_metric("rms", {1.5, 0.0, 2.5});
  EXPECT_EQ(metric_values(*c, "rms"), (StepValues{1.5, 0.0, 2.5}));
  EXPECT_TRUE(metric_values(*c, "no_such_metric").empty());
}

TEST(MinMaxPyramid, OneColumnPerStepWhereThereIsRoom) {
  const MinMaxPyramid pyramid({3.0, kNan, 1.0});
  const auto columns = pyramid.reduce(0, 2, 100);
  ASSERT_EQ(columns.size(), 3U);
  EXPECT_EQ(columns[0].maximum, 3.0);
  EXPECT_FALSE(columns[1].has_finite);
  EXPECT_TRUE(columns[1].has_nan);
  EXPECT_EQ(columns[2].first_step, 2);
}

// The oracle is the plain loop over the steps of each column.
TEST(MinMaxPyramid, AgreesWithAPlainLoopForAnyRangeAndWidth) {
  StepValues values;
  for (int i = 0; i < 1000; ++i) values.push_back(std::fmod(i * 37.0, 101.0) - 50.0);
  values[700] = kNan;
  values[701] = kInfinity;
  const MinMaxPyramid pyramid(values);
  for (const auto& [first, last] : {std::pair{0, 999}, {1, 998}, {3, 900}, {511, 770}, {37, 41}}) {
    for (const int width : {1, 3, 64, 333}) {
      std::int64_t expected_first = first;
      for (const ColumnRange& column : pyramid.reduce(first, last, width)) {
        ASSERT_EQ(column.first_step, expected_first);
        double low = kInfinity, high = -kInfinity;
        for (auto i = column.first_step; i <= column.last_step; ++i) {
          const double value = values[static_cast<std::size_t>(i)];
          if (!std::isfinite(value)) continue;
          low = std::min(low, value);
          high = std::max(high, value);
        }
        ASSERT_EQ(column.has_finite, low <= high);
        expected_first = column.last_step + 1;
        if (!column.has_finite) continue;
        ASSERT_EQ(column.minimum, low);
        ASSERT_EQ(column.maximum, high);
      }
      ASSERT_EQ(expected_first, last + 1);
    }
  }
}

TEST(MinMaxPyramid, NeverHidesOneNanInAMillion) {
  StepValues values(1'000'000, 1.0);
  values[654'321] = kNan;
  const auto columns = MinMaxPyramid(values).reduce(0, 999'999, 800);
  ASSERT_EQ(columns.size(), 800U);
  EXPECT_EQ(
      std::count_if(columns.begin(), columns.end(), [](const ColumnRange& c) { return c.has_nan; }),
      1);
}

TEST(RailScale, ZeroAndNanHaveRailsOutsideTheDecades) {
  const StepValues values{0.0, 0.002, 30.0, kNan};
  const RailScale scale({&values});
  EXPECT_DOUBLE_EQ(scale.coordinate(0.01), -2.0);
  EXPECT_LT(scale.coordinate(0.0), -3.0);  // below the decade of 0.002
  EXPECT_GT(scale.coordinate(kNan), 2.0);  // above the decade of 30
  EXPECT_EQ(scale.coordinate(kInfinity), scale.coordinate(kNan));
  EXPECT_LT(scale.lower(), scale.zero_rail());
  EXPECT_GT(scale.upper(), scale.non_finite_rail());
  EXPECT_EQ(scale.ticks().front().label, QStringLiteral("= 0"));
  EXPECT_EQ(scale.ticks().back().label, QStringLiteral("NaN, ∞"));
}

TEST(RailScale, NoRailWithoutAnythingOnIt) {
  const StepValues values{0.5, 2.0};
  const RailScale scale({&values});
  EXPECT_FALSE(scale.has_zero());
  EXPECT_FALSE(scale.has_non_finite());
  EXPECT_EQ(scale.ticks().front().label, QStringLiteral("0.1"));
}

TEST(Symlog, IsOddAndHasDecades) {
  EXPECT_EQ(symlog(0.0, 1e-3), 0.0);
  EXPECT_DOUBLE_EQ(symlog(0.999, 1e-3), 3.0);  // 1 + 999 = 1000
  EXPECT_EQ(symlog(-0.5, 1e-3), -symlog(0.5, 1e-3));
}

TEST(MarginSeries, PullIsMarginOverHeadroom) {
  auto c = with_metric("margin_a", {1.0, 2.0, 3.0});
  const std::vector<double> headroom{0.5, kInfinity, kNan};
  for (std::size_t i = 0; i < 3; ++i) {
    auto row = std::make_shared<StepComparison>(*c->steps[i]);
    set_metric(*row, "headroom", headroom[i]);
    c->steps[i] = row;
  }
  const MarginSeries series = margin_series(*c);
  EXPECT_EQ(series.pull[0], 2.0);  // the drift reaches twice the margin: a flip is possible
  EXPECT_EQ(series.pull[1], 0.0);
  EXPECT_TRUE(std::isnan(series.pull[2]));
}

std::shared_ptr<Comparison> heat(std::int64_t rows, std::int64_t steps, double value) {
  auto c = std::make_shared<Comparison>();
  for (std::int64_t row = 0; row < rows; ++row) {
    TapDrift tap{.spec = {.layer = static_cast<int>(row), .operation = "l_out", .width = 4},
                 .max_abs = {},
                 .rms = {},
                 .relative_rms = {},
                 .max_ulp = {}};
    tap.max_abs.assign(static_cast<std::size_t>(steps), value);
    c->taps.push_back(tap);
  }
  return c;
}

TEST(Heatmap, OneHotCellStaysVisibleAtEveryZoom) {
  auto c = heat(8, 131'072, 1e-6);
  c->taps[3].max_abs[77'777] = 5.0;
  const Heatmap map(*c, TapQuantity::max_abs);
  EXPECT_EQ(map.shade(5.0), 1.0);
  EXPECT_EQ(map.shade(1e-6), 0.0);
  for (const std::int64_t columns : {1, 7, 640, 1500, 4096, 131'072}) {
    const auto cells = map.pooled(0, 131'071, columns, 8);
    std::int64_t hot = 0;
    for (std::int64_t i = 0; i < columns; ++i) {
      const HeatCell& cell = cells[static_cast<std::size_t>(3 * columns + i)];
      if (cell.value != 5.0) continue;
      ++hot;
      const StepSpan span = column_span(0, 131'071, columns, i);
      EXPECT_LE(span.first, 77'777);
      EXPECT_GE(span.last, 77'777);
    }
    EXPECT_EQ(hot, 1) << columns << " columns";
  }
}

TEST(Heatmap, NonFiniteBeatsEveryValueAndZeroIsNotEmpty) {
  auto c = heat(2, 64, 0.0);
  c->taps[1].max_abs[10] = 1e30;
  c->taps[1].max_abs[11] = kNan;
  const Heatmap map(*c, TapQuantity::max_abs);
  const auto cells = map.pooled(0, 63, 1, 2);
  EXPECT_EQ(cells[0].kind, CellKind::zero);
  EXPECT_EQ(cells[1].kind, CellKind::non_finite);
  // Rows pool as well.
  EXPECT_EQ(map.pooled(0, 63, 1, 1)[0].kind, CellKind::non_finite);
  EXPECT_EQ(map.cell(0, 64).kind, CellKind::empty);
}

TEST(Heatmap, NamesPlacesForPeople) {
  EXPECT_EQ(tap_label({.layer = -1, .operation = "embd", .width = 1}), QStringLiteral("embedding"));
  EXPECT_EQ(tap_label({.layer = 4, .operation = "result_norm", .width = 1}),
            QStringLiteral("final norm"));
  EXPECT_EQ(tap_label({.layer = 3, .operation = "l_out", .width = 1}), QStringLiteral("layer 3"));
  EXPECT_EQ(tap_label({.layer = 3, .operation = "attn_out", .width = 1}),
            QStringLiteral("3 attn out"));
}

TEST(Heatmap, ShadeRisesWithTheValue) {
  auto c = heat(1, 3, 0.0);
  c->taps[0].max_abs = {1e-6, 1e-3, 1.0};
  const Heatmap map(*c, TapQuantity::max_abs);
  EXPECT_LT(map.shade(1e-6), map.shade(1e-3));
  EXPECT_LT(map.shade(1e-3), map.shade(1.0));
}

}  // namespace
}  // namespace driftscope::ui
