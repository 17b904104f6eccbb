// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/rmsnorm/rmsnorm_device.h"

namespace driftscope::cuda {

// Errors: cudaErrorInvalidValue (a plan or shape out of range), and those of the launch.
cudaError_t launch_rmsnorm(const DeviceRmsNorm& arguments, cudaStream_t stream);
cudaError_t launch_add_residual(const DeviceAddResidual& arguments, cudaStream_t stream);

}  // namespace driftscope::cuda
