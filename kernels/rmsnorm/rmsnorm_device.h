// SPDX-License-Identifier: Apache-2.0
// RMSNorm and the residual sum on a device: the bits of rmsnorm() and add_residual(). Plain data;
// includes no CUDA header.
#pragma once

#include <cstdint>

#include "kernels/plan/device_plan.h"

namespace driftscope {

// As RmsNormArguments; all pointers to device memory.
struct DeviceRmsNorm {
  const float* x = nullptr;       // [rows, width]
  const float* weight = nullptr;  // [width]
  float* y = nullptr;             // [rows, width]; may equal x
  std::int64_t rows = 0;
  std::int64_t width = 0;
  float epsilon = 1e-5F;
  DevicePlan plan = {};
  Dtype normalised_dtype = Dtype::f32;
  Dtype output_dtype = Dtype::f32;
};

// residual[i] = round(residual[i] + delta[i]) to `dtype`.
struct DeviceAddResidual {
  float* residual = nullptr;     // [count]
  const float* delta = nullptr;  // [count]
  std::int64_t count = 0;
  Dtype dtype = Dtype::f32;
};

}  // namespace driftscope
