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
  experts,
  expert_intermediate,
  shared_intermediate,
  single,  // 1, written as a dimension
};

enum class TensorPresence : std::uint8_t {
  always,
  qkv_bias,
  output_bias,
  qk_norm,
  // By the layer, from here on.
  dense,          // the layer has no experts
  dense_bias,     // and mlp_bias
  sparse_block,   // it has experts called "block_sparse_moe"
  sparse_mlp,     // it has experts called "mlp"
  shared_expert,  // and a shared one
};

struct LayerTensorRow {
  std::string_view suffix;  // after "model.layers.N."
  TensorView LayerTensors::*member;
  std::array<Dimension, 2> shape;
  TensorPresence presence;
};

// A tensor of each expert of a layer.
struct ExpertTensorRow {
  std::string_view prefix;  // after "model.layers.N."; the number of the expert follows
  std::string_view suffix;  // after that number
  TensorView ExpertTensors::*member;
  std::array<Dimension, 2> shape;
  TensorPresence presence;
};

[[nodiscard]] std::span<const LayerTensorRow> layer_tensor_table();
[[nodiscard]] std::span<const ExpertTensorRow> expert_tensor_table();
[[nodiscard]] bool is_present(TensorPresence presence, const ModelDescription& description,
                              std::int64_t layer);
[[nodiscard]] std::int64_t dimension_size(Dimension dimension, const ModelDescription& description);
// The keys of config.json as they are named in a message ("num_attention_heads * head_dim").
[[nodiscard]] std::string_view dimension_keys(Dimension dimension);

}  // namespace driftscope
