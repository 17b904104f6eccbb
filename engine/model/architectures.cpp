// SPDX-License-Identifier: Apache-2.0
// The table of architectures. Defaults: the configuration classes of the reference implementation
// (transformers 4.57).
#include <array>

#include "engine/model/description.h"

namespace driftscope {
namespace {

using Bias = Architecture::AttentionBias;
using Names = ExpertDescription::Names;
using Window = Architecture::Window;

constexpr Architecture kGemma3{
    .model_type = "gemma3_text",
    .attention_bias = Bias::as_configured,
    .qk_norm = true,
    .window = Window::by_step,
    .default_kv_heads = 4,
    .default_head_dim = 256,
    .default_max_positions = 131072,
    .default_window = 4096,
    .window_step = 6,
    .reads_window_step = true,
    .default_theta = 1000000.0,
    .default_local_theta = 10000.0,
    .default_tied = true,
    .default_activation = Activation::gelu_tanh,
    .gemma = true,
    .keys = {.activation = "hidden_activation"},
    .shape = {
        .hidden = 2304, .layers = 26, .heads = 8, .intermediate = 9216, .vocabulary = 262208}};

// The file of a model that also sees images; its decoder is described in an object of its own.
constexpr Architecture with_images(Architecture text, std::string_view model_type) {
  text.model_type = model_type;
  text.nested = "text_config";
  return text;
}

constexpr std::array kArchitectures{
    Architecture{.model_type = "llama",
                 .attention_bias = Bias::as_configured,
                 .mlp_bias = true,
                 .default_max_positions = 2048},
    Architecture{.model_type = "mistral",
                 .window = Window::when_given,
                 .default_kv_heads = 8,
                 .default_max_positions = 131072,
                 .default_window = 4096},
    Architecture{.model_type = "qwen2",
                 .attention_bias = Bias::qkv,
                 .window = Window::when_switched,
                 .default_kv_heads = 32,
                 .default_max_positions = 32768,
                 .default_window = 4096},
    Architecture{.model_type = "qwen3",
                 .attention_bias = Bias::as_configured,
                 .qk_norm = true,
                 .window = Window::when_switched,
                 .default_kv_heads = 32,
                 .default_head_dim = 128,
                 .default_max_positions = 32768,
                 .default_window = 4096},
    Architecture{.model_type = "mixtral",
                 .window = Window::when_given,
                 .default_kv_heads = 8,
                 .default_max_positions = 131072,
                 .default_epsilon = 1e-5,
                 .default_theta = 1000000.0,
                 .mixture = {.experts_key = "num_local_experts",
                             .names = Names::block_sparse_moe,
                             .default_experts = 8,
                             .default_chosen = 2}},
    Architecture{.model_type = "qwen2_moe",
                 .attention_bias = Bias::qkv_by_default,
                 .window = Window::even_if_switched,
                 .default_kv_heads = 16,
                 .default_max_positions = 32768,
                 .default_window = 4096,
                 .mixture = {.experts_key = "num_experts",
                             .default_experts = 60,
                             .default_chosen = 4,
                             .own_keys = true,
                             .default_intermediate = 1408,
                             .default_shared = 5632}},
    Architecture{.model_type = "qwen3_moe",
                 .attention_bias = Bias::as_configured,
                 .qk_norm = true,
                 .window = Window::all_if_switched,
                 .default_kv_heads = 4,
                 .default_max_positions = 32768,
                 .default_window = 4096,
                 .mixture = {.experts_key = "num_experts",
                             .default_experts = 128,
                             .default_chosen = 8,
                             .own_keys = true,
                             .default_intermediate = 768}},
    Architecture{.model_type = "gemma2",
                 .attention_bias = Bias::as_configured,
                 .window = Window::by_step,
                 .default_kv_heads = 4,
                 .default_head_dim = 256,
                 .default_max_positions = 8192,
                 .default_window = 4096,
                 .window_step = 2,
                 .default_tied = true,
                 .default_activation = Activation::gelu_tanh,
                 .gemma = true,
                 .default_attention_softcap = 50.0,
                 .default_final_softcap = 30.0,
                 .keys = {.activation = "hidden_activation"}},
    kGemma3,
    with_images(kGemma3, "gemma3"),
    Architecture{.model_type = "phi3",
                 .window = Window::when_given,
                 .default_max_positions = 4096,
                 .default_epsilon = 1e-5,
                 .partial_rotary = true},
    Architecture{.model_type = "gpt2",
                 .attention_bias = Bias::always,
                 .default_max_positions = 1024,
                 .default_epsilon = 1e-5,
                 .default_tied = true,
                 .default_activation = Activation::gelu_tanh,
                 .norm = NormKind::layer,
                 .gated = false,
                 .learned_positions = true,
                 .keys = {.hidden = "n_embd",
                          .layers = "n_layer",
                          .heads = "n_head",
                          .kv_heads = "",
                          .intermediate = "n_inner",
                          .max_positions = "n_positions",
                          .epsilon = "layer_norm_epsilon",
                          .activation = "activation_function"}},
    Architecture{.model_type = "gpt_oss",
                 .attention_bias = Bias::unless_off,
                 .window = Window::by_step,
                 .default_kv_heads = 8,
                 .default_head_dim = 64,
                 .default_max_positions = 131072,
                 .default_window = 128,
                 .window_step = 2,
                 .default_epsilon = 1e-5,
                 .default_theta = 150000.0,
                 .needs_scaling = true,
                 .fixed_activation = true,
                 .attention_sinks = true,
                 .mixture = {.experts_key = "num_local_experts",
                             .names = Names::gpt_oss,
                             .default_experts = 128,
                             .default_chosen = 4,
                             .gpt_oss = true}},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture* find_architecture(std::string_view model_type) {
  for (const Architecture& row : kArchitectures) {
    if (row.model_type == model_type) return &row;
  }
  return nullptr;
}

std::string supported_architectures() {
  std::string list;
  for (const Architecture& row : kArchitectures) {
    if (!list.empty()) list += ", ";
    list += row.model_type;
  }
  return list;
}

}  // namespace driftscope
