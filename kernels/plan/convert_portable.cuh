// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/plan/convert_device.h"

namespace driftscope::cuda {

// Errors: cudaErrorInvalidValue (a shape out of range), and those of the launch.
cudaError_t launch_embed(const DeviceEmbed& arguments, cudaStream_t stream);
cudaError_t launch_round(const DeviceRound& arguments, cudaStream_t stream);
cudaError_t launch_gather(const DeviceGather& arguments, cudaStream_t stream);
cudaError_t launch_narrow(const DeviceNarrow& arguments, cudaStream_t stream);

}  // namespace driftscope::cuda
