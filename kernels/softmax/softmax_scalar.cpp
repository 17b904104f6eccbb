// SPDX-License-Identifier: Apache-2.0
// The scalar definition: the oracle of the other variants.
#include <cstddef>
#include <vector>

#include "kernels/plan/portable_math.h"
#include "kernels/plan/reduce_f64.h"
#include "kernels/softmax/softmax_rows.h"

namespace driftscope {
namespace {

// A NaN is not found here: its own exp makes the row NaN.
float row_max(const float* x, std::int64_t count) {
  float max = x[0];
  for (std::int64_t i = 1; i < count; ++i) max = max < x[i] ? x[i] : max;
  return max;
}

}  // namespace

void softmax_row_f64(const float* x, float* y, std::int64_t count, const ReductionPlan& plan,
                     Dtype output_dtype) {
  const double max = row_max(x, count);
  std::vector<double> terms(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = portable::exp(double{x[i]} - max);
  const double sum = reduce_sum_f64(plan, terms.data(), count);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    y[i] = canonical_nan(round_to(output_dtype, static_cast<float>(terms[i] / sum)));
  }
}

void softmax_row_scalar(const float* x, float* y, std::int64_t count, const ReductionPlan& plan,
                        Dtype compute_dtype, Dtype output_dtype) {
  if (count <= 0) return;
  if (compute_dtype == Dtype::f64) return softmax_row_f64(x, y, count, plan, output_dtype);
  const float max = row_max(x, count);
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = round_to(compute_dtype, portable::exp(x[i] - max));
  }
  const float sum = round_to(compute_dtype, reduce_sum(plan, y, count));
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = canonical_nan(round_to(output_dtype, round_to(compute_dtype, y[i] / sum)));
  }
}

}  // namespace driftscope
