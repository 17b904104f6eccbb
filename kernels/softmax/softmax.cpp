// SPDX-License-Identifier: Apache-2.0
#include "kernels/softmax/softmax.h"

#include <algorithm>
#include <array>

#include "kernels/plan/portable_math.h"
#include "kernels/softmax/softmax_rows.h"

namespace driftscope {
namespace {

constexpr std::array kVariants = {
    SoftmaxVariant{"scalar", Isa::scalar, Determinism::device_to_device, true, softmax_row_scalar},
#if defined(__x86_64__)
    SoftmaxVariant{"avx2", Isa::avx2, Determinism::device_to_device, true, softmax_row_avx2},
    SoftmaxVariant{"avx512", Isa::avx512, Determinism::device_to_device, true, softmax_row_avx512},
#endif
};

}  // namespace

std::span<const SoftmaxVariant> softmax_variants() { return kVariants; }

void softmax_row(const float* x, float* y, std::int64_t count, const ReductionPlan& plan,
                 Dtype compute_dtype, Dtype output_dtype, Isa isa) {
  for (const SoftmaxVariant& variant : kVariants) {
    if (variant.isa == isa) return variant.run(x, y, count, plan, compute_dtype, output_dtype);
  }
  kVariants[0].run(x, y, count, plan, compute_dtype, output_dtype);
}

void softmax_reference(const float* x, double* y, std::int64_t count) {
  if (count <= 0) return;
  const double max = *std::max_element(x, x + count);
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i) sum += y[i] = portable::exp(double{x[i]} - max);
  for (std::int64_t i = 0; i < count; ++i) y[i] /= sum;
}

}  // namespace driftscope
