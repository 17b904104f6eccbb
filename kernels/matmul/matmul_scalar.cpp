// SPDX-License-Identifier: Apache-2.0
// The definition, one output at a time: slow without hardware fma, exact everywhere.
#include "kernels/matmul/matmul_generic.h"

namespace driftscope::matmul_detail {
namespace {

void run_finish(float* y, const float* bias, std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j) {
    y[j] = canonical_nan(bias == nullptr ? y[j] : y[j] + bias[j]);
  }
}

}  // namespace

const MatmulKernels kScalarKernels = {
    .vector_width = 0,
    .tile_rows = 0,
    .tile_outputs = 0,
    .direct = nullptr,
    .pack = nullptr,
    .gemm = nullptr,
    .finish = run_finish,
    .generic = run_generic,
};

}  // namespace driftscope::matmul_detail
