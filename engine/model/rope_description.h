// SPDX-License-Identifier: Apache-2.0
// The rotary embedding's part of config.json.
#pragma once

#include "engine/model/checkpoint.h"
#include "engine/model/config_fields.h"
#include "engine/model/description.h"

namespace driftscope {

// Reads partial_rotary_factor and rope_theta with rope_scaling, or rope_parameters, for the model
// or per layer type. Head dimension, context and windows are known already. Refuses scaling that
// is not supported, and two spellings that contradict each other.
void read_rope(ConfigFields& fields, const Architecture& architecture,
               ModelDescription& description);

}  // namespace driftscope
