// SPDX-License-Identifier: Apache-2.0
// The rotary embedding's part of config.json.
#pragma once

#include "engine/model/checkpoint.h"
#include "engine/model/config_fields.h"

namespace driftscope {

// Reads rope_theta with rope_scaling, or rope_parameters. Refuses scaling that is not
// supported, and two spellings that contradict each other.
void read_rope(ConfigFields& fields, ModelDescription& description);

}  // namespace driftscope
