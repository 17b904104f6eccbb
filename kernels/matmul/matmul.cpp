// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/matmul.h"

#include <array>
#include <cassert>
#include <vector>

#include "kernels/matmul/matmul_driver.h"

namespace driftscope {

namespace {

using matmul_detail::kScalarKernels;
using matmul_detail::run_matmul;

void run_scalar(const MatmulArguments& arguments, Parallel& parallel) {
  run_matmul(arguments, kScalarKernels, kScalarKernels, parallel);
}

#if defined(__x86_64__)
using matmul_detail::kAvx2Kernels;
using matmul_detail::kAvx512Kernels;

void run_avx2(const MatmulArguments& arguments, Parallel& parallel) {
  run_matmul(arguments, kAvx2Kernels, kAvx2Kernels, parallel);
}

// Eight lanes fill half a vector; the narrower kernels serve them.
void run_avx512(const MatmulArguments& arguments, Parallel& parallel) {
  const bool narrow = arguments.plan.lanes < kAvx512Kernels.vector_width;
  run_matmul(arguments, narrow ? kAvx2Kernels : kAvx512Kernels, kAvx512Kernels, parallel);
}

// Where a row of the batch is computed, and beside whom, never matters; nor does the machine.
constexpr std::array kVariants = {
    MatmulVariant{"scalar", Isa::scalar, Determinism::device_to_device, true, run_scalar},
    MatmulVariant{"avx2", Isa::avx2, Determinism::device_to_device, true, run_avx2},
    MatmulVariant{"avx512", Isa::avx512, Determinism::device_to_device, true, run_avx512},
};
#else
constexpr std::array kVariants = {
    MatmulVariant{"scalar", Isa::scalar, Determinism::device_to_device, true, run_scalar},
};
#endif

}  // namespace

std::span<const MatmulVariant> matmul_variants() { return kVariants; }

void matmul(const MatmulArguments& arguments, Isa isa, Parallel& parallel) {
  for (const MatmulVariant& variant : kVariants) {
    if (variant.portable && variant.isa == isa) return variant.run(arguments, parallel);
  }
  run_scalar(arguments, parallel);
}

namespace {

WeightView part_of(const WeightView& weight, std::int64_t row, std::int64_t rows,
                   std::int64_t column, std::int64_t columns) {
  assert(row >= 0 && rows >= 0 && row + rows <= weight.rows);
  assert(column >= 0 && columns >= 0 && column + columns <= weight.columns);
  WeightView part = weight;
  part.data =
      static_cast<const char*>(weight.data) +
      (row * weight.stride() + column) * static_cast<std::int64_t>(dtype_size(weight.dtype));
  part.rows = rows;
  part.columns = columns;
  part.row_stride = weight.stride();
  return part;
}

}  // namespace

WeightView row_slice(const WeightView& weight, std::int64_t first, std::int64_t count) {
  return part_of(weight, first, count, 0, weight.columns);
}

WeightView column_slice(const WeightView& weight, std::int64_t first, std::int64_t count) {
  return part_of(weight, 0, weight.rows, first, count);
}

void matmul_reference(const MatmulArguments& arguments, double* y) {
  const std::int64_t k = arguments.weight.columns;
  const std::int64_t n = arguments.weight.rows;
  const std::int64_t x_stride = arguments.x_stride == 0 ? k : arguments.x_stride;
  const std::int64_t y_stride = arguments.y_stride == 0 ? n : arguments.y_stride;
  std::vector<float> w(static_cast<std::size_t>(k));
  for (std::int64_t j = 0; j < n; ++j) {
    const auto* row = static_cast<const char*>(arguments.weight.data) +
                      j * arguments.weight.stride() *
                          static_cast<std::int64_t>(dtype_size(arguments.weight.dtype));
    widen(arguments.weight.dtype, row, w.data(), w.size());
    for (std::int64_t i = 0; i < arguments.m; ++i) {
      const float* x = arguments.x + i * x_stride;
      double sum = 0.0;
      for (std::int64_t t = 0; t < k; ++t) {
        sum += static_cast<double>(x[t]) * static_cast<double>(w[static_cast<std::size_t>(t)]);
      }
      if (arguments.bias != nullptr) sum += static_cast<double>(arguments.bias[j]);
      y[i * y_stride + j] = sum;
    }
  }
}

}  // namespace driftscope
