// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/metrics/measured.h"

namespace driftscope {
namespace {

using test::measure;
using test::metric;

// The definitions, word for word, in the widest type there is.
struct Definition {
  std::vector<long double> p, q;
  Definition(const std::vector<float>& a, const std::vector<float>& b)
      : p(softmax(a)), q(softmax(b)) {}
  static std::vector<long double> softmax(const std::vector<float>& row) {
    std::vector<long double> weights;
    long double sum = 0.0L;
    for (const float value : row) weights.push_back(std::exp(static_cast<long double>(value)));
    for (const long double weight : weights) sum += weight;
    for (long double& weight : weights) weight /= sum;
    return weights;
  }
  static long double kl(const std::vector<long double>& x, const std::vector<long double>& y) {
    long double sum = 0.0L;
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * std::log(x[i] / y[i]);
    return sum;
  }
  [[nodiscard]] long double js() const {
    std::vector<long double> middle;
    for (std::size_t i = 0; i < p.size(); ++i) middle.push_back((p[i] + q[i]) / 2.0L);
    return (kl(p, middle) + kl(q, middle)) / 2.0L;
  }
  [[nodiscard]] long double tv() const {
    long double sum = 0.0L;
    for (std::size_t i = 0; i < p.size(); ++i) sum += std::abs(p[i] - q[i]);
    return sum / 2.0L;
  }
  static long double entropy(const std::vector<long double>& x) {
    long double sum = 0.0L;
    for (const long double value : x) sum -= value * std::log(value);
    return sum;
  }
};

// Relative, with a floor for what the oracle itself can resolve.
void expect_close(double value, long double expected, double relative, const char* what) {
  const auto exact = static_cast<double>(expected);
  EXPECT_NEAR(value, exact, std::abs(exact) * relative + 1e-18) << what;
}

TEST(Distributions, ByHand) {
  // p = (1/2, 1/4, 1/4), q = (1/4, 1/4, 1/2). The logits are rounded to f32, by at most
  // 2^-24 * 1.39 each, which moves no figure here by more than 4e-7.
  const double ln2 = std::log(2.0);
  const auto half = static_cast<float>(-ln2);
  const auto quarter = static_cast<float>(-2.0 * ln2);
  const StepMeasurement measured =
      measure({half, quarter, quarter}, {quarter, quarter, half}, {.emitted = TokenId{2}});
  EXPECT_NEAR(metric(measured, "kl_ab"), 0.25 * ln2, 4e-7);
  EXPECT_NEAR(metric(measured, "kl_ba"), 0.25 * ln2, 4e-7);
  // m = (3/8, 1/4, 3/8)
  EXPECT_NEAR(metric(measured, "js"), 0.5 * std::log(4.0 / 3.0) + 0.25 * std::log(2.0 / 3.0), 4e-7);
  EXPECT_NEAR(metric(measured, "tv"), 0.25, 4e-7);
  EXPECT_NEAR(metric(measured, "entropy_a"), 1.5 * ln2, 4e-7);
  EXPECT_NEAR(metric(measured, "entropy_b"), 1.5 * ln2, 4e-7);
  EXPECT_NEAR(metric(measured, "dlogp"), ln2, 4e-7);
  EXPECT_NEAR(metric(measured, "k1"), -ln2, 4e-7);
  EXPECT_NEAR(metric(measured, "importance_ratio"), 2.0, 4e-7);
  EXPECT_NEAR(metric(measured, "k3"), 1.0 - ln2, 4e-7);
}

class DistributionsAtDrift : public testing::TestWithParam<float> {};

TEST_P(DistributionsAtDrift, AgreeWithTheDefinition) {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    const std::vector<float> a = test::random_row(random, 200);
    const std::vector<float> b = test::drifted(random, a, GetParam());
    const Definition exact(a, b);
    const StepMeasurement measured = measure(a, b, {.emitted = TokenId{3}});
    // The definition cancels: at drift e its terms are e times larger than the sum is e^2, so
    // x87's 2^-64 leaves it about 1e-18 / e of the sum.
    const double oracle = 1e-17 / static_cast<double>(GetParam()) + 1e-12;
    expect_close(metric(measured, "kl_ab"), Definition::kl(exact.p, exact.q), oracle, "kl_ab");
    expect_close(metric(measured, "kl_ba"), Definition::kl(exact.q, exact.p), oracle, "kl_ba");
    expect_close(metric(measured, "js"), exact.js(), oracle, "js");
    expect_close(metric(measured, "tv"), exact.tv(), 1e-9, "tv");
    expect_close(metric(measured, "entropy_a"), Definition::entropy(exact.p), 1e-13, "entropy_a");
    expect_close(metric(measured, "entropy_b"), Definition::entropy(exact.q), 1e-13, "entropy_b");
    EXPECT_NEAR(metric(measured, "dlogp"), static_cast<double>(std::log(exact.q[3] / exact.p[3])),
                1e-14);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, DistributionsAtDrift,
                         testing::Values(1e-4F, 1e-2F, 0.3F, 0.6F, 4.0F, 30.0F));

TEST(Distributions, FarApartRowsStayFinite) {
  // q of token 0 underflows: KL(p, q) = 1000 to within rounding, TV = 1, JS = log 2.
  const StepMeasurement measured = measure({1000.0F, 0.0F}, {0.0F, 1000.0F});
  EXPECT_NEAR(metric(measured, "kl_ab"), 1000.0, 1e-9);
  EXPECT_NEAR(metric(measured, "kl_ba"), 1000.0, 1e-9);
  EXPECT_NEAR(metric(measured, "tv"), 1.0, 1e-12);
  EXPECT_NEAR(metric(measured, "js"), std::log(2.0), 1e-12);
  EXPECT_EQ(metric(measured, "entropy_a"), 0.0);
}

TEST(Distributions, UniformRowHasTheLargestEntropy) {
  EXPECT_NEAR(metric(std::vector<float>(64, 3.0F), std::vector<float>(64, 3.0F), "entropy_a"),
              std::log(64.0), 1e-14);
}

TEST(Distributions, SwappingTheSidesSwapsTheDivergences) {
  std::mt19937 random(5);
  for (const float drift : {1e-6F, 0.1F, 0.5F, 5.0F}) {
    const std::vector<float> a = test::random_row(random, 333);
    const std::vector<float> b = test::drifted(random, a, drift);
    const StepMeasurement forth = measure(a, b);
    const StepMeasurement back = measure(b, a);
    EXPECT_EQ(metric(forth, "kl_ab"), metric(back, "kl_ba")) << drift;
    EXPECT_EQ(metric(forth, "kl_ba"), metric(back, "kl_ab")) << drift;
    EXPECT_EQ(metric(forth, "js"), metric(back, "js")) << drift;
    EXPECT_EQ(metric(forth, "entropy_a"), metric(back, "entropy_b")) << drift;
    EXPECT_NEAR(metric(forth, "tv"), metric(back, "tv"), 1e-15) << drift;
  }
}

TEST(Distributions, CommonShiftChangesNothing) {
  // Multiples of 2^-10 in 1,024 entries: shifting by 4 and every sum of differences is exact.
  std::mt19937 random(9);
  std::vector<float> a(1024), b(1024), shifted(1024);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(random() % 4096U) / 1024.0F;
    b[i] = a[i] + static_cast<float>(random() % 8U) / 1024.0F;
    shifted[i] = b[i] + 4.0F;
  }
  EXPECT_EQ(metric(a, b, "centred_rms"), metric(a, shifted, "centred_rms"));
  for (const auto* id : {"kl_ab", "kl_ba", "js", "tv"}) {
    EXPECT_NEAR(metric(a, shifted, id) / metric(a, b, id), 1.0, 1e-11) << id;
  }
}

}  // namespace
}  // namespace driftscope
