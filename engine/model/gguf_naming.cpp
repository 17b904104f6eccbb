// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <functional>
#include <set>

#include "engine/model/gguf_description.h"
#include "engine/model/gguf_fields.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using D = Dimension;
using E = ExpertTensors;
using L = LayerTensors;
using M = ModelTensors;
using P = TensorPresence;
using Part = Stored::Part;

constexpr Stored kPaired{.paired_rows = true};
constexpr Stored kStacked{.stacked = true};

constexpr std::array kModel{
    ModelTensorRow{"token_embd.weight", &M::embedding, {D::vocabulary, D::hidden}},
    ModelTensorRow{"position_embd.weight",
                   &M::position_embedding,
                   {D::positions, D::hidden},
                   P::learned_positions},
    ModelTensorRow{"output_norm.weight", &M::final_norm, {D::hidden, D::one}},
    ModelTensorRow{"output_norm.bias", &M::final_norm_bias, {D::hidden, D::one}, P::layer_norm},
    ModelTensorRow{"output.weight", &M::lm_head, {D::vocabulary, D::hidden}, P::untied}};

constexpr std::array kNorms{
    LayerTensorRow{"attn_norm.weight", &L::attention_norm, {D::hidden, D::one}},
    LayerTensorRow{"attn_norm.bias", &L::attention_norm_bias, {D::hidden, D::one}, P::layer_norm},
    LayerTensorRow{"attn_q_norm.weight", &L::q_norm, {D::head_dim, D::one}, P::qk_norm},
    LayerTensorRow{"attn_k_norm.weight", &L::k_norm, {D::head_dim, D::one}, P::qk_norm},
    LayerTensorRow{
        "post_attention_norm.weight", &L::post_attention_norm, {D::hidden, D::one}, P::post_norms},
    LayerTensorRow{"post_ffw_norm.weight", &L::post_ffn_norm, {D::hidden, D::one}, P::post_norms}};

constexpr std::array kFeedForwardNorm{
    LayerTensorRow{"ffn_norm.weight", &L::ffn_norm, {D::hidden, D::one}},
    LayerTensorRow{"ffn_norm.bias", &L::ffn_norm_bias, {D::hidden, D::one}, P::layer_norm}};
// gpt-oss calls the norm before its experts so.
constexpr std::array kGptOssNorm{
    LayerTensorRow{"post_attention_norm.weight", &L::ffn_norm, {D::hidden, D::one}}};

constexpr std::array kQueryAndKey{
    LayerTensorRow{"attn_q.weight", &L::q, {D::query, D::hidden}},
    LayerTensorRow{"attn_k.weight", &L::k, {D::key_value, D::hidden}},
    LayerTensorRow{"attn_q.bias", &L::q_bias, {D::query, D::one}, P::qkv_bias},
    LayerTensorRow{"attn_k.bias", &L::k_bias, {D::key_value, D::one}, P::qkv_bias}};
constexpr std::array kPairedQueryAndKey{
    LayerTensorRow{"attn_q.weight", &L::q, {D::query, D::hidden}, P::always, kPaired},
    LayerTensorRow{"attn_k.weight", &L::k, {D::key_value, D::hidden}, P::always, kPaired},
    LayerTensorRow{"attn_q.bias", &L::q_bias, {D::query, D::one}, P::qkv_bias, kPaired},
    LayerTensorRow{"attn_k.bias", &L::k_bias, {D::key_value, D::one}, P::qkv_bias, kPaired}};
constexpr std::array kValue{
    LayerTensorRow{"attn_v.weight", &L::v, {D::key_value, D::hidden}},
    LayerTensorRow{"attn_v.bias", &L::v_bias, {D::key_value, D::one}, P::qkv_bias}};
