// SPDX-License-Identifier: Apache-2.0
// The keys of config.json that describe a mixture of experts.
#pragma once

#include "engine/model/config_fields.h"
#include "engine/model/description.h"

namespace driftscope {

// Fills description.moe; hidden, layers and intermediate are known already. Refuses, in `fields`:
// more experts chosen than there are, layers that do not exist.
void read_experts(ConfigFields& fields, const Architecture& architecture,
                  ModelDescription& description);

}  // namespace driftscope
