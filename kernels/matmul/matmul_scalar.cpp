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

void run_int8_tile(const Int8Job& job) {
  for (std::int64_t i = 0; i < job.m; ++i) {
    for (std::int64_t j = 0; j < job.n; ++j) {
      std::int32_t sum = 0;
      for (std::int64_t k = 0; k < job.length; ++k) {
        sum += std::int32_t{job.x[i * job.x_stride + k]} * job.w[j * job.w_stride + k];
      }
      job.out[i * job.n + j] = sum;
    }
  }
}

}  // namespace

const MatmulKernels kScalarKernels = {
    .vector_width = 0,
    .place_terms = 1,
    .tile_rows = 0,
    .tile_outputs = 0,
    .direct = nullptr,
    .pack = nullptr,
    .gemm = nullptr,
    .finish = run_finish,
    .generic = run_generic,
    .codes = nullptr,
    .dequantise = nullptr,
    .int8_tile = run_int8_tile,
};

}  // namespace driftscope::matmul_detail
