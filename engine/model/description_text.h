// SPDX-License-Identifier: Apache-2.0
// What a description says, for people.
#pragma once

#include <string>

#include "engine/model/checkpoint.h"

namespace driftscope {

// "512, learned"; "4096, RoPE theta 1000000 linear by 8, in layers with the window theta 10000,
// sliding window 6 in 6 of 7 layers".
[[nodiscard]] std::string positions_text(const ModelDescription& model);

}  // namespace driftscope
