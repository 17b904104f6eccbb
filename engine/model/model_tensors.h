// SPDX-License-Identifier: Apache-2.0
// Every tensor of a model in the order of the network.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/model/bound_tensors.h"
#include "engine/model/checkpoint.h"

namespace driftscope {

using VisitTensor = std::function<void(const TensorView&)>;
// Those that are present, each once; a tied output is not visited.
void for_each_tensor(const ModelCheckpoint& model, const VisitTensor& visit);
void for_each_tensor(const LayerTensors& layer, const VisitTensor& visit);

}  // namespace driftscope
