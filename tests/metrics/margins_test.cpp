// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/metrics/measured.h"

namespace driftscope {
namespace {

using test::kInf;
using test::kNan;
using test::measure;
using test::metric;

TEST(Margins, ByHand) {
  // d = 0.25, 0.5, 0: the second token gains 0.25 on the first, against a margin of 0.5.
  const StepMeasurement measured =
      measure({20.0F, 19.5F, 1.0F}, {20.25F, 20.0F, 1.0F}, {.dtype = Dtype::bf16});
  EXPECT_EQ(metric(measured, "margin_a"), 0.5);
  EXPECT_EQ(metric(measured, "margin_b"), 0.25);
  EXPECT_EQ(metric(measured, "headroom"), 2.0);
  EXPECT_EQ(metric(measured, "pair_drift"), 0.25);
  EXPECT_EQ(metric(measured, "tie_ulps"), 4.0);  // one bf16 unit is 0.125 in [16, 32)
}

TEST(Margins, HeadroomIsInfiniteWhereNothingGainsOnTheBest) {
  EXPECT_EQ(metric({2.0F, 1.0F}, {3.0F, 1.5F}, "headroom"), static_cast<double>(kInf));
  EXPECT_EQ(metric({2.0F, 1.0F}, {2.0F, 1.0F}, "headroom"), static_cast<double>(kInf));
}

TEST(Margins, HeadroomLooksAtEveryToken) {
  // The last of the list gains 8 on the best: 1 / 8.
  EXPECT_EQ(metric({2.0F, 1.0F, -9.0F}, {2.0F, 1.0F, -1.0F}, "headroom"), 0.125);
}

TEST(Margins, EveryFlipHasHeadroomOfOneOrLess) {
  std::mt19937 random(17);
  int flips = 0;
  for (int round = 0; round < 500; ++round) {
    const std::vector<float> a = test::random_row(random, 30, 1.0F);
    const std::vector<float> b = test::drifted(random, a, 0.2F);
    const StepMeasurement measured = measure(a, b);
    if (metric(measured, "top1_match") == 1.0) continue;
    ++flips;
    EXPECT_LE(metric(measured, "headroom"), 1.0);
  }
  EXPECT_GT(flips, 0);
}

TEST(Margins, WorkWhereOneTokenIsLookedAt) {
  EXPECT_EQ(metric({3.0F, 1.0F}, {3.0F, 1.0F}, "margin_a", {.top_k = 1}), 2.0);
  EXPECT_TRUE(std::isnan(metric({3.0F}, {3.0F}, "margin_a")));
  EXPECT_TRUE(std::isnan(metric({3.0F, kNan}, {3.0F, 1.0F}, "margin_a")));
}

TEST(Margins, UnitInTheLastPlaceOfEveryType) {
  EXPECT_EQ(unit_in_last_place(Dtype::bf16, 16.0), 0.125);
  EXPECT_EQ(unit_in_last_place(Dtype::bf16, -31.9), 0.125);
  EXPECT_EQ(unit_in_last_place(Dtype::bf16, 32.0), 0.25);
  EXPECT_EQ(unit_in_last_place(Dtype::bf16, 15.9), 0.0625);
  EXPECT_EQ(unit_in_last_place(Dtype::f16, 1.0), 0x1p-10);
  EXPECT_EQ(unit_in_last_place(Dtype::f32, 1.0), 0x1p-23);
  EXPECT_EQ(unit_in_last_place(Dtype::f64, 1.0), 0x1p-52);
  // Subnormal numbers are spaced as the smallest normal ones.
  EXPECT_EQ(unit_in_last_place(Dtype::f32, 0.0), 0x1p-149);
  EXPECT_EQ(unit_in_last_place(Dtype::bf16, 0.0), 0x1p-133);
  EXPECT_EQ(unit_in_last_place(Dtype::f16, 0x1p-20), 0x1p-24);
  EXPECT_TRUE(std::isnan(unit_in_last_place(Dtype::f32, static_cast<double>(kInf))));
}

}  // namespace
}  // namespace driftscope
