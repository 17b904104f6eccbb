// SPDX-License-Identifier: Apache-2.0
// The tensors of a model in their places, from whatever source and under whatever names.
#pragma once

#include <string>
#include <vector>

#include "engine/model/checkpoint.h"
#include "engine/model/tensor_source.h"

namespace driftscope {

struct BoundTensors {
  TensorView embedding;
  TensorView final_norm, final_norm_bias;
  TensorView lm_head;  // absent where tied
  TensorView position_embedding;
  std::vector<LayerTensors> layers;
};

// Looks up every tensor that the description asks for, under Hugging Face names, and checks its
// shape. `config_name` begins messages about the description. Errors: malformed, naming the file,
// the tensor and the key that decides its shape.
[[nodiscard]] Result<BoundTensors> bind_tensors(const TensorSource& source,
                                                const ModelDescription& description,
                                                const std::string& config_name);

}  // namespace driftscope
