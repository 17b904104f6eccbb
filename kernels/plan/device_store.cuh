// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/plan/device.cuh"

namespace driftscope::cuda {

// narrow() of dtype.h for one element.
__device__ inline void store(const Global<void>& target, Dtype dtype, std::int64_t index,
                             float value) {
  if (dtype == Dtype::f32) {
    global_cast<float>(target)[index] = value;
  } else {
    global_cast<std::uint16_t>(target)[index] =
        dtype == Dtype::bf16 ? exact::bf16_narrowed(value) : exact::f16_narrowed(value);
  }
}

}  // namespace driftscope::cuda
