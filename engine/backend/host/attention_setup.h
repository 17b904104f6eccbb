// SPDX-License-Identifier: Apache-2.0
// From the knobs of attention to the kernel's arguments.
#pragma once

#include <span>
#include <string>

#include "engine/backend/host/rounding_scheme.h"
#include "engine/config/run_config.h"
#include "engine/model/checkpoint.h"
#include "kernels/attention/attention.h"

namespace driftscope {

// `sequences` must outlive the result.
[[nodiscard]] AttentionArguments attention_arguments(const RunConfig& config,
                                                     const ModelDescription& model,
                                                     const RoundingScheme& rounding,
                                                     std::span<const AttentionSequence> sequences);
// "attention: flash tile=64 lanes=32"
[[nodiscard]] std::string attention_note(const RunConfig& config);

}  // namespace driftscope
