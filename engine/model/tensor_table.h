// SPDX-License-Identifier: Apache-2.0
// Which tensors a Llama-like checkpoint holds: names, shapes and when each is there.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/model/checkpoint.h"

namespace driftscope {

// A dimension of a weight, by the keys of config.json that decide it.
enum class Dimension : std::uint8_t {
  one,  // the tensor has no second dimension
  hidden,
  query,      // heads * head_dim
  key_value,  // kv_heads * head_dim
  head_dim,
  intermediate,
  vocabulary,
};

enum class TensorPresence : std::uint8_t { always, qkv_bias, output_bias, mlp_bias, qk_norm };

struct LayerTensorRow {
  std::string_view suffix;  // after "model.layers.N."
  TensorView LayerTensors::*member;
  std::array<Dimension, 2> shape;
  TensorPresence presence;
};

[[nodiscard]] std::span<const LayerTensorRow> layer_tensor_table();
[[nodiscard]] bool is_present(TensorPresence presence, const ModelDescription& description);
[[nodiscard]] std::int64_t dimension_size(Dimension dimension, const ModelDescription& description);
// The keys of config.json as they are named in a message ("num_attention_heads * head_dim").
[[nodiscard]] std::string_view dimension_keys(Dimension dimension);

}  // namespace driftscope
