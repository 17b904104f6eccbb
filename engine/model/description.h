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
    qkv,             // always on q, k and v, never on o
    qkv_by_default,  // on q, k and v unless qkv_bias is false
    as_configured,   // attention_bias, on q, k, v and o alike
  };
  // When attention is limited to `sliding_window` tokens.
  enum class Window : std::uint8_t {
    none,           // never; the key is not read
    when_given,     // whenever sliding_window is a number
    when_switched,  // only if use_sliding_window, from layer max_window_layers on
  };
  std::string_view model_type;
  AttentionBias attention_bias;
  bool mlp_bias;  // reads mlp_bias
  bool qk_norm;
  Window window;
  std::int64_t default_kv_heads;  // 0: as many as heads
  std::int64_t default_head_dim;  // 0: hidden_size / heads
  std::int64_t default_max_positions;
  std::int64_t default_window;
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
