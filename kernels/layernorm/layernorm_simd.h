// SPDX-License-Identifier: Apache-2.0
// The vector form, compiled once for AVX2 and once for AVX-512.
#pragma once

#include "kernels/layernorm/layernorm_rows.h"
#include "kernels/plan/plan_sum_simd.h"

#if defined(__AVX2__) && defined(__FMA__)

namespace driftscope::simd {
namespace {

// y = x - mean. Both [count].
DRIFTSCOPE_INLINE void centre(const float* x, float* y, std::int64_t count, float mean) {
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store(y + i, sub(load(x + i), all(mean)));
  if (i < count) {
    store_first(y + i, count - i, sub(load_first(x + i, count - i, all(0.0F)), all(mean)));
  }
}

DRIFTSCOPE_INLINE void scale_and_shift(const LayerNormArguments& arguments, float* y, float scale) {
  const auto result = [&](Floats value, Floats weight, Floats bias) {
    return round_result(arguments.output_dtype, fma(mul(value, all(scale)), weight, bias));
  };
  const float* weight = arguments.weight;
  const float* bias = arguments.bias;
  std::int64_t i = 0;
  for (; i + kWidth <= arguments.width; i += kWidth) {
    store(y + i, result(load(y + i), load(weight + i), load(bias + i)));
  }
  if (i < arguments.width) {
    const std::int64_t left = arguments.width - i;
    const Floats zero = all(0.0F);
    store_first(y + i, left,
                result(load_first(y + i, left, zero), load_first(weight + i, left, zero),
                       load_first(bias + i, left, zero)));
  }
}

DRIFTSCOPE_INLINE void layernorm_rows(const LayerNormArguments& arguments, std::int64_t begin,
                                      std::int64_t end) {
  const std::int64_t width = arguments.width;
  const auto count = static_cast<float>(width);
  for (std::int64_t r = begin; r < end; ++r) {
    const float* x = arguments.x + r * width;
    float* y = arguments.y + r * width;
    centre(x, y, width, plan_sum<Term::value>(arguments.plan, x, width) / count);
    const float variance = plan_sum<Term::square>(arguments.plan, y, width) / count;
    const __m128 root = _mm_sqrt_ss(_mm_set_ss(variance + arguments.epsilon));
    scale_and_shift(arguments, y, 1.0F / _mm_cvtss_f32(root));
  }
}

}  // namespace
}  // namespace driftscope::simd

#endif
