// SPDX-License-Identifier: Apache-2.0
// The vector form, compiled once for AVX2 and once for AVX-512.
#pragma once

#include "kernels/plan/plan_sum_simd.h"
#include "kernels/softmax/row_simd.h"
#include "kernels/softmax/softmax_rows.h"

#if defined(__AVX2__) && defined(__FMA__)

namespace driftscope::simd {
namespace {

DRIFTSCOPE_INLINE void softmax_row(const float* x, float* y, std::int64_t count,
                                   const ReductionPlan& plan, Dtype compute_dtype,
                                   Dtype output_dtype) {
  if (count <= 0) return;
  if (compute_dtype == Dtype::f64) return softmax_row_f64(x, y, count, plan, output_dtype);
  row_exp(x, y, count, row_max(x, count), compute_dtype);
  const float sum = round_to(compute_dtype, plan_sum<Term::value>(plan, y, count));
  const auto quotient = [&](Floats e) {
    return round_result(output_dtype, round(compute_dtype, div(e, all(sum))));
  };
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store(y + i, quotient(load(y + i)));
  if (i < count) {
    store_first(y + i, count - i, quotient(load_first(y + i, count - i, all(0.0F))));
  }
}

}  // namespace
}  // namespace driftscope::simd

#endif
