// SPDX-License-Identifier: Apache-2.0
#include "engine/model/tensor_table.h"

namespace driftscope {
namespace {

using D = Dimension;
using L = LayerTensors;
using P = TensorPresence;

constexpr std::array<LayerTensorRow, 18> kLayerTensors{{
    {"input_layernorm.weight", &L::attention_norm, {D::hidden, D::one}, P::always},
    {"self_attn.q_proj.weight", &L::q, {D::query, D::hidden}, P::always},
    {"self_attn.k_proj.weight", &L::k, {D::key_value, D::hidden}, P::always},
    {"self_attn.v_proj.weight", &L::v, {D::key_value, D::hidden}, P::always},
    {"self_attn.q_proj.bias", &L::q_bias, {D::query, D::one}, P::qkv_bias},
    {"self_attn.k_proj.bias", &L::k_bias, {D::key_value, D::one}, P::qkv_bias},
    {"self_attn.v_proj.bias", &L::v_bias, {D::key_value, D::one}, P::qkv_bias},
    {"self_attn.q_norm.weight", &L::q_norm, {D::head_dim, D::one}, P::qk_norm},
    {"self_attn.k_norm.weight", &L::k_norm, {D::head_dim, D::one}, P::qk_norm},
    {"self_attn.o_proj.weight", &L::o, {D::hidden, D::query}, P::always},
    {"self_attn.o_proj.bias", &L::o_bias, {D::hidden, D::one}, P::output_bias},
    {"post_attention_layernorm.weight", &L::ffn_norm, {D::hidden, D::one}, P::always},
    {"mlp.gate_proj.weight", &L::gate, {D::intermediate, D::hidden}, P::always},
    {"mlp.up_proj.weight", &L::up, {D::intermediate, D::hidden}, P::always},
    {"mlp.gate_proj.bias", &L::gate_bias, {D::intermediate, D::one}, P::mlp_bias},
    {"mlp.up_proj.bias", &L::up_bias, {D::intermediate, D::one}, P::mlp_bias},
    {"mlp.down_proj.weight", &L::down, {D::hidden, D::intermediate}, P::always},
    {"mlp.down_proj.bias", &L::down_bias, {D::hidden, D::one}, P::mlp_bias},
}};

}  // namespace

std::span<const LayerTensorRow> layer_tensor_table() { return kLayerTensors; }

bool is_present(TensorPresence presence, const ModelDescription& description) {
  switch (presence) {
    case TensorPresence::always:
      return true;
    case TensorPresence::qkv_bias:
      return description.qkv_bias;
    case TensorPresence::output_bias:
      return description.output_bias;
    case TensorPresence::mlp_bias:
      return description.mlp_bias;
    case TensorPresence::qk_norm:
      return description.qk_norm;
  }
  return false;
}

std::int64_t dimension_size(Dimension dimension, const ModelDescription& description) {
  switch (dimension) {
    case Dimension::one:
      return 1;
    case Dimension::hidden:
      return description.hidden;
    case Dimension::query:
      return description.heads * description.head_dim;
    case Dimension::key_value:
      return description.kv_heads * description.head_dim;
    case Dimension::head_dim:
      return description.head_dim;
    case Dimension::intermediate:
      return description.intermediate;
    case Dimension::vocabulary:
      return description.vocabulary;
  }
  return 0;
}

std::string_view dimension_keys(Dimension dimension) {
  switch (dimension) {
    case Dimension::one:
      return "";
    case Dimension::hidden:
      return "hidden_size";
    case Dimension::query:
      return "num_attention_heads * head_dim";
    case Dimension::key_value:
      return "num_key_value_heads * head_dim";
    case Dimension::head_dim:
      return "head_dim";
    case Dimension::intermediate:
      return "intermediate_size";
    case Dimension::vocabulary:
      return "vocab_size";
  }
  return "";
}

}  // namespace driftscope
