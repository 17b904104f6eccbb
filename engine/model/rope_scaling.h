// SPDX-License-Identifier: Apache-2.0
// One group of scaling keys: rope_scaling, rope_parameters or a part of it.
#pragma once

#include <cstdint>

#include "engine/model/checkpoint.h"
#include "engine/model/config_fields.h"

namespace driftscope {

// What the group does not hold itself.
struct RopeContext {
  double theta = 10000.0;
  std::int64_t rotated = 0;                 // dimensions of a head that are rotated
  std::int64_t max_positions = 0;           // max_position_embeddings
  std::int64_t original_max_positions = 0;  // of the file's top level; 0: not there
  bool su_is_longrope = false;              // older names of it: "su", "yarn" (Phi-3)
};

// Refuses, in `group`: kinds that are not supported, numbers out of range, missing keys.
[[nodiscard]] RopeScaling read_rope_scaling(ConfigFields& group, const RopeContext& context);

}  // namespace driftscope
