// SPDX-License-Identifier: Apache-2.0
// Sums in a fixed order that a compiler can vectorise without reassociating: entry i belongs to
// lane i mod 16; a lane adds in rising i; lanes are combined by halves (8, 4, 2, 1). So the bits
// do not depend on the width of a CPU's vectors.
#pragma once

#include <array>
#include <cstddef>

namespace driftscope::metrics {

inline constexpr std::size_t kSumLanes = 16;
using LaneValues = std::array<double, kSumLanes>;

[[nodiscard]] inline double combine_sum(LaneValues lanes) {
  for (std::size_t distance = kSumLanes / 2; distance > 0; distance /= 2) {
    for (std::size_t lane = 0; lane < distance; ++lane) lanes[lane] += lanes[lane + distance];
  }
  return lanes[0];
}

[[nodiscard]] inline double combine_max(const LaneValues& lanes) {
  double largest = lanes[0];
  for (const double value : lanes) largest = value > largest ? value : largest;
  return largest;
}

// Calls body(entry, lane) for every entry in rising order.
template <class Body>
void for_each_in_lanes(std::size_t count, Body&& body) {
  std::size_t entry = 0;
  for (; entry + kSumLanes <= count; entry += kSumLanes) {
    for (std::size_t lane = 0; lane < kSumLanes; ++lane) body(entry + lane, lane);
  }
  for (std::size_t lane = 0; entry < count; ++entry, ++lane) body(entry, lane);
}

}  // namespace driftscope::metrics