constexpr std::array kFusedAttention{
    LayerTensorRow{"attn_qkv.weight", &L::q, {D::query, D::hidden}, P::always, {.part = Part::q}},
    LayerTensorRow{
        "attn_qkv.weight", &L::k, {D::key_value, D::hidden}, P::always, {.part = Part::k}},
    LayerTensorRow{
        "attn_qkv.weight", &L::v, {D::key_value, D::hidden}, P::always, {.part = Part::v}},
    LayerTensorRow{"attn_qkv.bias", &L::q_bias, {D::query, D::one}, P::qkv_bias, {.part = Part::q}},
    LayerTensorRow{
        "attn_qkv.bias", &L::k_bias, {D::key_value, D::one}, P::qkv_bias, {.part = Part::k}},
    LayerTensorRow{
        "attn_qkv.bias", &L::v_bias, {D::key_value, D::one}, P::qkv_bias, {.part = Part::v}}};
constexpr std::array kAttentionOutput{
    LayerTensorRow{"attn_output.weight", &L::o, {D::hidden, D::query}},
    LayerTensorRow{"attn_output.bias", &L::o_bias, {D::hidden, D::one}, P::output_bias},
    LayerTensorRow{"attn_sinks.weight", &L::sinks, {D::heads, D::one}, P::sinks}};

constexpr std::array kGateAndUp{
    LayerTensorRow{"ffn_gate.weight", &L::gate, {D::intermediate, D::hidden}, P::dense_gate},
    LayerTensorRow{"ffn_gate.bias", &L::gate_bias, {D::intermediate, D::one}, P::dense_gate_bias},
    LayerTensorRow{"ffn_up.weight", &L::up, {D::intermediate, D::hidden}, P::dense},
    LayerTensorRow{"ffn_up.bias", &L::up_bias, {D::intermediate, D::one}, P::dense_bias}};
constexpr std::array kFusedGateAndUp{
    LayerTensorRow{"ffn_up.weight",
                   &L::gate,
                   {D::intermediate, D::hidden},
                   P::dense_gate,
                   {.part = Part::gate}},
    LayerTensorRow{
        "ffn_up.weight", &L::up, {D::intermediate, D::hidden}, P::dense, {.part = Part::up}}};
constexpr std::array kDown{
    LayerTensorRow{"ffn_down.weight", &L::down, {D::hidden, D::intermediate}, P::dense},
    LayerTensorRow{"ffn_down.bias", &L::down_bias, {D::hidden, D::one}, P::dense_bias}};

constexpr std::array kRouter{
    LayerTensorRow{"ffn_gate_inp.weight", &L::router, {D::experts, D::hidden}, P::sparse},
    LayerTensorRow{"ffn_gate_inp.bias", &L::router_bias, {D::experts, D::one}, P::router_bias},
    LayerTensorRow{"ffn_gate_shexp.weight",
                   &L::shared_gate,
                   {D::shared_intermediate, D::hidden},
                   P::shared_expert},
    LayerTensorRow{"ffn_up_shexp.weight",
                   &L::shared_up,
                   {D::shared_intermediate, D::hidden},
                   P::shared_expert},
    LayerTensorRow{"ffn_down_shexp.weight",
                   &L::shared_down,
                   {D::hidden, D::shared_intermediate},
                   P::shared_expert},
    LayerTensorRow{
        "ffn_gate_inp_shexp.weight", &L::shared_weight, {D::single, D::hidden}, P::shared_expert}};

constexpr std::array kStackedExperts{
    ExpertTensorRow{"ffn_gate_exps.",
                    "weight",
                    &E::gate,
                    {D::expert_intermediate, D::hidden},
                    P::sparse,
                    kStacked},
    ExpertTensorRow{
        "ffn_up_exps.", "weight", &E::up, {D::expert_intermediate, D::hidden}, P::sparse, kStacked},
    ExpertTensorRow{"ffn_down_exps.",
                    "weight",
                    &E::down,
                    {D::hidden, D::expert_intermediate},
                    P::sparse,
                    kStacked},
    ExpertTensorRow{"ffn_gate_exps.",
                    "bias",
                    &E::gate_bias,
                    {D::expert_intermediate, D::one},
                    P::expert_bias,
                    kStacked},
    ExpertTensorRow{"ffn_up_exps.",
                    "bias",
                    &E::up_bias,
                    {D::expert_intermediate, D::one},
                    P::expert_bias,
                    kStacked},
    ExpertTensorRow{
        "ffn_down_exps.", "bias", &E::down_bias, {D::hidden, D::one}, P::expert_bias, kStacked}};
