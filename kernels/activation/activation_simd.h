// SPDX-License-Identifier: Apache-2.0
// The vector form, compiled once for AVX2 and once for AVX-512.
#pragma once

#include "kernels/activation/activation_rows.h"
#include "kernels/plan/simd_vector.h"

#if defined(__AVX2__) && defined(__FMA__)

namespace driftscope::simd {
namespace {

DRIFTSCOPE_INLINE Floats silu_times_up(const SwigluPiece& piece, Floats gate, Floats up) {
  const Floats silu = div(gate, add(all(1.0F), exp(negate(gate))));
  return round_result(piece.output_dtype, mul(round(piece.silu_dtype, silu), up));
}

DRIFTSCOPE_INLINE void swiglu_piece(const SwigluPiece& piece) {
  std::int64_t i = 0;
  for (; i + kWidth <= piece.count; i += kWidth) {
    store(piece.y + i, silu_times_up(piece, load(piece.gate + i), load(piece.up + i)));
  }
  if (i < piece.count) {
    const std::int64_t left = piece.count - i;
    const Floats gate = load_first(piece.gate + i, left, all(0.0F));
    const Floats up = load_first(piece.up + i, left, all(0.0F));
    store_first(piece.y + i, left, silu_times_up(piece, gate, up));
  }
}

}  // namespace
}  // namespace driftscope::simd

#endif
