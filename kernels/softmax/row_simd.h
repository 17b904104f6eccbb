// SPDX-License-Identifier: Apache-2.0
// Maximum and exponentials of a row, for softmax and attention.
#pragma once

#include "kernels/plan/simd_vector.h"

#if defined(__AVX2__) && defined(__FMA__)

namespace driftscope::simd {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();

// count at least 1. A NaN is not found here: its own exp makes the row NaN.
DRIFTSCOPE_INLINE float row_max(const float* x, std::int64_t count) {
  Floats greatest = all(kMinusInfinity);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) greatest = max(load(x + i), greatest);
  if (i < count) {
    greatest = max(load_first(x + i, count - i, all(kMinusInfinity)), greatest);
  }
  float lanes[kWidth];
  store(lanes, greatest);
  float result = kMinusInfinity;
  for (const float lane : lanes) result = result < lane ? lane : result;
  return result;
}

// y = exp(x - max), rounded to dtype. x, y: [count]; may be the same.
DRIFTSCOPE_INLINE void row_exp(const float* x, float* y, std::int64_t count, float max_value,
                               Dtype dtype) {
  const Floats shift = all(max_value);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    store(y + i, round(dtype, exp(sub(load(x + i), shift))));
  }
  if (i < count) {
    const Floats last = load_first(x + i, count - i, shift);
    store_first(y + i, count - i, round(dtype, exp(sub(last, shift))));
  }
}

}  // namespace
}  // namespace driftscope::simd

#endif
