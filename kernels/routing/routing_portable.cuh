// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/routing/routing_device.h"

namespace driftscope::cuda {

// Errors: cudaErrorInvalidValue (a plan or shape out of range), and those of the launch.
cudaError_t launch_route(const DeviceRouting& arguments, cudaStream_t stream);
cudaError_t launch_expert_sum(const DeviceExpertSum& arguments, cudaStream_t stream);
cudaError_t launch_sigmoid(const DeviceSigmoid& arguments, cudaStream_t stream);

}  // namespace driftscope::cuda
