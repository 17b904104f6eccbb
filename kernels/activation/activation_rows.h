// SPDX-License-Identifier: Apache-2.0
// One piece of a SwiGLU row per instruction set; the driver in activation.cpp cuts the work.
#pragma once

#include <cstdint>

#include "kernels/plan/dtype.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

struct SwigluPiece {
  const float* gate;  // [count]
  const float* up;    // [count]
  float* y;           // [count]
  std::int64_t count;
  Dtype silu_dtype;
  Dtype output_dtype;
};
void swiglu_piece_scalar(const SwigluPiece& piece);
void swiglu_piece_avx2(const SwigluPiece& piece);
void swiglu_piece_avx512(const SwigluPiece& piece);

}  // namespace driftscope
