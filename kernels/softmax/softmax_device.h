// SPDX-License-Identifier: Apache-2.0
// Softmax of rows on a device: the bits of softmax_row(). Plain data; includes no CUDA header.
#pragma once

#include <cstdint>

#include "kernels/plan/device_plan.h"

namespace driftscope {

struct DeviceSoftmax {
  const float* x = nullptr;  // [rows, count]
  float* y = nullptr;        // [rows, count]; may equal x
  std::int64_t rows = 0;
  std::int64_t count = 0;
  DevicePlan plan = {};
  Dtype compute_dtype = Dtype::f32;
  Dtype output_dtype = Dtype::f32;
};

}  // namespace driftscope
