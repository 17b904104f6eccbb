// SPDX-License-Identifier: Apache-2.0
// Whether the matmul kernel that a configuration names can run here.
#pragma once

#include "engine/backend/host/host_weights.h"
#include "engine/config/run_config.h"
#include "kernels/base/result.h"

namespace driftscope {

// bf16_dot needs a processor with AVX512-BF16, bf16 weights in every matmul, and a plan of 16, 32
// or 64 lanes without f64 or kahan accumulator. Errors: engine, naming the knob and what would
// help.
[[nodiscard]] Result<void> check_matmul_kernel(const RunConfig& config, const HostWeights& weights);

}  // namespace driftscope
