// SPDX-License-Identifier: Apache-2.0
// The vector form, compiled once for AVX2 and once for AVX-512.
#pragma once

#include "kernels/plan/plan_sum_simd.h"
#include "kernels/rmsnorm/rmsnorm_rows.h"

#if defined(__AVX2__) && defined(__FMA__)

namespace driftscope::simd {
namespace {

DRIFTSCOPE_INLINE float row_scale(const RmsNormArguments& arguments, const float* x) {
  if (!has_vector_form(arguments.plan)) return rmsnorm_scale(arguments, x);
  const float sum = plan_sum<Term::square>(arguments.plan, x, arguments.width);
  const float mean = sum / static_cast<float>(arguments.width);
  const __m128 root = _mm_sqrt_ss(_mm_set_ss(mean + arguments.epsilon));
  return 1.0F / _mm_cvtss_f32(root);
}

DRIFTSCOPE_INLINE void norm_row(const RmsNormArguments& arguments, const float* x, float* y) {
  const Floats scale = all(row_scale(arguments, x));
  const auto normalise = [&](Floats value, Floats weight) {
    const Floats normalised = round(arguments.normalised_dtype, mul(value, scale));
    return round_result(arguments.output_dtype, mul(normalised, weight));
  };
  std::int64_t i = 0;
  for (; i + kWidth <= arguments.width; i += kWidth) {
    store(y + i, normalise(load(x + i), load(arguments.weight + i)));
  }
  if (i < arguments.width) {
    const std::int64_t left = arguments.width - i;
    const Floats zero = all(0.0F);
    store_first(
        y + i, left,
        normalise(load_first(x + i, left, zero), load_first(arguments.weight + i, left, zero)));
  }
}

DRIFTSCOPE_INLINE void norm_rows(const RmsNormArguments& arguments, std::int64_t begin,
                                 std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    norm_row(arguments, arguments.x + r * arguments.width, arguments.y + r * arguments.width);
  }
}

DRIFTSCOPE_INLINE void add_rounded(float* residual, const float* delta, std::int64_t count,
                                   Dtype dtype) {
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    store(residual + i, round_result(dtype, add(load(residual + i), load(delta + i))));
  }
  if (i < count) {
    const Floats zero = all(0.0F);
    const Floats sum =
        add(load_first(residual + i, count - i, zero), load_first(delta + i, count - i, zero));
    store_first(residual + i, count - i, round_result(dtype, sum));
  }
}

}  // namespace
}  // namespace driftscope::simd

#endif
