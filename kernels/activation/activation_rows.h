// SPDX-License-Identifier: Apache-2.0
// One piece of a row per instruction set; the driver in activation.cpp cuts the work.
#pragma once

#include <cstdint>

#include "kernels/activation/activation.h"

namespace driftscope {

inline constexpr float kGeluRoot = 0x1.988454p-1F;  // sqrt(2 / pi)
inline constexpr float kGeluCube = 0x1.6e4e26p-5F;  // 0.044715
inline constexpr float kRootHalf = 0x1.6a09e6p-1F;  // sqrt(1 / 2)
inline constexpr float kClampedAlpha = 1.702F;  // gpt-oss; gelu(x) is about x · sigmoid(1.702 x)

struct SwigluPiece {
  const float* gate;  // [count]
  const float* up;    // [count] or null
  float* y;           // [count]
  std::int64_t count;
  Dtype silu_dtype;
  Dtype output_dtype;
  ActivationKind kind;
  float limit;
};
void swiglu_piece_scalar(const SwigluPiece& piece);
void swiglu_piece_avx2(const SwigluPiece& piece);
void swiglu_piece_avx512(const SwigluPiece& piece);

void soft_cap_piece_scalar(const SoftCapArguments& piece);
void soft_cap_piece_avx2(const SoftCapArguments& piece);
void soft_cap_piece_avx512(const SoftCapArguments& piece);

}  // namespace driftscope
