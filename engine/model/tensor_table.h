// SPDX-License-Identifier: Apache-2.0
// Which tensors a checkpoint holds: names, shapes, when each is there and how the file holds it.
//
// A `Naming` is the set of tables of one family of files. Another format has one of its own: rows
// with its names for the same members and presences (that is all that is_present() and
// dimension_size() depend on), `layer_prefix` "blk." and one empty prefix, given to
// bind_tensors(). A family lists only the rows that its files can have; a row whose presence is
// false for a model is not looked up.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/model/checkpoint.h"

namespace driftscope {

// The tensors outside the layers.
struct ModelTensors {
  TensorView embedding;
  TensorView final_norm, final_norm_bias;
  TensorView lm_head;  // absent where tied
  TensorView position_embedding;
};

// A dimension of a weight, by the keys of config.json that decide it.
enum class Dimension : std::uint8_t {
  one,  // the tensor has no second dimension
  hidden,
  query,      // heads * head_dim
  key_value,  // kv_heads * head_dim
  head_dim,
  heads,
  intermediate,
  vocabulary,
  positions,
  experts,
  expert_intermediate,
  shared_intermediate,
  single,  // 1, written as a dimension
};

enum class TensorPresence : std::uint8_t {
  always,
  untied,
  learned_positions,
  layer_norm,  // the bias of a norm
  post_norms,
  qkv_bias,
  output_bias,
  qk_norm,
  sinks,
  // By the layer, from here on.
  dense,            // the layer has no experts
  dense_gate,       // and a gate
  dense_bias,       // dense, and mlp_bias
  dense_gate_bias,  // and a gate
  sparse,           // it has experts
  router_bias,      // and their router a bias
  expert_bias,
  shared_expert,
};

// How a file holds a tensor that is bound as [outputs, inputs] of its own.
struct Stored {
  // Rows of a fused tensor: q, k, v one after another, or gate and up.
  enum class Part : std::uint8_t { whole, q, k, v, gate, up };
  // Rows of a fused tensor that take turns: gate, up, gate, up …
  enum class Turn : std::uint8_t { all, even, odd };
  Part part = Part::whole;
  Turn turn = Turn::all;
  bool transposed = false;  // [inputs, outputs]
  bool stacked = false;     // the experts of a layer in one tensor, [experts, …]
  bool plus_one = false;    // the file holds one less (norm weights)
  // Rows of a head are ordered for rotation of pairs (2i, 2i + 1), not (i, i + head_dim / 2).
  bool paired_rows = false;
};

struct ModelTensorRow {
  std::string_view name;
  TensorView ModelTensors::*member;
  std::array<Dimension, 2> shape;  // as it is bound
  TensorPresence presence = TensorPresence::always;
  Stored stored = {};
  bool in_head = false;  // named by NamePrefix::head, not by ::body
};

struct LayerTensorRow {
  std::string_view suffix;  // after "model.layers.N."
  TensorView LayerTensors::*member;
  std::array<Dimension, 2> shape;  // as it is bound
  TensorPresence presence = TensorPresence::always;
  Stored stored = {};
};

// A tensor of each expert of a layer.
struct ExpertTensorRow {
  // After "model.layers.N."; the number of the expert follows unless they are stacked.
  std::string_view prefix;
  std::string_view suffix;  // after that number
  TensorView ExpertTensors::*member;
  std::array<Dimension, 2> shape;  // as it is bound
  TensorPresence presence = TensorPresence::sparse;
  Stored stored = {};
};

struct NamePrefix {
  std::string_view body;  // before the names of the decoder's tensors
  std::string_view head;  // before that of the output projection
};

struct Naming {
  std::vector<NamePrefix> prefixes;           // the first with which the embedding is there counts
  std::vector<ModelTensorRow> model;          // the embedding first
  std::string_view layer_prefix = "layers.";  // the number of the layer and a dot follow
  std::vector<LayerTensorRow> layers;
  std::vector<ExpertTensorRow> experts;
  std::string_view described_by = "config.json";  // what the sizes come from, in messages
};

// Names in Hugging Face layout of the description's model_type. Lives for ever.
[[nodiscard]] const Naming& huggingface_naming(const ModelDescription& description);

[[nodiscard]] bool is_present(TensorPresence presence, const ModelDescription& description,
                              std::int64_t layer);
[[nodiscard]] std::int64_t dimension_size(Dimension dimension, const ModelDescription& description);
// The keys of config.json as they are named in a message ("num_attention_heads * head_dim").
[[nodiscard]] std::string_view dimension_keys(Dimension dimension);

}  // namespace driftscope
