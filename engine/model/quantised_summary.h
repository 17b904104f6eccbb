// SPDX-License-Identifier: Apache-2.0
// What a quantised checkpoint says of itself, for the envelope and the doctor.
#pragma once

#include <filesystem>

#include "engine/model/bound_tensors.h"
#include "engine/model/checkpoint.h"
#include "engine/model/quantised_config.h"
#include "engine/model/tensor_source.h"

namespace driftscope {

// Empty for QuantisedMethod::none.
[[nodiscard]] StoredQuantisation stored_quantisation(const QuantisedConfig& config,
                                                     const TensorSource& source,
                                                     const BoundTensors& tensors,
                                                     const std::filesystem::path& directory);

}  // namespace driftscope
