// SPDX-License-Identifier: Apache-2.0
// Moving and converting rows on a device. Plain data; includes no CUDA header.
#pragma once

#include <cstdint>

#include "kernels/plan/dtype.h"

namespace driftscope {

// y[i] = round(table[ids[i]]) to output_dtype. All pointers to device memory.
struct DeviceEmbed {
  const void* table = nullptr;        // [vocabulary, width] of table_dtype
  const std::int32_t* ids = nullptr;  // [rows], each below the vocabulary
  float* y = nullptr;                 // [rows, width]
  std::int64_t rows = 0;
  std::int64_t width = 0;
  Dtype table_dtype = Dtype::f32;
  Dtype output_dtype = Dtype::f32;
};

// values[i] = round_to(dtype, values[i])
struct DeviceRound {
  float* values = nullptr;  // [count]
  std::int64_t count = 0;
  Dtype dtype = Dtype::f32;
};

// y[i, 0 … width) = x[rows[i], 0 … width), or of row i where `rows` is null.
struct DeviceGather {
  const float* x = nullptr;            // row stride x_stride
  const std::int64_t* rows = nullptr;  // [count], or null
  float* y = nullptr;                  // row stride y_stride
  std::int64_t count = 0;
  std::int64_t width = 0;
  std::int64_t x_stride = 0;
  std::int64_t y_stride = 0;
};

// target[i] = source[i] stored as `dtype` (f32, f16 or bf16).
struct DeviceNarrow {
  const float* source = nullptr;  // [count]
  void* target = nullptr;         // [count] of dtype
  std::int64_t count = 0;
  Dtype dtype = Dtype::f32;
};

}  // namespace driftscope
