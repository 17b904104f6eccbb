// SPDX-License-Identifier: Apache-2.0
// Rotation as a GGUF file describes it: keys below "<architecture>.rope." and tensors of divisors.
#pragma once

#include "engine/model/gguf_description.h"
#include "engine/model/gguf_fields.h"

namespace driftscope {

// Fills theta, rotary_dim and the scaling. Errors: malformed.
[[nodiscard]] Result<void> read_gguf_rope(const GgufSource& source, GgufFields& fields,
                                          const GgufArchitecture& architecture,
                                          ModelDescription& description);

}  // namespace driftscope
