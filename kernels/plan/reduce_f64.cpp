// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan/reduce_f64.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

namespace driftscope {
namespace {

double combine_lanes(LaneCombine combine, std::vector<double>& lanes) {
  switch (combine) {
    case LaneCombine::butterfly:
      for (std::size_t distance = lanes.size() / 2; distance >= 1; distance /= 2) {
        for (std::size_t i = 0; i < distance; ++i) lanes[i] += lanes[i + distance];
      }
      break;
    case LaneCombine::sequential:
      for (std::size_t i = 1; i < lanes.size(); ++i) lanes[0] += lanes[i];
      break;
  }
  return lanes[0];
}

double chunk_sum(const ReductionPlan& plan, const double* terms, std::int64_t count) {
  if (count <= 0) return 0.0;
  std::vector<double> lanes(static_cast<std::size_t>(plan.lanes), 0.0);
  const std::int64_t padded = (count + plan.lanes - 1) / plan.lanes * plan.lanes;
  for (std::int64_t k = 0; k < padded; ++k) {
    lanes[static_cast<std::size_t>(k % plan.lanes)] += k < count ? terms[k] : 0.0;
  }
  return combine_lanes(plan.lane_combine, lanes);
}

double combine_chunks(const ReductionPlan& plan, std::vector<double>& sums) {
  const std::size_t count = sums.size();
  switch (plan.split_combine) {
    case SplitCombine::sequential:
      for (std::size_t i = 1; i < count; ++i) sums[0] += sums[i];
      return sums[0];
    case SplitCombine::tree:
      for (std::size_t distance = 1; distance < count; distance *= 2) {
        for (std::size_t i = 0; i + distance < count; i += 2 * distance) {
          sums[i] += sums[i + distance];
        }
      }
      return sums[0];
    case SplitCombine::arrival: {
      const std::vector<int> order = arrival_order(plan.arrival_seed, static_cast<int>(count));
      double total = sums[static_cast<std::size_t>(order[0])];
      for (std::size_t i = 1; i < count; ++i) total += sums[static_cast<std::size_t>(order[i])];
      return total;
    }
  }
  return sums[0];
}

}  // namespace

double reduce_sum_f64(const ReductionPlan& plan, const double* terms, std::int64_t k) {
  assert(plan.lanes >= 1 && plan.split_k >= 1);
  const std::int64_t chunk = (k + plan.split_k - 1) / plan.split_k;
  std::vector<double> sums(static_cast<std::size_t>(plan.split_k), 0.0);
  for (std::int64_t s = 0; s < plan.split_k; ++s) {
    const std::int64_t begin = std::min(k, s * chunk);
    const std::int64_t end = std::min(k, begin + chunk);
    sums[static_cast<std::size_t>(s)] = chunk_sum(plan, terms + begin, end - begin);
  }
  return combine_chunks(plan, sums);
}

}  // namespace driftscope
