// SPDX-License-Identifier: Apache-2.0
// The portable matmul on a device: the bits of matmul() for every plan. Plain data; includes no
// CUDA header.
#pragma once

#include <cstdint>

#include "kernels/plan/device_plan.h"
#include "kernels/quant/quantised_view.h"

namespace driftscope {

// y = x · wᵀ + bias. All pointers to device memory.
struct DeviceMatmul {
  const float* x = nullptr;      // [m, k]
  const void* weight = nullptr;  // [n, k] of weight_dtype; not read where `quantised` is present
  const float* bias = nullptr;   // [n], or null
  float* y = nullptr;            // [m, n]; must not overlap x
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t x_stride = 0;        // elements from row to row; 0: k
  std::int64_t weight_stride = 0;   // the same; 0: k
  std::int64_t y_stride = 0;        // the same; 0: n
  Dtype weight_dtype = Dtype::f32;  // f32, f16 or bf16
  Dtype output_dtype = Dtype::f32;
  DevicePlan plan = {};
  // Where present, the weights are these codes, in device memory too.
  QuantisedView quantised = {};
  // int8_dynamic only: workspace for the codes and scales of x.
  std::int8_t* x_codes = nullptr;  // [m, k]
  float* x_scales = nullptr;       // [m]
};

}  // namespace driftscope
