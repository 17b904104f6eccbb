// SPDX-License-Identifier: Apache-2.0
// The names of the families in Hugging Face layout, put together from groups of rows.
#include <array>
#include <initializer_list>

#include "engine/model/tensor_table.h"

namespace driftscope {
namespace {

using D = Dimension;
using E = ExpertTensors;
using L = LayerTensors;
using M = ModelTensors;
using P = TensorPresence;
using Part = Stored::Part;
using Turn = Stored::Turn;

constexpr Stored kPlusOne{.plus_one = true};
constexpr Stored kTransposed{.transposed = true};

constexpr std::array kModel{
    ModelTensorRow{"embed_tokens.weight", &M::embedding, {D::vocabulary, D::hidden}},
    ModelTensorRow{"norm.weight", &M::final_norm, {D::hidden, D::one}},
    ModelTensorRow{.name = "lm_head.weight",
                   .member = &M::lm_head,
                   .shape = {D::vocabulary, D::hidden},
                   .presence = P::untied,
                   .in_head = true}};

constexpr std::array kGemmaModel{
    kModel[0],
    ModelTensorRow{"norm.weight", &M::final_norm, {D::hidden, D::one}, P::always, kPlusOne},
    kModel[2]};

constexpr std::array kGpt2Model{
    ModelTensorRow{"wte.weight", &M::embedding, {D::vocabulary, D::hidden}},
    ModelTensorRow{
        "wpe.weight", &M::position_embedding, {D::positions, D::hidden}, P::learned_positions},
    ModelTensorRow{"ln_f.weight", &M::final_norm, {D::hidden, D::one}},
    ModelTensorRow{"ln_f.bias", &M::final_norm_bias, {D::hidden, D::one}, P::layer_norm},
    kModel[2]};

constexpr std::array kInputNorm{
    LayerTensorRow{"input_layernorm.weight", &L::attention_norm, {D::hidden, D::one}}};
constexpr std::array kFeedForwardNorm{
    LayerTensorRow{"post_attention_layernorm.weight", &L::ffn_norm, {D::hidden, D::one}}};

constexpr std::array kGemmaInputNorm{LayerTensorRow{
    "input_layernorm.weight", &L::attention_norm, {D::hidden, D::one}, P::always, kPlusOne}};
constexpr std::array kGemmaHeadNorms{
    LayerTensorRow{
        "self_attn.q_norm.weight", &L::q_norm, {D::head_dim, D::one}, P::qk_norm, kPlusOne},
    LayerTensorRow{
        "self_attn.k_norm.weight", &L::k_norm, {D::head_dim, D::one}, P::qk_norm, kPlusOne}};
constexpr std::array kGemmaMiddleNorms{LayerTensorRow{"post_attention_layernorm.weight",
                                                      &L::post_attention_norm,
                                                      {D::hidden, D::one},
                                                      P::post_norms,
                                                      kPlusOne},
                                       LayerTensorRow{"pre_feedforward_layernorm.weight",
                                                      &L::ffn_norm,
                                                      {D::hidden, D::one},
                                                      P::always,
                                                      kPlusOne}};
constexpr std::array kGemmaOutputNorm{LayerTensorRow{"post_feedforward_layernorm.weight",
                                                     &L::post_ffn_norm,
                                                     {D::hidden, D::one},
                                                     P::post_norms,
                                                     kPlusOne}};

constexpr std::array kHeadNorms{
    LayerTensorRow{"self_attn.q_norm.weight", &L::q_norm, {D::head_dim, D::one}, P::qk_norm},
    LayerTensorRow{"self_attn.k_norm.weight", &L::k_norm, {D::head_dim, D::one}, P::qk_norm}};

constexpr std::array kAttention{
    LayerTensorRow{"self_attn.q_proj.weight", &L::q, {D::query, D::hidden}},
    LayerTensorRow{"self_attn.k_proj.weight", &L::k, {D::key_value, D::hidden}},
    LayerTensorRow{"self_attn.v_proj.weight", &L::v, {D::key_value, D::hidden}},
    LayerTensorRow{"self_attn.q_proj.bias", &L::q_bias, {D::query, D::one}, P::qkv_bias},
    LayerTensorRow{"self_attn.k_proj.bias", &L::k_bias, {D::key_value, D::one}, P::qkv_bias},
    LayerTensorRow{"self_attn.v_proj.bias", &L::v_bias, {D::key_value, D::one}, P::qkv_bias},
    LayerTensorRow{"self_attn.o_proj.weight", &L::o, {D::hidden, D::query}},
    LayerTensorRow{"self_attn.o_proj.bias", &L::o_bias, {D::hidden, D::one}, P::output_bias},
    LayerTensorRow{"self_attn.sinks", &L::sinks, {D::heads, D::one}, P::sinks}};

constexpr std::array kFeedForward{
    LayerTensorRow{"mlp.gate_proj.weight", &L::gate, {D::intermediate, D::hidden}, P::dense_gate},
    LayerTensorRow{"mlp.up_proj.weight", &L::up, {D::intermediate, D::hidden}, P::dense},
    LayerTensorRow{
        "mlp.gate_proj.bias", &L::gate_bias, {D::intermediate, D::one}, P::dense_gate_bias},
    LayerTensorRow{"mlp.up_proj.bias", &L::up_bias, {D::intermediate, D::one}, P::dense_bias},
    LayerTensorRow{"mlp.down_proj.weight", &L::down, {D::hidden, D::intermediate}, P::dense},
    LayerTensorRow{"mlp.down_proj.bias", &L::down_bias, {D::hidden, D::one}, P::dense_bias}};

constexpr std::array kPhi3Attention{
    LayerTensorRow{
        "self_attn.qkv_proj.weight", &L::q, {D::query, D::hidden}, P::always, {.part = Part::q}},
    LayerTensorRow{"self_attn.qkv_proj.weight",
                   &L::k,
                   {D::key_value, D::hidden},
                   P::always,
                   {.part = Part::k}},
    LayerTensorRow{"self_attn.qkv_proj.weight",
                   &L::v,
                   {D::key_value, D::hidden},
                   P::always,
                   {.part = Part::v}},
    LayerTensorRow{"self_attn.o_proj.weight", &L::o, {D::hidden, D::query}}};

constexpr std::array kPhi3FeedForward{
    LayerTensorRow{"mlp.gate_up_proj.weight",
                   &L::gate,
                   {D::intermediate, D::hidden},
                   P::dense_gate,
                   {.part = Part::gate}},
    LayerTensorRow{"mlp.gate_up_proj.weight",
                   &L::up,
                   {D::intermediate, D::hidden},
                   P::dense,
                   {.part = Part::up}},
    LayerTensorRow{"mlp.down_proj.weight", &L::down, {D::hidden, D::intermediate}, P::dense}};

constexpr std::array kGpt2Layer{
    LayerTensorRow{"ln_1.weight", &L::attention_norm, {D::hidden, D::one}},
    LayerTensorRow{"ln_1.bias", &L::attention_norm_bias, {D::hidden, D::one}, P::layer_norm},
    LayerTensorRow{"attn.c_attn.weight",
                   &L::q,
                   {D::query, D::hidden},
                   P::always,
                   {.part = Part::q, .transposed = true}},
    LayerTensorRow{"attn.c_attn.weight",
                   &L::k,
                   {D::key_value, D::hidden},
                   P::always,
                   {.part = Part::k, .transposed = true}},
    LayerTensorRow{"attn.c_attn.weight",
                   &L::v,
                   {D::key_value, D::hidden},
                   P::always,
                   {.part = Part::v, .transposed = true}},
    LayerTensorRow{
        "attn.c_attn.bias", &L::q_bias, {D::query, D::one}, P::qkv_bias, {.part = Part::q}},
    LayerTensorRow{
        "attn.c_attn.bias", &L::k_bias, {D::key_value, D::one}, P::qkv_bias, {.part = Part::k}},
    LayerTensorRow{
        "attn.c_attn.bias", &L::v_bias, {D::key_value, D::one}, P::qkv_bias, {.part = Part::v}},
    LayerTensorRow{"attn.c_proj.weight", &L::o, {D::hidden, D::query}, P::always, kTransposed},
    LayerTensorRow{"attn.c_proj.bias", &L::o_bias, {D::hidden, D::one}, P::output_bias},
    LayerTensorRow{"ln_2.weight", &L::ffn_norm, {D::hidden, D::one}},
    LayerTensorRow{"ln_2.bias", &L::ffn_norm_bias, {D::hidden, D::one}, P::layer_norm},
    LayerTensorRow{"mlp.c_fc.weight", &L::up, {D::intermediate, D::hidden}, P::dense, kTransposed},
    LayerTensorRow{"mlp.c_fc.bias", &L::up_bias, {D::intermediate, D::one}, P::dense_bias},
    LayerTensorRow{
        "mlp.c_proj.weight", &L::down, {D::hidden, D::intermediate}, P::dense, kTransposed},
    LayerTensorRow{"mlp.c_proj.bias", &L::down_bias, {D::hidden, D::one}, P::dense_bias}};

constexpr std::array kBlockSparseRouter{
    LayerTensorRow{"block_sparse_moe.gate.weight", &L::router, {D::experts, D::hidden}, P::sparse}};

constexpr std::array kSparseLayer{
    LayerTensorRow{"mlp.gate.weight", &L::router, {D::experts, D::hidden}, P::sparse},
    LayerTensorRow{"mlp.shared_expert.gate_proj.weight",
                   &L::shared_gate,
                   {D::shared_intermediate, D::hidden},
                   P::shared_expert},
    LayerTensorRow{"mlp.shared_expert.up_proj.weight",
                   &L::shared_up,
                   {D::shared_intermediate, D::hidden},
                   P::shared_expert},
    LayerTensorRow{"mlp.shared_expert.down_proj.weight",
                   &L::shared_down,
                   {D::hidden, D::shared_intermediate},
                   P::shared_expert},
    LayerTensorRow{"mlp.shared_expert_gate.weight",
                   &L::shared_weight,
                   {D::single, D::hidden},
                   P::shared_expert}};

constexpr std::array kGptOssRouter{
    LayerTensorRow{"mlp.router.weight", &L::router, {D::experts, D::hidden}, P::sparse},
    LayerTensorRow{"mlp.router.bias", &L::router_bias, {D::experts, D::one}, P::router_bias}};

constexpr std::string_view kBlockSparseMoe = "block_sparse_moe.experts.";
constexpr std::string_view kMlp = "mlp.experts.";

constexpr std::array kBlockSparseExperts{
    ExpertTensorRow{kBlockSparseMoe, ".w1.weight", &E::gate, {D::expert_intermediate, D::hidden}},
    ExpertTensorRow{kBlockSparseMoe, ".w3.weight", &E::up, {D::expert_intermediate, D::hidden}},
    ExpertTensorRow{kBlockSparseMoe, ".w2.weight", &E::down, {D::hidden, D::expert_intermediate}}};

constexpr std::array kSparseExperts{
    ExpertTensorRow{kMlp, ".gate_proj.weight", &E::gate, {D::expert_intermediate, D::hidden}},
    ExpertTensorRow{kMlp, ".up_proj.weight", &E::up, {D::expert_intermediate, D::hidden}},
    ExpertTensorRow{kMlp, ".down_proj.weight", &E::down, {D::hidden, D::expert_intermediate}}};

constexpr std::array kGptOssExperts{
    ExpertTensorRow{kMlp,
                    "gate_up_proj",
                    &E::gate,
                    {D::expert_intermediate, D::hidden},
                    P::sparse,
                    {.turn = Turn::even, .transposed = true, .stacked = true}},
    ExpertTensorRow{kMlp,
                    "gate_up_proj",
                    &E::up,
                    {D::expert_intermediate, D::hidden},
                    P::sparse,
                    {.turn = Turn::odd, .transposed = true, .stacked = true}},
    ExpertTensorRow{kMlp,
                    "down_proj",
                    &E::down,
                    {D::hidden, D::expert_intermediate},
                    P::sparse,
                    {.transposed = true, .stacked = true}},
    ExpertTensorRow{kMlp,
                    "gate_up_proj_bias",
                    &E::gate_bias,
                    {D::expert_intermediate, D::one},
                    P::expert_bias,
                    {.turn = Turn::even, .stacked = true}},
    ExpertTensorRow{kMlp,
                    "gate_up_proj_bias",
                    &E::up_bias,
                    {D::expert_intermediate, D::one},
                    P::expert_bias,
                    {.turn = Turn::odd, .stacked = true}},
    ExpertTensorRow{kMlp,
                    "down_proj_bias",
                    &E::down_bias,
                    {D::hidden, D::one},
                    P::expert_bias,
                    {.stacked = true}}};

template <class Row>
std::vector<Row> joined(std::initializer_list<std::span<const Row>> groups) {
  std::vector<Row> rows;
  for (const auto& group : groups) rows.insert(rows.end(), group.begin(), group.end());
  return rows;
}

template <class Row, std::size_t size>
std::vector<Row> rows_of(const std::array<Row, size>& group) {
  return {group.begin(), group.end()};
}

const std::vector<NamePrefix>& decoder_prefixes() {
  static const std::vector<NamePrefix> prefixes{{"model.", ""}, {"", ""}};
  return prefixes;
}

const Naming& llama_naming() {
  static const Naming naming{
      .prefixes = decoder_prefixes(),
      .model = rows_of(kModel),
      .layers = joined<LayerTensorRow>(
          {kInputNorm, kAttention, kHeadNorms, kFeedForwardNorm, kFeedForward, kSparseLayer}),
      .experts = rows_of(kSparseExperts)};
  return naming;
}

const Naming& mixtral_naming() {
  static const Naming naming{.prefixes = decoder_prefixes(),
                             .model = rows_of(kModel),
                             .layers = joined<LayerTensorRow>(
                                 {kInputNorm, kAttention, kFeedForwardNorm, kBlockSparseRouter}),
                             .experts = rows_of(kBlockSparseExperts)};
  return naming;
}

// Files of the models that also see images keep the decoder apart, in two spellings.
const Naming& gemma_naming() {
  static const Naming naming{
      .prefixes = {{"model.", ""},
                   {"language_model.model.", "language_model."},
                   {"model.language_model.", ""},
                   {"", ""}},
      .model = rows_of(kGemmaModel),
      .layers = joined<LayerTensorRow>({kGemmaInputNorm, kAttention, kGemmaHeadNorms,
                                        kGemmaMiddleNorms, kFeedForward, kGemmaOutputNorm}),
      .experts = {}};
  return naming;
}

const Naming& phi3_naming() {
  static const Naming naming{.prefixes = decoder_prefixes(),
                             .model = rows_of(kModel),
                             .layers = joined<LayerTensorRow>(
                                 {kInputNorm, kPhi3Attention, kFeedForwardNorm, kPhi3FeedForward}),
                             .experts = {}};
  return naming;
}

const Naming& gpt2_naming() {
  static const Naming naming{.prefixes = {{"transformer.", ""}, {"", ""}},
                             .model = rows_of(kGpt2Model),
                             .layer_prefix = "h.",
                             .layers = rows_of(kGpt2Layer),
                             .experts = {}};
  return naming;
}

const Naming& gpt_oss_naming() {
  static const Naming naming{
      .prefixes = decoder_prefixes(),
      .model = rows_of(kModel),
      .layers = joined<LayerTensorRow>({kInputNorm, kAttention, kFeedForwardNorm, kGptOssRouter}),
      .experts = rows_of(kGptOssExperts)};
  return naming;
}

}  // namespace

const Naming& huggingface_naming(const ModelDescription& description) {
  const std::string_view type = description.model_type;
  if (type == "gemma2" || type.starts_with("gemma3")) return gemma_naming();
  if (type == "phi3") return phi3_naming();
  if (type == "gpt2") return gpt2_naming();
  if (type == "gpt_oss") return gpt_oss_naming();
  const bool block_sparse = description.moe.experts > 0 &&
                            description.moe.names == ExpertDescription::Names::block_sparse_moe;
  return block_sparse ? mixtral_naming() : llama_naming();
}

}  // namespace driftscope
