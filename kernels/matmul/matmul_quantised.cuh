// SPDX-License-Identifier: Apache-2.0
// Internal: parts of launch_matmul(), which has checked the call and filled in its strides.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/matmul/matmul_device.h"

namespace driftscope::cuda {

// Codes that stand for f32 values.
cudaError_t launch_quantised_matmul(const DeviceMatmul& arguments, cudaStream_t stream);
// int8_dynamic: integer products of quantised rows.
cudaError_t launch_int8_matmul(const DeviceMatmul& arguments, cudaStream_t stream);

}  // namespace driftscope::cuda
