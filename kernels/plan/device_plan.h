// SPDX-License-Identifier: Apache-2.0
// A ReductionPlan as kernels on a device read it. Plain data; includes no CUDA header.
#pragma once

#include <cstdint>

#include "kernels/plan/dtype.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

struct DevicePlan {
  int lanes = 32;
  int split_k = 1;
  LaneCombine lane_combine = LaneCombine::butterfly;
  SplitCombine split_combine = SplitCombine::sequential;
  Accumulator accumulator = Accumulator::f32;
  // Device memory: arrival_order(seed, split_k) where split_combine is arrival and split_k above 1,
  // else null.
  const int* order = nullptr;
};

[[nodiscard]] inline DevicePlan device_plan(const ReductionPlan& plan, const int* order) {
  return {.lanes = plan.lanes,
          .split_k = plan.split_k,
          .lane_combine = plan.lane_combine,
          .split_combine = plan.split_combine,
          .accumulator = plan.accumulator,
          .order = order};
}

[[nodiscard]] inline bool valid(const DevicePlan& plan) {
  const bool power_of_two = plan.lanes >= 1 && (plan.lanes & (plan.lanes - 1)) == 0;
  const bool has_order =
      plan.split_combine != SplitCombine::arrival || plan.split_k == 1 || plan.order != nullptr;
  return power_of_two && plan.lanes <= 1024 && plan.split_k >= 1 && plan.split_k <= 1024 &&
         has_order;
}

}  // namespace driftscope
