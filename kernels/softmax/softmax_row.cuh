// SPDX-License-Identifier: Apache-2.0
// One row by one warp, for the softmax kernel and for eager attention.
#pragma once

#include "kernels/plan/device_reduction.cuh"
#include "kernels/plan/portable_exp_functions.h"

namespace driftscope::cuda {

struct SoftmaxRow {
  DevicePlan plan;
  Dtype compute_dtype;
  Dtype output_dtype;
};

// The largest of x; exact in any order. A NaN is passed over: its own exponential makes the row
// NaN.
__device__ inline float warp_max(const Global<const float>& x, std::int64_t count, int lane) {
  float greatest = -__builtin_inff();
  for (std::int64_t i = lane; i < count; i += kWarpWidth) {
    const float value = x[i];
    greatest = greatest < value ? value : greatest;
  }
  for (int distance = kWarpWidth / 2; distance >= 1; distance /= 2) {
    const float other = __shfl_xor_sync(0xffffffffU, greatest, distance);
    greatest = greatest < other ? other : greatest;
  }
  return greatest;
}

// Exponentials in f64, computed again wherever they are needed.
struct ExponentialTerms {
  Global<const float> x;
  double max;
  __device__ double operator[](std::int64_t i) const {
    return portable::exp_f64(__dsub_rn(static_cast<double>(x[i]), max));
  }
  __device__ void operator()(WideState& state, std::int64_t i, bool inside) const {
    state.add_term(inside ? (*this)[i] : 0.0);
  }
};

__device__ inline void softmax_row_wide(const SoftmaxRow& row, const Global<const float>& x,
                                        const Global<float>& y, std::int64_t count, int lane) {
  const Group group = group_of(row.plan.lanes);
  const ExponentialTerms terms{x, static_cast<double>(warp_max(x, count, lane))};
  DevicePlan plan = row.plan;
  plan.accumulator = Accumulator::f64;
  double sum = reduce<WideState>(plan, count, terms, group).sum;
  sum = __shfl_sync(group.mask, sum, 0, group.width);
  __syncwarp();  // y may be x
  for (std::int64_t i = lane; i < count; i += kWarpWidth) {
    const auto quotient = static_cast<float>(__ddiv_rn(terms[i], sum));
    y[i] = exact::with_canonical_nan(exact::rounded(row.output_dtype, quotient));
  }
}

// x, y: [count]; may be the same. All threads of the warp call it.
__device__ inline void softmax_row(const SoftmaxRow& row, const Global<const float>& x,
                                   const Global<float>& y, std::int64_t count, int lane) {
  if (row.compute_dtype == Dtype::f64) return softmax_row_wide(row, x, y, count, lane);
  const float max = warp_max(x, count, lane);
  __syncwarp();
  for (std::int64_t i = lane; i < count; i += kWarpWidth) {
    y[i] = exact::rounded(row.compute_dtype, portable::exp_f32(__fsub_rn(x[i], max)));
  }
  __syncwarp();
  const ProductTerms terms{y, nullptr, Dtype::f32};
  const float total = reduce_products(row.plan, count, terms, group_of(row.plan.lanes));
  const float sum = exact::rounded(row.compute_dtype, total);
  __syncwarp();
  for (std::int64_t i = lane; i < count; i += kWarpWidth) {
    const float quotient = exact::rounded(row.compute_dtype, __fdiv_rn(y[i], sum));
    y[i] = exact::with_canonical_nan(exact::rounded(row.output_dtype, quotient));
  }
}

}  // namespace driftscope::cuda
