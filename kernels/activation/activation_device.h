// SPDX-License-Identifier: Apache-2.0
// SwiGLU on a device: the bits of swiglu(). Plain data; includes no CUDA header.
#pragma once

#include <cstdint>

#include "kernels/plan/dtype.h"

namespace driftscope {

// As SwigluArguments; all pointers to device memory.
struct DeviceSwiglu {
  const float* gate = nullptr;  // [rows, width], row stride gate_stride
  const float* up = nullptr;    // [rows, width], row stride up_stride
  float* y = nullptr;           // [rows, width], contiguous
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t gate_stride = 0;
  std::int64_t up_stride = 0;
  Dtype silu_dtype = Dtype::f32;
  Dtype output_dtype = Dtype::f32;
};

}  // namespace driftscope
