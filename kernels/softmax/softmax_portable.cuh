// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/softmax/softmax_device.h"

namespace driftscope::cuda {

// Errors: cudaErrorInvalidValue (a plan or shape out of range), and those of the launch.
cudaError_t launch_softmax(const DeviceSoftmax& arguments, cudaStream_t stream);

}  // namespace driftscope::cuda
