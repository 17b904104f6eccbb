// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/compare/synthetic.h"

namespace driftscope {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Percentile, InterpolatesBetweenOrderStatistics) {
  const std::vector<double> values{1.0, 2.0, 4.0, 8.0};
  EXPECT_EQ(percentile(values, 0.0), 1.0);
  EXPECT_EQ(percentile(values, 0.5), 3.0);         // position 1.5
  EXPECT_DOUBLE_EQ(percentile(values, 0.9), 6.8);  // position 2.7: 4 + 0.7 * 4
  EXPECT_EQ(percentile(values, 1.0), 8.0);
  EXPECT_EQ(percentile(std::vector<double>{5.0}, 0.99), 5.0);
  EXPECT_TRUE(std::isnan(percentile({}, 0.5)));
}

TEST(Percentile, InfinitiesDoNotCancel) {
  EXPECT_EQ(percentile(std::vector<double>{1.0, kInf, kInf}, 0.75), kInf);
  EXPECT_EQ(percentile(std::vector<double>{1.0, kInf}, 0.0), 1.0);
}

TEST(RunStatistic, ByHand) {
  const std::vector<double> values{3.0, kNan, 7.0, 1.0, 7.0, 2.0};
  const std::vector<std::int64_t> steps{10, 11, 12, 13, 14, 15};
  const RunStatistic statistic = run_statistic("max_abs", values, steps);
  EXPECT_EQ(statistic.metric, "max_abs");
  EXPECT_EQ(statistic.count, 5);
  EXPECT_EQ(statistic.sum, 20.0);
  EXPECT_EQ(statistic.mean, 4.0);
  // squares about the mean: 1 + 9 + 9 + 9 + 4 = 32; sd^2 = 8; over 5 steps
  EXPECT_EQ(statistic.standard_error, std::sqrt(32.0 / 4.0 / 5.0));
  EXPECT_EQ(statistic.p50, 3.0);
  EXPECT_NEAR(statistic.p90, 7.0, 1e-15);
  EXPECT_EQ(statistic.maximum, 7.0);
  EXPECT_EQ(statistic.minimum, 1.0);
  EXPECT_EQ(statistic.argmax_step, 12);  // the first of the two
}

TEST(RunStatistic, PercentilesOfAThousand) {
  std::vector<double> values(1001);
  std::vector<std::int64_t> steps(1001);
  std::iota(values.begin(), values.end(), 0.0);  // position i holds i
  std::iota(steps.begin(), steps.end(), 0);
  const RunStatistic statistic = run_statistic("rms", values, steps);
  EXPECT_NEAR(statistic.p50, 500.0, 1e-9);
  EXPECT_NEAR(statistic.p90, 900.0, 1e-9);
  EXPECT_NEAR(statistic.p95, 950.0, 1e-9);
  EXPECT_NEAR(statistic.p99, 990.0, 1e-9);
  EXPECT_NEAR(statistic.p999, 999.0, 1e-9);
}

TEST(RunStatistic, OfNothingIsUndefined) {
  const std::vector<double> values{kNan, kNan};
  const std::vector<std::int64_t> steps{0, 1};
  const RunStatistic statistic = run_statistic("rms", values, steps);
  EXPECT_EQ(statistic.count, 0);
  EXPECT_EQ(statistic.argmax_step, -1);
  EXPECT_TRUE(std::isnan(statistic.mean));
  EXPECT_TRUE(std::isnan(statistic.maximum));
}

TEST(DriftExcess, IsTheRatioToTheMedianStep) {
  test::Script script;
  script.facts = test::facts_of(2, 3);
  // centred_rms of (d, -d) is d: 1/8, 1/4, 1 around a median of 1/4.
  script.add({8.0F, 0.0F}, {8.125F, -0.125F});
  script.add({8.0F, 0.0F}, {8.25F, -0.25F});
  script.add({8.0F, 0.0F}, {9.0F, -1.0F});
  const ComparisonPointer comparison = script.run();
  EXPECT_EQ(metric_column(*comparison, "drift_excess"), (std::vector<double>{0.5, 1.0, 4.0}));
}

TEST(DriftExcess, WithoutUsualDriftAnyDriftIsInfinitelyMuch) {
  test::Script script;
  script.facts = test::facts_of(2, 3);
  script.add({8.0F, 0.0F}, {8.0F, 0.0F});
  script.add({8.0F, 0.0F}, {8.25F, -0.25F});
  script.add({8.0F, 0.0F}, {8.0F, 0.0F});
  EXPECT_EQ(metric_column(*script.run(), "drift_excess"), (std::vector<double>{0.0, kInf, 0.0}));
}

TEST(DriftExcess, WhereMostStepsHaveNoDriftTheOthersAreTheMeasure) {
  EXPECT_EQ(usual_drift({0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 2.0}), 2.0);
  EXPECT_EQ(usual_drift({0.0, 0.0, 0.0, 1.0, 3.0}), 0.0);  // two are too few to say what is usual
  EXPECT_EQ(usual_drift({0.0, 1.0, 3.0}), 1.0);
  EXPECT_EQ(usual_drift({0.0, kNan, 0.0}), 0.0);
  EXPECT_TRUE(std::isnan(usual_drift({})));
}

TEST(DriftExcess, SharedStepsAreNeverWrittenTo) {
  test::Script script;
  script.facts = test::facts_of(2, 1);
  script.add({8.0F, 0.0F}, {8.25F, -0.25F});
  const auto builder = script.builder();
  const auto before = builder->step(0);
  (void)builder->snapshot(TraceState::complete);
  EXPECT_TRUE(std::isnan(metric_value(before->metrics, "drift_excess")));
  EXPECT_EQ(builder->step(0), before);
}

}  // namespace
}  // namespace driftscope
