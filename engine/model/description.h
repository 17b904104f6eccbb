// SPDX-License-Identifier: Apache-2.0
// config.json -> ModelDescription, by a table of architectures.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "engine/model/checkpoint.h"

namespace driftscope {

// What the reference implementation assumes for a key that config.json leaves out, and which
// of the optional parts the model has.
struct Architecture {
  // Where the biases of the attention projections come from.
  enum class AttentionBias : std::uint8_t {
    none,            // never
    always,          // on q, k, v and o
    qkv,             // always on q, k and v, never on o
    qkv_by_default,  // on q, k and v unless qkv_bias is false
    as_configured,   // attention_bias, on q, k, v and o alike
    unless_off,      // likewise, true where the key is absent
  };
  // When attention is limited to `sliding_window` tokens. layer_types, where given, says in which
  // layers; else:
  enum class Window : std::uint8_t {
    none,              // never; the keys are not read
    when_given,        // whenever sliding_window is a number, in all layers
    when_switched,     // only if use_sliding_window, from layer max_window_layers on
    all_if_switched,   // only if use_sliding_window, in all layers
    even_if_switched,  // only if use_sliding_window, in even layers below max_window_layers
    by_step,           // in all layers but those where layer + 1 is a multiple of `window_step`
  };
  // Keys whose names differ between families; empty: there is none, the default holds.
  struct Keys {
    std::string_view hidden = "hidden_size";
    std::string_view layers = "num_hidden_layers";
    std::string_view heads = "num_attention_heads";
    std::string_view kv_heads = "num_key_value_heads";
    std::string_view intermediate = "intermediate_size";
    std::string_view max_positions = "max_position_embeddings";
    std::string_view epsilon = "rms_norm_eps";
    std::string_view activation = "hidden_act";
  };
  // Shapes that files may leave out; 0: the key is required.
  struct Shape {
    std::int64_t hidden = 0;
    std::int64_t layers = 0;
    std::int64_t heads = 0;
    std::int64_t intermediate = 0;
    std::int64_t vocabulary = 0;
  };
  std::string_view model_type;
  AttentionBias attention_bias = AttentionBias::none;
  bool mlp_bias = false;  // reads mlp_bias
  bool qk_norm = false;
  Window window = Window::none;
  std::int64_t default_kv_heads = 0;  // 0: as many as heads
  std::int64_t default_head_dim = 0;  // 0: hidden_size / heads
  std::int64_t default_max_positions = 0;
  std::int64_t default_window = 0;
  std::int64_t window_step = 0;    // by_step, where sliding_window_pattern is absent or not read
  bool reads_window_step = false;  // sliding_window_pattern
  double default_epsilon = 1e-6;
  double default_theta = 10000.0;
  double default_local_theta = 0.0;  // 0: all layers rotate alike
  bool needs_scaling = false;        // the class's default for rope_scaling is not "none"
  bool partial_rotary = false;       // reads partial_rotary_factor
  bool default_tied = false;
  Activation default_activation = Activation::silu;
  bool fixed_activation = false;  // the key is not read
  NormKind norm = NormKind::rms;
  bool gated = true;
  bool learned_positions = false;
  bool attention_sinks = false;
  // Gemma: norms after attention and feed-forward, embeddings times sqrt(hidden),
  // query_pre_attn_scalar and soft caps.
  bool gemma = false;
  double default_attention_softcap = 0.0, default_final_softcap = 0.0;
  Keys keys = {};
  Shape shape = {};
  std::string_view nested = {};  // the object of config.json that holds the decoder's keys
  // Mixture of experts; `experts_key` empty: dense.
  struct Mixture {
    std::string_view experts_key = {};  // of the number of experts
    ExpertDescription::Names names = ExpertDescription::Names::mlp;
    std::int64_t default_experts = 0;
    std::int64_t default_chosen = 0;
    // False: experts are as wide as intermediate_size, their weights are always renormalised, and
    // every layer has them. True: moe_intermediate_size, norm_topk_prob, decoder_sparse_step and
    // mlp_only_layers say it.
    bool own_keys = false;
    std::int64_t default_intermediate = 0;  // of moe_intermediate_size
    std::int64_t default_shared = 0;  // of shared_expert_intermediate_size; 0: no shared expert
    // Biases everywhere, softmax over the chosen, the clamped activation (gpt-oss).
    bool gpt_oss = false;
  };
  Mixture mixture = {};
};

[[nodiscard]] std::span<const Architecture> architectures();
[[nodiscard]] const Architecture* find_architecture(std::string_view model_type);
[[nodiscard]] std::string supported_architectures();  // "llama, mistral, …"

// `name` and `generation_name` begin the messages. `generation_config` is null where there is
// none. Errors: malformed, naming the key and the remedy.
struct ConfigSource {
  const nlohmann::json* config;
  std::string name;
  const nlohmann::json* generation_config;
  std::string generation_name;
};
[[nodiscard]] Result<ModelDescription> describe_model(const ConfigSource& source);

}  // namespace driftscope
