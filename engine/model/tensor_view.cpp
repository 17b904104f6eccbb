// SPDX-License-Identifier: Apache-2.0
// Sizes that follow from shapes.
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

std::int64_t ModelDescription::parameters() const {
  std::int64_t layer = 0;
  for (const LayerTensorRow& row : layer_tensor_table()) {
    if (!is_present(row.presence, *this)) continue;
    layer += dimension_size(row.shape[0], *this) * dimension_size(row.shape[1], *this);
  }
  const std::int64_t embeddings = vocabulary * hidden * (tied_embeddings ? 1 : 2);
  return embeddings + hidden + layers * layer;
}

}  // namespace driftscope
