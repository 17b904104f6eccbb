// SPDX-License-Identifier: Apache-2.0
// A thread an element.
#include "kernels/activation/activation_portable.cuh"

#include "kernels/plan/device.cuh"
#include "kernels/plan/portable_exp_functions.h"

namespace driftscope::cuda {

namespace {

__global__ void swiglu_elements(DeviceSwiglu a) {
  const Global<const float> gates(a.gate);
  const Global<const float> ups(a.up);
  const Global<float> y(a.y);
  const std::int64_t count = a.rows * a.width;
  for (std::int64_t i = thread_number(); i < count; i += threads_in_grid()) {
    const std::int64_t row = i / a.width;
    const std::int64_t column = i % a.width;
    const float gate = gates[row * a.gate_stride + column];
    const float divisor = __fadd_rn(1.0F, portable::exp_f32(-gate));
    const float silu = exact::rounded(a.silu_dtype, __fdiv_rn(gate, divisor));
    const float product = __fmul_rn(silu, ups[row * a.up_stride + column]);
    y[i] = exact::with_canonical_nan(exact::rounded(a.output_dtype, product));
  }
}

}  // namespace

cudaError_t launch_swiglu(const DeviceSwiglu& a, cudaStream_t stream) {
  if (a.rows < 0 || a.width < 0) return cudaErrorInvalidValue;
  if (a.rows * a.width == 0) return cudaSuccess;
  return launch(swiglu_elements, "swiglu_elements", element_shape(a.rows * a.width), stream, a);
}

}  // namespace driftscope::cuda
