// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention/attention_device.h"

namespace driftscope::cuda {

// Errors: cudaErrorInvalidValue (a plan or shape out of range; a head too wide for shared memory),
// and those of the launch.
cudaError_t launch_attention(const DeviceAttention& arguments, cudaStream_t stream);
cudaError_t launch_store_kv(const DeviceStoreKv& arguments, cudaStream_t stream);

}  // namespace driftscope::cuda
