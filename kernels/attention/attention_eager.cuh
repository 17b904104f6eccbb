// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention/attention_device.h"

namespace driftscope::cuda {

// Called by launch_attention(), which has checked the rest.
cudaError_t launch_eager_attention(const DeviceAttention& arguments, cudaStream_t stream);

}  // namespace driftscope::cuda
