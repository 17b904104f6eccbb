// SPDX-License-Identifier: Apache-2.0
// Tensors of a quantised checkpoint under the names and in the shapes of the plain one.
#pragma once

#include <memory>

#include "engine/model/quantised_config.h"
#include "engine/model/tensor_source.h"

namespace driftscope {

// Shows `stored` as if it held plain weights: find("X.weight") gives a view whose decoder computes
// each value from codes and scales as quantised_decoders.h states. Tensors that the checkpoint
// holds as plain elements (ignored modules, norms, embeddings) come through as they are: the files
// say which, not the list in the configuration. `config.method` must not be none.
[[nodiscard]] std::unique_ptr<TensorSource> make_quantised_source(
    std::unique_ptr<TensorSource> stored, QuantisedConfig config);

}  // namespace driftscope
