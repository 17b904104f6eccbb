// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/matmul.h"

#include <array>
#include <cassert>
#include <vector>

#include "kernels/matmul/matmul_driver.h"
#include "kernels/quant/quantise.h"

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

using matmul_detail::kAvx512Bf16Kernels;

void run_bf16_dot(const MatmulArguments& arguments, Parallel& parallel) {
  assert(has_avx512_bf16() && bf16_dot_accepts(arguments.plan));
  assert(arguments.weight.dtype == Dtype::bf16);
  run_matmul(arguments, kAvx512Bf16Kernels, kAvx512Bf16Kernels, parallel);
}

// Where a row of the batch is computed, and beside whom, never matters; nor does the machine. That
// holds for every weight format: quantised weights become the same f32 values everywhere, and the
// integer sums of int8_dynamic are exact, so within a chunk not even their order matters. Only
// bf16_dot's instruction rounds inside as its maker likes.
constexpr std::array kVariants = {
    MatmulVariant{"scalar", Isa::scalar, Determinism::device_to_device, true, run_scalar},
    MatmulVariant{"avx2", Isa::avx2, Determinism::device_to_device, true, run_avx2},
    MatmulVariant{"avx512", Isa::avx512, Determinism::device_to_device, true, run_avx512},
    MatmulVariant{"bf16_dot", Isa::avx512, Determinism::batch_invariant, false, run_bf16_dot},
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

bool bf16_dot_accepts(const ReductionPlan& plan) {
  return plan.lanes >= 16 && plan.lanes <= 64 && plan.accumulator != Accumulator::f64 &&
         plan.accumulator != Accumulator::kahan;
}

void matmul_bf16_dot([[maybe_unused]] const MatmulArguments& arguments,
                     [[maybe_unused]] Parallel& parallel) {
#if defined(__x86_64__)
  run_bf16_dot(arguments, parallel);
#else
  assert(false && "has_avx512_bf16() is false here");
#endif
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
  if (weight.quantised.present()) {
    part.quantised = weight.quantised.from_row(row);
    part.quantised.first_term += column;
    part.data = part.quantised.codes;
  }
  part.rows = rows;
  part.columns = columns;
  part.row_stride = weight.stride();
  return part;
}

// Row j of the weights as f32.
void read_weights(const WeightView& weight, std::int64_t j, std::vector<float>& w) {
  if (weight.quantised.present()) {
    return dequantise_row(weight.quantised, j, 0, weight.columns, w.data());
  }
  const auto* row = static_cast<const char*>(weight.data) +
                    j * weight.stride() * static_cast<std::int64_t>(dtype_size(weight.dtype));
  widen(weight.dtype, row, w.data(), w.size());
}

// The inputs of the sums: x itself, or its codes times their scale, in f64.
std::vector<double> reference_inputs(const MatmulArguments& arguments) {
  const auto k = static_cast<std::size_t>(arguments.weight.columns);
  const auto rows = static_cast<std::size_t>(arguments.m);
  const std::size_t stride =
      arguments.x_stride == 0 ? k : static_cast<std::size_t>(arguments.x_stride);
  std::vector<double> x;
  for (std::size_t i = 0; i < rows; ++i) {
    x.insert(x.end(), arguments.x + i * stride, arguments.x + i * stride + k);
  }
  const QuantisedView& codes = arguments.weight.quantised;
  if (!codes.present() || codes.format != QuantFormat::int8_dynamic) return x;
  std::vector<std::int16_t> row(k);
  for (std::size_t i = 0; i < rows; ++i) {
    const float scale =
        quantise_activations(arguments.x + i * stride, arguments.weight.columns, row.data());
    for (std::size_t t = 0; t < k; ++t)
      x[i * k + t] = static_cast<double>(row[t]) * static_cast<double>(scale);
  }
  return x;
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
  const std::int64_t y_stride = arguments.y_stride == 0 ? n : arguments.y_stride;
  std::vector<float> w(static_cast<std::size_t>(k));
  const std::vector<double> inputs = reference_inputs(arguments);
  for (std::int64_t j = 0; j < n; ++j) {
    read_weights(arguments.weight, j, w);
    for (std::int64_t i = 0; i < arguments.m; ++i) {
      const double* x = inputs.data() + i * k;
      double sum = 0.0;
      for (std::int64_t t = 0; t < k; ++t) {
        sum += x[t] * static_cast<double>(w[static_cast<std::size_t>(t)]);
      }
      if (arguments.bias != nullptr) sum += static_cast<double>(arguments.bias[j]);
      y[i * y_stride + j] = sum;
    }
  }
}

}  // namespace driftscope
