// SPDX-License-Identifier: Apache-2.0
#include "engine/model/tensor_table.h"

namespace driftscope {

bool is_present(TensorPresence presence, const ModelDescription& description, std::int64_t layer) {
  const ExpertDescription& moe = description.moe;
  const bool sparse = moe.in_layer(layer);
  switch (presence) {
    case TensorPresence::always:
      return true;
    case TensorPresence::untied:
      return !description.tied_embeddings;
    case TensorPresence::learned_positions:
      return description.learned_positions;
    case TensorPresence::layer_norm:
      return description.norm == NormKind::layer;
    case TensorPresence::post_norms:
      return description.post_norms;
    case TensorPresence::qkv_bias:
      return description.qkv_bias;
    case TensorPresence::output_bias:
      return description.output_bias;
    case TensorPresence::qk_norm:
      return description.qk_norm;
    case TensorPresence::sinks:
      return description.attention_sinks;
    case TensorPresence::dense:
      return !sparse;
    case TensorPresence::dense_gate:
      return !sparse && description.gated;
    case TensorPresence::dense_bias:
      return !sparse && description.mlp_bias;
    case TensorPresence::dense_gate_bias:
      return !sparse && description.mlp_bias && description.gated;
    case TensorPresence::sparse:
      return sparse;
    case TensorPresence::router_bias:
      return sparse && moe.router_bias;
    case TensorPresence::expert_bias:
      return sparse && moe.biases;
    case TensorPresence::shared_expert:
      return sparse && moe.shared_intermediate > 0;
  }
  return false;
}

std::int64_t dimension_size(Dimension dimension, const ModelDescription& description) {
  switch (dimension) {
    case Dimension::one:
    case Dimension::single:
      return 1;
    case Dimension::hidden:
      return description.hidden;
    case Dimension::query:
      return description.heads * description.head_dim;
    case Dimension::key_value:
      return description.kv_heads * description.head_dim;
    case Dimension::head_dim:
      return description.head_dim;
    case Dimension::heads:
      return description.heads;
    case Dimension::intermediate:
      return description.intermediate;
    case Dimension::vocabulary:
      return description.vocabulary;
    case Dimension::positions:
      return description.max_positions;
    case Dimension::experts:
      return description.moe.experts;
    case Dimension::expert_intermediate:
      return description.moe.intermediate;
    case Dimension::shared_intermediate:
      return description.moe.shared_intermediate;
  }
  return 0;
}

std::string_view dimension_keys(Dimension dimension) {
  switch (dimension) {
    case Dimension::one:
    case Dimension::single:
      return "";
    case Dimension::hidden:
      return "hidden_size";
    case Dimension::query:
      return "num_attention_heads * head_dim";
    case Dimension::key_value:
      return "num_key_value_heads * head_dim";
    case Dimension::head_dim:
      return "head_dim";
    case Dimension::heads:
      return "num_attention_heads";
    case Dimension::intermediate:
      return "intermediate_size";
    case Dimension::vocabulary:
      return "vocab_size";
    case Dimension::positions:
      return "max_position_embeddings";
    case Dimension::experts:
      return "the number of experts";
    case Dimension::expert_intermediate:
      return "the experts' intermediate size";
    case Dimension::shared_intermediate:
      return "shared_expert_intermediate_size";
  }
  return "";
}

}  // namespace driftscope
