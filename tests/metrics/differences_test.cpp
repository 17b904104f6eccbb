// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "tests/metrics/measured.h"

namespace driftscope {
namespace {

using test::kInf;
using test::kNan;
using test::measure;
using test::metric;

// d = 0.5, 0, -2, 0; mean(d) = -0.375
const std::vector<float> kA{1.0F, 2.0F, -3.0F, 0.0F};
const std::vector<float> kB{1.5F, 2.0F, -5.0F, 0.0F};

TEST(Differences, SizesByHand) {
  const StepMeasurement measured = measure(kA, kB);
  EXPECT_EQ(metric(measured, "max_abs"), 2.0);
  EXPECT_EQ(measured.metrics.max_abs_token, TokenId{2});
  EXPECT_EQ(metric(measured, "mean_abs"), 0.625);
  EXPECT_EQ(metric(measured, "rms"), std::sqrt(4.25 / 4.0));
  // 0.875^2 + 0.375^2 + 1.625^2 + 0.375^2 = 3.6875
  EXPECT_EQ(metric(measured, "centred_rms"), std::sqrt(3.6875 / 4.0));
  EXPECT_EQ(metric(measured, "max_rel"), 0.4);  // 2 / 5, above 0.5 / 1.5
  EXPECT_EQ(metric(measured, "different_entries"), 2.0);
  EXPECT_EQ(metric(measured, "logit_rms"), std::sqrt(14.0 / 4.0));
}

TEST(Differences, CosineByHand) {
  // a.b = 1.5 + 4 + 15, |a|^2 = 14, |b|^2 = 31.25
  EXPECT_NEAR(metric(kA, kB, "cosine"), 1.0 - 20.5 / std::sqrt(14.0 * 31.25), 1e-15);
  EXPECT_NEAR(metric({1.0F, 0.0F}, {0.0F, 3.0F}, "cosine"), 1.0, 1e-15);
  EXPECT_NEAR(metric({1.0F, -2.0F}, {-2.0F, 4.0F}, "cosine"), 2.0, 1e-15);
  EXPECT_EQ(metric({0.0F, 0.0F}, {0.0F, 0.0F}, "cosine"), 0.0);
  EXPECT_TRUE(std::isnan(metric({0.0F, 0.0F}, {0.0F, 1.0F}, "cosine")));
}

TEST(Differences, CosineKeepsItsDigitsNearZero) {
  // a = (1, 0), b = (1, e): 1 - cos = 1 - 1 / sqrt(1 + e^2) = e^2 / 2 - …, far below the spacing of
  // numbers near 1 for e = 2^-30.
  EXPECT_NEAR(metric({1.0F, 0.0F}, {1.0F, 0x1p-30F}, "cosine") / 0x1p-61, 1.0, 1e-9);
}

TEST(Differences, UnitsInTheLastPlace) {
  const float next = std::nextafterf(1.0F, 2.0F);
  EXPECT_EQ(metric({1.0F, 0.0F}, {next, 0.0F}, "max_ulp"), 1.0);
  EXPECT_EQ(metric({1.0F, 0.0F}, {2.0F, -0.0F}, "max_ulp"), 8388608.0);  // 2^23 steps per octave
  EXPECT_EQ(metric({0.0F, 1.0F}, {-0.0F, 1.0F}, "max_ulp"), 0.0);
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(metric({tiny, 1.0F}, {-tiny, 1.0F}, "max_ulp"), 2.0);
  const float largest = std::numeric_limits<float>::max();
  // From -max to +max: twice the 0x7f7fffff steps from 0 to max; beyond 32 bits.
  EXPECT_EQ(metric({-largest, 0.0F}, {largest, 0.0F}, "max_ulp"), 2.0 * 0x7f7fffff);
}

TEST(Differences, SignOfZeroCountsAsOtherBitsOnly) {
  const StepMeasurement measured = measure({0.0F, 1.0F, 2.0F}, {-0.0F, 1.0F, 2.0F});
  EXPECT_EQ(metric(measured, "different_entries"), 1.0);
  EXPECT_EQ(metric(measured, "max_abs"), 0.0);
  EXPECT_EQ(metric(measured, "max_rel"), 0.0);
}

TEST(Differences, WidenedBeforeSubtracting) {
  // In f32 the difference 1 - 2^-24 would round to 1.
  const float small = 0x1p-25F;
  EXPECT_EQ(metric({small, 0.0F}, {1.0F, 0.0F}, "max_abs"), 1.0 - 0x1p-25);
}

TEST(Differences, CommonShiftIsNoCentredDrift) {
  const StepMeasurement measured = measure({1.0F, 2.0F, 3.0F, 4.0F}, {1.25F, 2.25F, 3.25F, 4.25F});
  EXPECT_EQ(metric(measured, "rms"), 0.25);
  EXPECT_EQ(metric(measured, "centred_rms"), 0.0);
}

TEST(Differences, FirstOfEqualMaximaIsNamed) {
  EXPECT_EQ(measure({0.0F, 0.0F, 0.0F}, {0.0F, -1.0F, 1.0F}).metrics.max_abs_token, TokenId{1});
}

TEST(Differences, SumsAreInTheStatedOrder) {
  // The definition of lane_sum.h, spelled out: 16 lanes, then halves.
  std::mt19937 random(7);
  const std::vector<float> a = test::random_row(random, 1003);
  const std::vector<float> b = test::drifted(random, a, 0.01F);
  std::array<volatile double, 16> lanes{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    lanes[i % 16] = lanes[i % 16] + std::abs(double{b[i]} - double{a[i]});
  }
  for (std::size_t distance = 8; distance > 0; distance /= 2) {
    for (std::size_t i = 0; i < distance; ++i) lanes[i] = lanes[i] + lanes[i + distance];
  }
  EXPECT_EQ(metric(a, b, "mean_abs"), lanes[0] / 1003.0);
}

TEST(Health, EntriesThatAreNotFiniteAreLeftOutAndCounted) {
  const StepMeasurement measured =
      measure({1.0F, kNan, 3.0F, kInf, -kInf, 2.0F}, {1.5F, 2.0F, kNan, kInf, -kInf, -kInf});
  const RowHealth expected{
      .nan_a = 1, .nan_b = 1, .infinite_a = 2, .infinite_b = 3, .unmatched = 3};
  EXPECT_EQ(measured.metrics.health, expected);
  EXPECT_EQ(metric(measured, "max_abs"), 0.5);
  EXPECT_EQ(metric(measured, "mean_abs"), 0.5);  // of the one entry that is finite in both
  EXPECT_EQ(metric(measured, "different_entries"), 4.0);
  EXPECT_EQ(metric(measured, "kl_ab"), 0.0);  // one token left: p = q = 1
}

TEST(Health, TokensKeepTheirIdsWhenEntriesAreLeftOut) {
  const StepMeasurement measured =
      measure({kNan, 0.0F, 0.0F}, {0.0F, 0.0F, 1.0F}, {.emitted = TokenId{2}});
  EXPECT_EQ(measured.metrics.max_abs_token, TokenId{2});
  // p = (1/2, 1/2), q = (1, e) / (1 + e)
  EXPECT_NEAR(metric(measured, "dlogp"), std::log(2.0 * std::exp(1.0) / (1.0 + std::exp(1.0))),
              1e-15);
}

TEST(Health, NothingFiniteLeavesDifferencesUndefined) {
  const StepMeasurement measured = measure({kNan, kNan}, {1.0F, 2.0F});
  for (const auto* id :
       {"max_abs", "rms", "centred_rms", "max_ulp", "cosine", "kl_ab", "js", "dlogp"}) {
    EXPECT_TRUE(std::isnan(metric(measured, id))) << id;
  }
}

TEST(Health, EmittedTokenThatIsNotFiniteHasNoProbability) {
  const StepMeasurement measured =
      measure({kNan, 0.0F, 0.0F}, {0.0F, 0.0F, 1.0F}, {.emitted = TokenId{0}});
  EXPECT_TRUE(std::isnan(metric(measured, "dlogp")));
  EXPECT_FALSE(std::isnan(metric(measured, "kl_ab")));
}

}  // namespace
}  // namespace driftscope
