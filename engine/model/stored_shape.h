// SPDX-License-Identifier: Apache-2.0
// The shape under which a file holds a tensor, and the way from there to the bound one.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/checkpoint.h"
#include "engine/model/tensor_table.h"

namespace driftscope {

struct StoredShape {
  std::vector<std::int64_t> sizes;  // as in the file
  std::vector<std::string> keys;    // of config.json, for each size
};

[[nodiscard]] StoredShape stored_shape(std::array<Dimension, 2> bound, const Stored& stored,
                                       const ModelDescription& description);

// `view` has the stored shape. Returns the bound tensor; `expert`: its index where stacked.
[[nodiscard]] TensorView undo_storage(TensorView view, std::array<Dimension, 2> bound,
                                      const Stored& stored, const ModelDescription& description,
                                      std::int64_t expert);

}  // namespace driftscope
