// SPDX-License-Identifier: Apache-2.0
// The rotary embedding on a device: the bits of apply_rope(). Plain data; includes no CUDA header.
#pragma once

#include <cstdint>

#include "kernels/plan/dtype.h"

namespace driftscope {

// As RopeArguments; all pointers to device memory. Positions lie inside the table.
struct DeviceRope {
  float* x = nullptr;                       // [rows, heads, 2 · half], in place
  const std::int32_t* positions = nullptr;  // [rows]
  const float* cosine = nullptr;            // [positions of the table, half]
  const float* sine = nullptr;              // the same
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t half = 0;
  bool interleaved = false;  // pairs (2i, 2i + 1); else (i, i + half)
  bool round_products = false;
  Dtype output_dtype = Dtype::f32;
};

}  // namespace driftscope
