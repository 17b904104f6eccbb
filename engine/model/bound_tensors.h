// SPDX-License-Identifier: Apache-2.0
// The tensors of a model in their places, from whatever source and under whatever names.
#pragma once

#include <string>
#include <vector>

#include "engine/model/checkpoint.h"
#include "engine/model/tensor_source.h"
#include "engine/model/tensor_table.h"

namespace driftscope {

struct BoundTensors : ModelTensors {
  std::vector<LayerTensors> layers;
};

// Looks up every tensor that the description asks for, under the names of `naming`, checks its
// shape and undoes what `Stored` says (tensor_transforms.h). `config_name` begins messages about
// the description. Errors: malformed, naming the file, the tensor and the key that decides its
// shape.
[[nodiscard]] Result<BoundTensors> bind_tensors(const TensorSource& source,
                                                const ModelDescription& description,
                                                const std::string& config_name,
                                                const Naming& naming);
// Under Hugging Face names.
[[nodiscard]] Result<BoundTensors> bind_tensors(const TensorSource& source,
                                                const ModelDescription& description,
                                                const std::string& config_name);

}  // namespace driftscope
