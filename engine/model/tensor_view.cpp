// SPDX-License-Identifier: Apache-2.0
// Sizes, apart from the readers of files: the device's standalone checks need them without JSON.
#include <algorithm>
#include <array>

#include "engine/model/checkpoint.h"
#include "engine/model/tensor_table.h"

namespace driftscope {

std::int64_t TensorView::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::size_t TensorView::bytes() const {
  return static_cast<std::size_t>(elements()) * dtype_size(dtype);
}

bool ExpertDescription::in_layer(std::int64_t layer) const {
  return experts > 0 && (layer + 1) % step == 0 &&
         !std::binary_search(dense_layers.begin(), dense_layers.end(), layer);
}

std::int64_t ModelDescription::parameters() const {
  const auto elements = [this](std::array<Dimension, 2> shape) {
    return dimension_size(shape[0], *this) * dimension_size(shape[1], *this);
  };
  std::int64_t total = vocabulary * hidden * (tied_embeddings ? 1 : 2) + hidden;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (const LayerTensorRow& row : layer_tensor_table()) {
      if (is_present(row.presence, *this, layer)) total += elements(row.shape);
    }
    if (!moe.in_layer(layer)) continue;
    for (const ExpertTensorRow& row : expert_tensor_table()) {
      if (is_present(row.presence, *this, layer)) total += moe.experts * elements(row.shape);
    }
  }
  return total;
}

}  // namespace driftscope
