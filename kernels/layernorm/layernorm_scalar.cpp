// SPDX-License-Identifier: Apache-2.0
// The scalar definition: the oracle of the other variants.
#include <cmath>

#include "kernels/layernorm/layernorm_rows.h"

namespace driftscope {

void layernorm_rows_scalar(const LayerNormArguments& arguments, std::int64_t begin,
                           std::int64_t end) {
  const std::int64_t width = arguments.width;
  const auto count = static_cast<float>(width);
  for (std::int64_t r = begin; r < end; ++r) {
    const float* x = arguments.x + r * width;
    float* y = arguments.y + r * width;
    const float mean = reduce_sum(arguments.plan, x, width) / count;
    for (std::int64_t i = 0; i < width; ++i) y[i] = x[i] - mean;
    const float variance = reduce_dot(arguments.plan, y, y, width) / count;
    const float scale = 1.0F / std::sqrt(variance + arguments.epsilon);
    for (std::int64_t i = 0; i < width; ++i) {
      const float value = std::fma(y[i] * scale, arguments.weight[i], arguments.bias[i]);
      y[i] = canonical_nan(round_to(arguments.output_dtype, value));
    }
  }
}

}  // namespace driftscope