// Older files of Mixtral.
constexpr std::array kSeparateExperts{
    ExpertTensorRow{"ffn_gate.", ".weight", &E::gate, {D::expert_intermediate, D::hidden}},
    ExpertTensorRow{"ffn_up.", ".weight", &E::up, {D::expert_intermediate, D::hidden}},
    ExpertTensorRow{"ffn_down.", ".weight", &E::down, {D::hidden, D::expert_intermediate}}};

template <class Row>
void append(std::vector<Row>& rows, std::span<const Row> group) {
  rows.insert(rows.end(), group.begin(), group.end());
}

}  // namespace

Naming gguf_naming(const ModelDescription& description, const GgufSource& source) {
  Naming naming;
  naming.prefixes = {{"", ""}};
  naming.layer_prefix = "blk.";
  naming.described_by = "the metadata";
  append<ModelTensorRow>(naming.model, kModel);
  const auto add = [&naming](std::span<const LayerTensorRow> group) {
    append(naming.layers, group);
  };
  add(kNorms);
  description.model_type == "gpt_oss" ? add(kGptOssNorm) : add(kFeedForwardNorm);
  if (source.contains("blk.0.attn_qkv.weight")) {
    add(kFusedAttention);
  } else {
    GgufFields fields(source.header(), source.name());
    const auto* architecture = find_gguf_architecture(fields.text("general.architecture", ""));
    const bool paired = architecture != nullptr && architecture->paired_rows;
    paired ? add(kPairedQueryAndKey) : add(kQueryAndKey);
    add(kValue);
  }
  add(kAttentionOutput);
  const bool fused = description.gated && source.contains("blk.0.ffn_up.weight") &&
                     !source.contains("blk.0.ffn_gate.weight");
  fused ? add(kFusedGateAndUp) : add(kGateAndUp);
  add(kDown);
  if (description.moe.experts == 0) return naming;
  add(kRouter);
  const bool separate = source.contains("blk.0.ffn_gate.0.weight");
  separate ? append<ExpertTensorRow>(naming.experts, kSeparateExperts)
           : append<ExpertTensorRow>(naming.experts, kStackedExperts);
  return naming;
}

Result<void> check_all_used(const ModelDescription& description, const Naming& naming,
                            const GgufSource& source) {
  std::set<std::string, std::less<>> used{"rope_freqs.weight", "rope_factors_short.weight",
                                          "rope_factors_long.weight"};
  for (const ModelTensorRow& row : naming.model) {
    if (is_present(row.presence, description, 0)) used.emplace(row.name);
  }
  for (std::int64_t layer = 0; layer < description.layers; ++layer) {
    const std::string begin = fmt::format("{}{}.", naming.layer_prefix, layer);
    for (const LayerTensorRow& row : naming.layers) {
      if (is_present(row.presence, description, layer))
        used.insert(begin + std::string(row.suffix));
    }
    for (const ExpertTensorRow& row : naming.experts) {
      if (!is_present(row.presence, description, layer)) continue;
      const std::int64_t count = row.stored.stacked ? 1 : description.moe.experts;
      for (std::int64_t expert = 0; expert < count; ++expert) {
        used.insert(fmt::format("{}{}{}{}", begin, row.prefix,
                                row.stored.stacked ? "" : fmt::format("{}", expert), row.suffix));
      }
    }
  }
  for (const std::string_view name : source.tensor_names()) {
    if (used.contains(name)) continue;
    return fail(
        ErrorKind::malformed,
        fmt::format("{}: tensor {} is no part of a {} model that is known here; use a file "
                    "without it",
                    source.file_of(name), escape_for_display(name), description.model_type));
  }
  return {};
}

}  // namespace driftscope
