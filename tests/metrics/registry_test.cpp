// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <thread>

#include "tests/metrics/measured.h"

namespace driftscope {
namespace {

using test::kInf;
using test::kNan;
using test::measure;

TEST(Registry, HoldsEveryMetricOfTheDefinition) {
  for (const auto* id :
       {"max_abs",      "mean_abs",   "rms",          "max_rel",      "centred_rms",
        "max_ulp",      "cosine",     "kl_ab",        "kl_ba",        "js",
        "tv",           "top1_match", "topk_overlap", "topk_kendall", "rbo",
        "rank_flips",   "margin_a",   "margin_b",     "headroom",     "tie_ulps",
        "drift_excess", "dlogp",      "k1",           "k3",           "importance_ratio",
        "entropy_a",    "entropy_b"}) {
    EXPECT_TRUE(metric_index(id)) << id;
  }
  EXPECT_FALSE(metric_index("no_such_metric"));
}

TEST(Registry, EveryRowIsDescribedOnce) {
  std::set<std::string_view> ids;
  for (const MetricSpec& spec : metric_registry()) {
    EXPECT_TRUE(ids.insert(spec.id).second) << spec.id;
    EXPECT_FALSE(spec.unit.empty()) << spec.id;
    EXPECT_FALSE(spec.title.empty()) << spec.id;
    EXPECT_FALSE(spec.definition.empty()) << spec.id;
  }
}

// A against A: every drift exactly 0, every agreement exactly 1, whatever the row holds.
void expect_null(const std::vector<float>& row, std::int64_t top_k) {
  const StepMeasurement measured = measure(row, row, {.emitted = TokenId{1}, .top_k = top_k});
  ASSERT_EQ(measured.metrics.values.size(), metric_registry().size());
  EXPECT_TRUE(measured.flips.empty());
  for (std::size_t i = 0; i < metric_registry().size(); ++i) {
    const MetricSpec& spec = metric_registry()[i];
    const double value = measured.metrics.values[i];
    if (spec.needs_run) continue;
    if (spec.direction == MetricDirection::drift) {
      EXPECT_EQ(value, 0.0) << spec.id;
      EXPECT_EQ(spec.null_value, 0.0) << spec.id;
    }
    if (spec.direction == MetricDirection::agreement) {
      EXPECT_EQ(value, 1.0) << spec.id;
      EXPECT_EQ(spec.null_value, 1.0) << spec.id;
    }
    if (!std::isnan(spec.null_value)) {
      EXPECT_EQ(value, spec.null_value) << spec.id;
    }
  }
}

TEST(Registry, IdenticalRowsAreExactlyNull) {
  std::mt19937 random(1);
  for (const std::size_t size : {2U, 5U, 16U, 17U, 1000U, 32003U}) {
    for (const std::int64_t top_k : {1, 2, 10, 50}) {
      expect_null(test::random_row(random, size), top_k);
      expect_null(test::random_row(random, size, 80.0F), top_k);
    }
  }
  expect_null(std::vector<float>(100, 0.0F), 10);
  expect_null({kNan, 1.0F, -kInf, 0.5F, kNan, 3.0F}, 3);
}

TEST(Registry, PlantedDifferenceIsFoundExactly) {
  std::mt19937 random(2);
  const std::vector<float> a = test::random_row(random, 5000);
  for (const std::size_t token : {0U, 15U, 16U, 4999U}) {
    std::vector<float> b = a;
    b[token] = std::nextafterf(a[token], kInf);
    const StepMeasurement measured = measure(a, b);
    const double planted = double{b[token]} - double{a[token]};
    EXPECT_EQ(test::metric(measured, "max_abs"), planted);
    EXPECT_EQ(measured.metrics.max_abs_token, TokenId{static_cast<std::int32_t>(token)});
    EXPECT_EQ(test::metric(measured, "max_ulp"), 1.0);
    EXPECT_EQ(test::metric(measured, "different_entries"), 1.0);
    EXPECT_EQ(test::metric(measured, "mean_abs"), planted / 5000.0);
  }
}

TEST(Registry, TheSameBitsOnEveryThread) {
  std::mt19937 random(4);
  const std::vector<float> a = test::random_row(random, 20011);
  const std::vector<float> b = test::drifted(random, a, 0.02F);
  const StepMetrics here = measure(a, b).metrics;
  StepMetrics there;
  std::thread worker([&] {
    (void)measure(b, a);  // leaves the thread's scratch memory filled with something else
    there = measure(a, b).metrics;
  });
  worker.join();
  for (std::size_t i = 0; i < here.values.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(here.values[i]),
              std::bit_cast<std::uint64_t>(there.values[i]))
        << metric_registry()[i].id;
  }
}

TEST(Registry, ValuesAreFoundById) {
  const StepMetrics metrics = measure({1.0F, 2.0F}, {1.0F, 4.0F}).metrics;
  EXPECT_EQ(metric_value(metrics, "max_abs"), 2.0);
  EXPECT_TRUE(std::isnan(metric_value(metrics, "no_such_metric")));
  EXPECT_TRUE(std::isnan(metric_value(StepMetrics{}, "max_abs")));
}

}  // namespace
}  // namespace driftscope
