// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm/rmsnorm.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "kernels/rmsnorm/rmsnorm_rows.h"

namespace driftscope {
namespace {

using RowsFunction = void (*)(const RmsNormArguments&, std::int64_t, std::int64_t);
using AddFunction = void (*)(float*, const float*, std::int64_t, Dtype);

// About as many elements as pay for handing a task to a thread.
constexpr std::int64_t kElementsPerTask = 16384;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

template <RowsFunction rows_function>
void run(const RmsNormArguments& arguments, Parallel& parallel) {
  assert(arguments.width > 0 && arguments.rows >= 0);
  const std::int64_t rows_per_task = std::max<std::int64_t>(1, kElementsPerTask / arguments.width);
  const std::int64_t tasks = ceil_div(arguments.rows, rows_per_task);
  const auto task = [&](std::size_t index, int) {
    const std::int64_t begin = static_cast<std::int64_t>(index) * rows_per_task;
    rows_function(arguments, begin, std::min(arguments.rows, begin + rows_per_task));
  };
  parallel.run(static_cast<std::size_t>(tasks), task);
}

constexpr std::array kVariants = {
    RmsNormVariant{"scalar", Isa::scalar, Determinism::device_to_device, true,
                   run<rmsnorm_rows_scalar>},
#if defined(__x86_64__)
    RmsNormVariant{"avx2", Isa::avx2, Determinism::device_to_device, true, run<rmsnorm_rows_avx2>},
    RmsNormVariant{"avx512", Isa::avx512, Determinism::device_to_device, true,
                   run<rmsnorm_rows_avx512>},
#endif
};

AddFunction add_function([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::scalar:
      return add_residual_scalar;
    case Isa::avx2:
      return add_residual_avx2;
    case Isa::avx512:
      return add_residual_avx512;
  }
#endif
  return add_residual_scalar;
}

}  // namespace

std::span<const RmsNormVariant> rmsnorm_variants() { return kVariants; }

void rmsnorm(const RmsNormArguments& arguments, Isa isa, Parallel& parallel) {
  for (const RmsNormVariant& variant : kVariants) {
    if (variant.isa == isa) return variant.run(arguments, parallel);
  }
  kVariants[0].run(arguments, parallel);
}

void rmsnorm_reference(const RmsNormArguments& arguments, double* y) {
  for (std::int64_t r = 0; r < arguments.rows; ++r) {
    const float* x = arguments.x + r * arguments.width;
    double sum = 0.0;
    for (std::int64_t i = 0; i < arguments.width; ++i) sum += double{x[i]} * double{x[i]};
    const double mean = sum / static_cast<double>(arguments.width);
    const double scale = 1.0 / std::sqrt(mean + double{arguments.epsilon});
    for (std::int64_t i = 0; i < arguments.width; ++i) {
      y[r * arguments.width + i] = double{x[i]} * scale * double{arguments.weight[i]};
    }
  }
}

void add_residual(float* residual, const float* delta, std::int64_t count, Dtype dtype, Isa isa,
                  Parallel& parallel) {
  const AddFunction add = add_function(isa);
  const auto task = [&](std::size_t index, int) {
    const std::int64_t begin = static_cast<std::int64_t>(index) * kElementsPerTask;
    add(residual + begin, delta + begin, std::min(kElementsPerTask, count - begin), dtype);
  };
  parallel.run(static_cast<std::size_t>(ceil_div(count, kElementsPerTask)), task);
}

}  // namespace driftscope
