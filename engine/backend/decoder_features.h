// SPDX-License-Identifier: Apache-2.0
// What a model asks of a backend beyond the Llama family's decoder.
#pragma once

#include <string>
#include <vector>

#include "engine/model/checkpoint.h"

namespace driftscope {

// Phrases as they are named in a message ("attention sinks"), empty for a decoder with RMS norms,
// gated SiLU, rotation of whole heads by one set of angles and the same window in all layers
// (mixtures of experts without biases included).
[[nodiscard]] std::vector<std::string> features_beyond_llama(const ModelDescription& model);

}  // namespace driftscope
