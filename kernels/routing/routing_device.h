// SPDX-License-Identifier: Apache-2.0
// A mixture's routing on a device: the bits of route(), add_expert_outputs() and sigmoid_gates().
// Plain data; includes no CUDA header.
#pragma once

#include <cstdint>

#include "kernels/plan/device_plan.h"

namespace driftscope {

// As RoutingArguments. All pointers to device memory.
struct DeviceRouting {
  const float* logits = nullptr;   // [rows, experts]
  float* probabilities = nullptr;  // [rows, experts]: workspace; must not overlap the logits
  std::int64_t rows = 0;
  std::int64_t experts = 0;
  std::int64_t chosen = 0;  // 1 … experts
  bool renormalise = false;
  DevicePlan plan = {};
  Dtype compute_dtype = Dtype::f32;
  Dtype weight_dtype = Dtype::f32;
  std::int32_t* ids = nullptr;  // [rows, chosen]
  float* weights = nullptr;     // [rows, chosen]
  float* margins = nullptr;     // [rows]
};

// As ExpertSumArguments.
struct DeviceExpertSum {
  const float* outputs = nullptr;      // [count, width]
  const std::int64_t* rows = nullptr;  // [count], all different; null: 0, 1, 2 …
  const float* weights = nullptr;      // [count]
  std::int64_t count = 0;
  std::int64_t width = 0;
  float* totals = nullptr;  // [rows, width]
  Dtype product_dtype = Dtype::f32;
  Dtype sum_dtype = Dtype::f32;
};

// gates[i] = 1 / (1 + exp(-gates[i])), rounded to `dtype`.
struct DeviceSigmoid {
  float* gates = nullptr;  // [count]
  std::int64_t count = 0;
  Dtype dtype = Dtype::f32;
};

}  // namespace driftscope
