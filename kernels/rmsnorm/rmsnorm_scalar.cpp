// SPDX-License-Identifier: Apache-2.0
// The scalar definition: the oracle of the other variants.
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/plan/reduce_f64.h"
#include "kernels/rmsnorm/rmsnorm_rows.h"

namespace driftscope {
namespace {

float scale_f64(const RmsNormArguments& arguments, const float* row) {
  std::vector<double> squares(static_cast<std::size_t>(arguments.width));
  for (std::size_t i = 0; i < squares.size(); ++i) {
    squares[i] = double{row[i]} * double{row[i]};  // exact: 24 + 24 bits fit in 53
  }
  const double sum = reduce_sum_f64(arguments.plan, squares.data(), arguments.width);
  const double mean = sum / static_cast<double>(arguments.width);
  return static_cast<float>(1.0 / std::sqrt(mean + double{arguments.epsilon}));
}

}  // namespace

float rmsnorm_scale(const RmsNormArguments& arguments, const float* row) {
  if (arguments.plan.accumulator == Accumulator::f64) return scale_f64(arguments, row);
  const float sum = reduce_dot(arguments.plan, row, row, arguments.width);
  const float mean = sum / static_cast<float>(arguments.width);
  return 1.0F / std::sqrt(mean + arguments.epsilon);
}

void rmsnorm_rows_scalar(const RmsNormArguments& arguments, std::int64_t begin, std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    const float* x = arguments.x + r * arguments.width;
    float* y = arguments.y + r * arguments.width;
    const float scale = rmsnorm_scale(arguments, x);
    for (std::int64_t i = 0; i < arguments.width; ++i) {
      const float normalised = round_to(arguments.normalised_dtype, x[i] * scale);
      y[i] = canonical_nan(round_to(arguments.output_dtype, normalised * arguments.weight[i]));
    }
  }
}

void add_residual_scalar(float* residual, const float* delta, std::int64_t count, Dtype dtype) {
  for (std::int64_t i = 0; i < count; ++i)
    residual[i] = canonical_nan(round_to(dtype, residual[i] + delta[i]));
}

}  // namespace driftscope
