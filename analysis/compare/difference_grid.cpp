// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/difference_grid.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace driftscope {

namespace {

constexpr std::array kSteps{0.5, 0.25, 0.125, 0.0625, 0.03125};
constexpr std::int64_t kFewest = 4;
constexpr double kLeastShare = 0.25;
constexpr double kDeviations = 6.0;
// A grid says nothing where the tolerance covers this much of it.
constexpr double kMostChance = 0.2;

}  // namespace

std::optional<DifferenceGrid> find_difference_grid(std::span<const double> differences,
                                                   double tolerance) {
  std::vector<double> sizes;
  for (const double difference : differences) {
    const double size = std::abs(difference);
    if (std::isfinite(size) && size > tolerance) sizes.push_back(size);
  }
  const auto count = static_cast<std::int64_t>(sizes.size());
  if (count < kFewest) return std::nullopt;
  for (const double step : kSteps) {
    const double chance = 2.0 * tolerance / step;
    if (chance > kMostChance) return std::nullopt;
    const auto on_grid = std::count_if(sizes.begin(), sizes.end(), [&](double size) {
      const double nearest = std::round(size / step) * step;
      return nearest > 0.0 && std::abs(size - nearest) <= tolerance;
    });
    const double n = static_cast<double>(count);
    const double expected = n * chance + kDeviations * std::sqrt(n * chance * (1.0 - chance));
    const bool all = on_grid == count;
    const bool spikes = on_grid >= kFewest && static_cast<double>(on_grid) >= kLeastShare * n &&
                        static_cast<double>(on_grid) > expected;
    if (all || spikes) return DifferenceGrid{step, on_grid, count, all};
  }
  return std::nullopt;
}

void add_relative_differences(const std::vector<RankedToken>& a, const std::vector<RankedToken>& b,
                              std::vector<double>& differences) {
  std::optional<double> first;
  for (const RankedToken& entry : a) {
    const auto other = std::find_if(b.begin(), b.end(), [&](const RankedToken& candidate) {
      return candidate.token == entry.token;
    });
    if (other == b.end()) continue;
    const double moved = double{other->logit} - double{entry.logit};
    if (first) differences.push_back(moved - *first);
    if (!first) first = moved;
  }
}

}  // namespace driftscope
