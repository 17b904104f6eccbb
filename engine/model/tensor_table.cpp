// SPDX-License-Identifier: Apache-2.0
#include "engine/model/tensor_table.h"

namespace driftscope {
namespace {

using D = Dimension;
using E = ExpertTensors;
using L = LayerTensors;
using P = TensorPresence;

constexpr std::array<LayerTensorRow, 24> kLayerTensors{{
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
    {"mlp.gate_proj.weight", &L::gate, {D::intermediate, D::hidden}, P::dense},
    {"mlp.up_proj.weight", &L::up, {D::intermediate, D::hidden}, P::dense},
    {"mlp.gate_proj.bias", &L::gate_bias, {D::intermediate, D::one}, P::dense_bias},
    {"mlp.up_proj.bias", &L::up_bias, {D::intermediate, D::one}, P::dense_bias},
    {"mlp.down_proj.weight", &L::down, {D::hidden, D::intermediate}, P::dense},
    {"mlp.down_proj.bias", &L::down_bias, {D::hidden, D::one}, P::dense_bias},
    {"block_sparse_moe.gate.weight", &L::router, {D::experts, D::hidden}, P::sparse_block},
    {"mlp.gate.weight", &L::router, {D::experts, D::hidden}, P::sparse_mlp},
    {"mlp.shared_expert.gate_proj.weight",
     &L::shared_gate,
     {D::shared_intermediate, D::hidden},
     P::shared_expert},
    {"mlp.shared_expert.up_proj.weight",
     &L::shared_up,
     {D::shared_intermediate, D::hidden},
     P::shared_expert},
    {"mlp.shared_expert.down_proj.weight",
     &L::shared_down,
     {D::hidden, D::shared_intermediate},
     P::shared_expert},
    {"mlp.shared_expert_gate.weight", &L::shared_weight, {D::single, D::hidden}, P::shared_expert},
}};

constexpr std::string_view kBlock = "block_sparse_moe.experts.";
constexpr std::string_view kMlp = "mlp.experts.";

constexpr std::array<ExpertTensorRow, 6> kExpertTensors{{
    {kBlock, ".w1.weight", &E::gate, {D::expert_intermediate, D::hidden}, P::sparse_block},
    {kBlock, ".w3.weight", &E::up, {D::expert_intermediate, D::hidden}, P::sparse_block},
    {kBlock, ".w2.weight", &E::down, {D::hidden, D::expert_intermediate}, P::sparse_block},
    {kMlp, ".gate_proj.weight", &E::gate, {D::expert_intermediate, D::hidden}, P::sparse_mlp},
    {kMlp, ".up_proj.weight", &E::up, {D::expert_intermediate, D::hidden}, P::sparse_mlp},
    {kMlp, ".down_proj.weight", &E::down, {D::hidden, D::expert_intermediate}, P::sparse_mlp},
}};

}  // namespace

std::span<const LayerTensorRow> layer_tensor_table() { return kLayerTensors; }

std::span<const ExpertTensorRow> expert_tensor_table() { return kExpertTensors; }

bool is_present(TensorPresence presence, const ModelDescription& description, std::int64_t layer) {
  const ExpertDescription& moe = description.moe;
  const bool sparse = moe.in_layer(layer);
  switch (presence) {
    case TensorPresence::always:
      return true;
    case TensorPresence::qkv_bias:
      return description.qkv_bias;
    case TensorPresence::output_bias:
      return description.output_bias;
    case TensorPresence::qk_norm:
      return description.qk_norm;
    case TensorPresence::dense:
      return !sparse;
    case TensorPresence::dense_bias:
      return !sparse && description.mlp_bias;
    case TensorPresence::sparse_block:
      return sparse && moe.names == ExpertDescription::Names::block_sparse_moe;
    case TensorPresence::sparse_mlp:
      return sparse && moe.names == ExpertDescription::Names::mlp;
    case TensorPresence::shared_expert:
      return sparse && moe.shared_intermediate > 0;
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
    case Dimension::experts:
      return description.moe.experts;
    case Dimension::expert_intermediate:
      return description.moe.intermediate;
    case Dimension::shared_intermediate:
      return description.moe.shared_intermediate;
    case Dimension::single:
      return 1;
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
    case Dimension::experts:
      return "the number of experts";
    case Dimension::expert_intermediate:
      return "the experts' intermediate size";
    case Dimension::shared_intermediate:
      return "shared_expert_intermediate_size";
    case Dimension::single:
      return "";
  }
  return "";
}

}  // namespace driftscope
