// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/allreduce/all_reduce_device.h"

namespace driftscope::cuda {

// Errors: cudaErrorInvalidValue (a shape out of range), and those of the launch.
cudaError_t launch_all_reduce(const DeviceAllReduce& arguments, cudaStream_t stream);

}  // namespace driftscope::cuda
