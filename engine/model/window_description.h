// SPDX-License-Identifier: Apache-2.0
// The keys of config.json that limit attention to a window.
#pragma once

#include "engine/model/config_fields.h"
#include "engine/model/description.h"

namespace driftscope {

// Fills sliding_window and sliding_layers; the number of layers is known already. Refuses, in
// `fields`, layer types that are not supported.
void read_window(ConfigFields& fields, const Architecture& architecture,
                 ModelDescription& description);

}  // namespace driftscope
