// SPDX-License-Identifier: Apache-2.0
// From the knobs of attention to the kernel's arguments.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/backend/host/rounding_scheme.h"
#include "engine/config/run_config.h"
#include "engine/model/checkpoint.h"
#include "kernels/attention/attention.h"

namespace driftscope {

// Of one layer. `sequences` and `sinks` (one for each head, or null) must outlive the result.
[[nodiscard]] AttentionArguments attention_arguments(const RunConfig& config,
                                                     const ModelDescription& model,
                                                     const RoundingScheme& rounding,
                                                     std::span<const AttentionSequence> sequences,
                                                     std::int64_t layer = 0,
                                                     const float* sinks = nullptr);
// "attention: flash tile=64 lanes=32"
[[nodiscard]] std::string attention_note(const RunConfig& config);
// With what the model asks for: "… softcap=50", "… sinks", "… window=4096 in 13 of 26 layers".
[[nodiscard]] std::string attention_note(const RunConfig& config, const ModelDescription& model);

}  // namespace driftscope
