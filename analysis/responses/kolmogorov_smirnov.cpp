// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/responses/populations.h"
#include "analysis/responses/split_mix.h"

namespace driftscope {
namespace {

double kolmogorov_tail(double lambda) {
  if (lambda < 0.2) return 1.0;
  double sum = 0.0;
  for (int j = 1; j <= 100; ++j) {
    const double term = std::exp(-2.0 * j * j * lambda * lambda);
    sum += (j % 2 == 1 ? 2.0 : -2.0) * term;
    if (term < 1e-16) break;
  }
  return std::clamp(sum, 0.0, 1.0);
}

// A value of either side.
struct Pooled {
  double value;
  bool of_a;
};

// Largest distance of the two empirical distributions; `pooled` by rising value. The steps are
// whole numbers, count_b per value of A down and count_a per value of B up, so that equal distances
// are equal.
std::int64_t largest_distance(const std::vector<Pooled>& pooled, std::int64_t count_a,
                              std::int64_t count_b) {
  std::int64_t distance = 0;
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < pooled.size(); ++i) {
    distance += pooled[i].of_a ? count_b : -count_a;
    const bool last_of_value = i + 1 == pooled.size() || pooled[i + 1].value > pooled[i].value;
    if (last_of_value) largest = std::max(largest, std::abs(distance));
  }
  return largest;
}

std::vector<Pooled> pool(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<Pooled> pooled;
  for (const double value : a) pooled.push_back({value, true});
  for (const double value : b) pooled.push_back({value, false});
  std::stable_sort(pooled.begin(), pooled.end(),
                   [](const Pooled& x, const Pooled& y) { return x.value < y.value; });
  return pooled;
}

}  // namespace

DistributionTest kolmogorov_smirnov(const std::vector<double>& a, const std::vector<double>& b) {
  DistributionTest test;
  if (a.empty() || b.empty()) return test;
  const auto count_a = static_cast<std::int64_t>(a.size());
  const auto count_b = static_cast<std::int64_t>(b.size());
  const auto n = static_cast<double>(count_a);
  const auto m = static_cast<double>(count_b);
  test.statistic = static_cast<double>(largest_distance(pool(a, b), count_a, count_b)) / (n * m);
  const double root = std::sqrt(n * m / (n + m));
  test.p_value = kolmogorov_tail((root + 0.12 + 0.11 / root) * test.statistic);
  return test;
}

DistributionTest kolmogorov_smirnov(const std::vector<double>& a, const std::vector<double>& b,
                                    std::int64_t permutations, std::uint64_t seed) {
  DistributionTest test = kolmogorov_smirnov(a, b);
  if (a.empty() || b.empty()) return test;
  const auto count_a = static_cast<std::int64_t>(a.size());
  const auto count_b = static_cast<std::int64_t>(b.size());
  std::vector<Pooled> pooled = pool(a, b);
  const std::int64_t seen = largest_distance(pooled, count_a, count_b);
  SplitMix random(seed);
  std::int64_t reached = 0;
  for (std::int64_t round = 0; round < permutations; ++round) {
    for (std::size_t i = pooled.size() - 1; i > 0; --i)
      std::swap(pooled[i].of_a, pooled[random.below(i + 1)].of_a);
    reached += largest_distance(pooled, count_a, count_b) >= seen ? 1 : 0;
  }
  test.p_value = static_cast<double>(1 + reached) / static_cast<double>(1 + permutations);
  return test;
}

}  // namespace driftscope
