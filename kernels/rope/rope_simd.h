// SPDX-License-Identifier: Apache-2.0
// The vector form of rotate_half, compiled once for AVX2 and once for AVX-512. Interleaved pairs
// (rare in checkpoints) go to the scalar definition.
#pragma once

#include "kernels/plan/simd_vector.h"
#include "kernels/rope/rope_rows.h"

#if defined(__AVX2__) && defined(__FMA__)

namespace driftscope::simd {
namespace {

struct FloatsPair {
  Floats first;
  Floats second;
};

DRIFTSCOPE_INLINE FloatsPair rotate(const RopeArguments& arguments, FloatsPair x, Floats cosine,
                                    Floats sine) {
  const Dtype dtype = arguments.output_dtype;
  if (arguments.round_products) {
    return {
        round(dtype, sub(round(dtype, mul(x.first, cosine)), round(dtype, mul(x.second, sine)))),
        round(dtype, add(round(dtype, mul(x.second, cosine)), round(dtype, mul(x.first, sine))))};
  }
  return {round_result(dtype, fma(x.first, cosine, negate(mul(x.second, sine)))),
          round_result(dtype, fma(x.second, cosine, mul(x.first, sine)))};
}

// x: [2 * half] of one head; cosine, sine: [half] of its position.
DRIFTSCOPE_INLINE void rotate_head(const RopeArguments& arguments, const float* cosine,
                                   const float* sine, float* x) {
  const std::int64_t half = arguments.table->half;
  std::int64_t i = 0;
  for (; i + kWidth <= half; i += kWidth) {
    const FloatsPair rotated =
        rotate(arguments, {load(x + i), load(x + half + i)}, load(cosine + i), load(sine + i));
    store(x + i, rotated.first);
    store(x + half + i, rotated.second);
  }
  if (i < half) {
    const std::int64_t left = half - i;
    const Floats zero = all(0.0F);
    const FloatsPair rotated =
        rotate(arguments, {load_first(x + i, left, zero), load_first(x + half + i, left, zero)},
               load_first(cosine + i, left, zero), load_first(sine + i, left, zero));
    store_first(x + i, left, rotated.first);
    store_first(x + half + i, left, rotated.second);
  }
}

DRIFTSCOPE_INLINE void rope_rows(const RopeArguments& arguments, std::int64_t begin,
                                 std::int64_t end) {
  if (arguments.layout == RopeLayout::interleaved) return rope_rows_scalar(arguments, begin, end);
  for (std::int64_t row = begin; row < end; ++row) {
    const RopeEntry entry = rope_entry(*arguments.table, arguments.positions[row]);
    for (std::int64_t head = 0; head < arguments.heads; ++head) {
      rotate_head(arguments, entry.cosine, entry.sine,
                  arguments.x + (row * arguments.heads + head) * arguments.head_dim);
    }
  }
}

}  // namespace
}  // namespace driftscope::simd

#endif
