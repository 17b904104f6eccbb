// SPDX-License-Identifier: Apache-2.0
// The sum of what tensor-parallel ranks hold, where one device runs all of them as shards: the bits
// of all_reduce(), then of the projection's end. Plain data; includes no CUDA header.
#pragma once

#include <cstdint>

#include "kernels/allreduce/all_reduce_order.h"
#include "kernels/plan/dtype.h"

namespace driftscope {

inline constexpr std::int64_t kMostDeviceRanks = 16;

// y[i, j] = round(sum over the ranks of parts[r][i, j] + bias[j]). All pointers to device memory.
struct DeviceAllReduce {
  const float* parts = nullptr;  // [ranks][rows, width]
  const float* bias = nullptr;   // [width], or null
  float* y = nullptr;            // [rows, width]; must not overlap the parts
  std::int64_t ranks = 0;        // 1 … kMostDeviceRanks; 1: nothing is added, nothing rounded
  std::int64_t rows = 0;
  std::int64_t width = 0;
  AllReduceOrder order = AllReduceOrder::one_shot;
  Dtype dtype = Dtype::f32;         // f32, bf16 or f16: of what ranks send
  Dtype output_dtype = Dtype::f32;  // of y
};

}  // namespace driftscope
