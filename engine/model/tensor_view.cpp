// SPDX-License-Identifier: Apache-2.0
// Sizes, apart from the readers of files: the device's standalone checks need them without JSON.
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>

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

void TensorView::values(std::int64_t first, std::int64_t count, float* target) const {
  assert(first >= 0 && count >= 0 && first + count <= elements());
  if (decoder != nullptr) {
    decoder->decode(first, count, target);
    return;
  }
  const auto* bytes = static_cast<const std::byte*>(data);
  widen(dtype, bytes + static_cast<std::size_t>(first) * dtype_size(dtype), target,
        static_cast<std::size_t>(count));
}

void TensorView::convert(Dtype target_dtype, std::byte* target) const {
  if (decoder == nullptr && dtype == target_dtype) {
    std::memcpy(target, data, bytes());
    return;
  }
  constexpr std::int64_t kPiece = 4096;
  std::array<float, kPiece> piece{};
  const std::int64_t count = elements();
  for (std::int64_t i = 0; i < count; i += kPiece) {
    const std::int64_t n = std::min(kPiece, count - i);
    values(i, n, piece.data());
    narrow(target_dtype, piece.data(),
           target + static_cast<std::size_t>(i) * dtype_size(target_dtype),
           static_cast<std::size_t>(n));
  }
}

bool ExpertDescription::in_layer(std::int64_t layer) const {
  return experts > 0 && (layer + 1) % step == 0 &&
         !std::binary_search(dense_layers.begin(), dense_layers.end(), layer);
}

std::int64_t ModelDescription::window(std::int64_t layer) const {
  if (sliding_layers.empty()) return sliding_window;
  return sliding_layers[static_cast<std::size_t>(layer)] != 0 ? sliding_window : 0;
}

bool ModelDescription::rotates_locally(std::int64_t layer) const {
  return local_rope_theta.has_value() && window(layer) > 0;
}

double ModelDescription::query_scale() const {
  return attention_scale > 0.0 ? attention_scale : 1.0 / std::sqrt(static_cast<double>(head_dim));
}

namespace {
const TensorView kAbsent;
const StoredQuantisation kPlain;
}  // namespace

const TensorView& ModelCheckpoint::final_norm_bias() const { return kAbsent; }
const TensorView& ModelCheckpoint::position_embedding() const { return kAbsent; }
const StoredQuantisation& ModelCheckpoint::quantisation() const { return kPlain; }

std::int64_t ModelDescription::parameters() const {
  const auto elements = [this](std::array<Dimension, 2> shape) {
    return dimension_size(shape[0], *this) * dimension_size(shape[1], *this);
  };
  const Naming& naming = huggingface_naming(*this);
  std::int64_t total = 0;
  for (const ModelTensorRow& row : naming.model) {
    if (is_present(row.presence, *this, 0)) total += elements(row.shape);
  }
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (const LayerTensorRow& row : naming.layers) {
      if (is_present(row.presence, *this, layer)) total += elements(row.shape);
    }
    if (!moe.in_layer(layer)) continue;
    for (const ExpertTensorRow& row : naming.experts) {
      if (is_present(row.presence, *this, layer)) total += moe.experts * elements(row.shape);
    }
  }
  return total;
}

}  // namespace driftscope
