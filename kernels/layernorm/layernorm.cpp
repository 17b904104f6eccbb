// SPDX-License-Identifier: Apache-2.0
#include "kernels/layernorm/layernorm.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "kernels/layernorm/layernorm_rows.h"

namespace driftscope {
namespace {

using RowsFunction = void (*)(const LayerNormArguments&, std::int64_t, std::int64_t);

// About as many elements as pay for handing a task to a thread.
constexpr std::int64_t kElementsPerTask = 16384;

template <RowsFunction rows_function>
void run(const LayerNormArguments& arguments, Parallel& parallel) {
  assert(arguments.width > 0 && arguments.rows >= 0);
  const std::int64_t rows_per_task = std::max<std::int64_t>(1, kElementsPerTask / arguments.width);
  const std::int64_t tasks = (arguments.rows + rows_per_task - 1) / rows_per_task;
  const auto task = [&](std::size_t index, int) {
    const std::int64_t begin = static_cast<std::int64_t>(index) * rows_per_task;
    rows_function(arguments, begin, std::min(arguments.rows, begin + rows_per_task));
  };
  parallel.run(static_cast<std::size_t>(tasks), task);
}

constexpr std::array kVariants = {
    LayerNormVariant{"scalar", Isa::scalar, Determinism::device_to_device, true,
                     run<layernorm_rows_scalar>},
#if defined(__x86_64__)
    LayerNormVariant{"avx2", Isa::avx2, Determinism::device_to_device, true,
                     run<layernorm_rows_avx2>},
    LayerNormVariant{"avx512", Isa::avx512, Determinism::device_to_device, true,
                     run<layernorm_rows_avx512>},
#endif
};

}  // namespace

std::span<const LayerNormVariant> layernorm_variants() { return kVariants; }

void layernorm(const LayerNormArguments& arguments, Isa isa, Parallel& parallel) {
  for (const LayerNormVariant& variant : kVariants) {
    if (variant.isa == isa) return variant.run(arguments, parallel);
  }
  kVariants[0].run(arguments, parallel);
}

void layernorm_reference(const LayerNormArguments& arguments, double* y) {
  const auto count = static_cast<double>(arguments.width);
  for (std::int64_t r = 0; r < arguments.rows; ++r) {
    const float* x = arguments.x + r * arguments.width;
    double sum = 0.0;
    for (std::int64_t i = 0; i < arguments.width; ++i) sum += double{x[i]};
    const double mean = sum / count;
    double squares = 0.0;
    for (std::int64_t i = 0; i < arguments.width; ++i) {
      squares += (double{x[i]} - mean) * (double{x[i]} - mean);
    }
    const double scale = 1.0 / std::sqrt(squares / count + double{arguments.epsilon});
    for (std::int64_t i = 0; i < arguments.width; ++i) {
      y[r * arguments.width + i] =
          (double{x[i]} - mean) * scale * double{arguments.weight[i]} + double{arguments.bias[i]};
    }
  }
}

}  // namespace driftscope
