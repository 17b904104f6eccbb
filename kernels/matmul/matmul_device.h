// SPDX-License-Identifier: Apache-2.0
// The portable matmul on a device: the bits of matmul() for every plan. Plain data; includes no
// CUDA header.
#pragma once

#include <cstdint>

#include "kernels/plan/device_plan.h"

namespace driftscope {

// y = x · wᵀ + bias. All pointers to device memory.
struct DeviceMatmul {
  const float* x = nullptr;      // [m, k]
  const void* weight = nullptr;  // [n, k] of weight_dtype
  const float* bias = nullptr;   // [n], or null
  float* y = nullptr;            // [m, n]; must not overlap x
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Dtype weight_dtype = Dtype::f32;  // f32, f16 or bf16
  Dtype output_dtype = Dtype::f32;
  DevicePlan plan = {};
};

}  // namespace driftscope
