// SPDX-License-Identifier: Apache-2.0
#include "engine/model/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "engine/model/config_fields.h"
#include "engine/model/expert_description.h"
#include "engine/model/rope_description.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Bias = Architecture::AttentionBias;
using Names = ExpertDescription::Names;
using Window = Architecture::Window;

// Defaults: the configuration classes of the reference implementation (transformers 4.57).
constexpr std::array<Architecture, 7> kArchitectures{{
    {.model_type = "llama",
     .attention_bias = Bias::as_configured,
     .mlp_bias = true,
     .qk_norm = false,
     .window = Window::none,
     .default_kv_heads = 0,
     .default_head_dim = 0,
     .default_max_positions = 2048,
     .default_window = 0},
    {.model_type = "mistral",
     .attention_bias = Bias::none,
     .mlp_bias = false,
     .qk_norm = false,
     .window = Window::when_given,
     .default_kv_heads = 8,
     .default_head_dim = 0,
     .default_max_positions = 131072,
     .default_window = 4096},
    {.model_type = "qwen2",
     .attention_bias = Bias::qkv,
     .mlp_bias = false,
     .qk_norm = false,
     .window = Window::when_switched,
     .default_kv_heads = 32,
     .default_head_dim = 0,
     .default_max_positions = 32768,
     .default_window = 4096},
    {.model_type = "qwen3",
     .attention_bias = Bias::as_configured,
     .mlp_bias = false,
     .qk_norm = true,
     .window = Window::when_switched,
     .default_kv_heads = 32,
     .default_head_dim = 128,
     .default_max_positions = 32768,
     .default_window = 4096},
    {.model_type = "mixtral",
     .attention_bias = Bias::none,
     .mlp_bias = false,
     .qk_norm = false,
     .window = Window::when_given,
     .default_kv_heads = 8,
     .default_head_dim = 0,
     .default_max_positions = 131072,
     .default_window = 0,
     .mixture = {.experts_key = "num_local_experts",
                 .names = Names::block_sparse_moe,
                 .default_experts = 8,
                 .default_chosen = 2}},
    {.model_type = "qwen2_moe",
     .attention_bias = Bias::qkv_by_default,
     .mlp_bias = false,
     .qk_norm = false,
     .window = Window::when_switched,
     .default_kv_heads = 16,
     .default_head_dim = 0,
     .default_max_positions = 32768,
     .default_window = 4096,
     .mixture = {.experts_key = "num_experts",
                 .default_experts = 60,
                 .default_chosen = 4,
                 .own_keys = true,
                 .default_intermediate = 1408,
                 .default_shared = 5632}},
    {.model_type = "qwen3_moe",
     .attention_bias = Bias::as_configured,
     .mlp_bias = false,
     .qk_norm = true,
     .window = Window::when_switched,
     .default_kv_heads = 4,
     .default_head_dim = 0,
     .default_max_positions = 32768,
     .default_window = 4096,
     .mixture = {.experts_key = "num_experts",
                 .default_experts = 128,
                 .default_chosen = 8,
                 .own_keys = true,
                 .default_intermediate = 768}},
}};

constexpr double kDefaultEpsilon = 1e-6;
constexpr std::int64_t kDefaultMaxWindowLayers = 28;

const Architecture* read_architecture(ConfigFields& fields) {
  const std::string type = fields.text("model_type", "");
  if (!fields.good()) return nullptr;
  const Architecture* found = find_architecture(type);
  if (found == nullptr) {
    fields.refuse(type.empty() ? fmt::format("model_type is missing; supported are {}",
                                             supported_architectures())
                               : fmt::format("model_type \"{}\" is not supported; supported are {}",
                                             escape_for_display(type), supported_architectures()));
  }
  return found;
}

void refuse_unsupported(ConfigFields& fields) {
  const std::string activation = fields.text("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    fields.refuse(fmt::format("hidden_act \"{}\" is not supported; only silu is",
                              escape_for_display(activation)));
  }
  if (fields.positive("partial_rotary_factor", 1.0) != 1.0) {
    fields.refuse("partial_rotary_factor other than 1 is not supported");
  }
}

void read_shape(ConfigFields& fields, const Architecture& architecture,
                ModelDescription& description) {
  description.hidden = fields.count("hidden_size");
  description.layers = fields.count("num_hidden_layers");
  description.heads = fields.count("num_attention_heads");
  description.intermediate = fields.count("intermediate_size");
  description.vocabulary = fields.count("vocab_size");
  // Absent means the class's default, null means as many as heads.
  const bool class_default =
      !fields.contains("num_key_value_heads") && architecture.default_kv_heads != 0;
  description.kv_heads = fields.count(
      "num_key_value_heads", class_default ? architecture.default_kv_heads : description.heads);
  description.max_positions =
      fields.count("max_position_embeddings", architecture.default_max_positions);
  description.rms_epsilon = fields.positive("rms_norm_eps", kDefaultEpsilon);
  description.head_dim =
      fields.count("head_dim", fields.contains("head_dim") ? 0 : architecture.default_head_dim);
  if (!fields.good()) return;
  if (description.head_dim == 0) {
    if (description.hidden % description.heads != 0) {
      fields.refuse(
          fmt::format("hidden_size {} is not a multiple of {} heads and head_dim is not "
                      "given; fix the checkpoint",
                      description.hidden, description.heads));
      return;
    }
    description.head_dim = description.hidden / description.heads;
  }
  if (description.heads % description.kv_heads != 0) {
    fields.refuse(
        fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}; "
                    "fix the checkpoint",
                    description.heads, description.kv_heads));
  }
  if (description.head_dim % 2 != 0) {
    fields.refuse(
        fmt::format("head_dim {} is odd, rotary embedding needs pairs; fix the "
                    "checkpoint",
                    description.head_dim));
  }
}

void read_biases(ConfigFields& fields, const Architecture& architecture,
                 ModelDescription& description) {
  switch (architecture.attention_bias) {
    case Bias::none:
      break;
    case Bias::qkv:
      description.qkv_bias = true;
      break;
    case Bias::qkv_by_default:
      description.qkv_bias = fields.flag("qkv_bias", true);
      break;
    case Bias::as_configured:
      description.qkv_bias = fields.flag("attention_bias", false);
      description.output_bias = description.qkv_bias;
      break;
  }
  description.mlp_bias = architecture.mlp_bias && fields.flag("mlp_bias", false);
  description.qk_norm = architecture.qk_norm;
  description.tied_embeddings = fields.flag("tie_word_embeddings", false);
}

// How many of the layers slide by layer_types; nothing where the key is absent.
std::optional<std::int64_t> sliding_layers_listed(ConfigFields& fields, std::int64_t layers) {
  const auto* types = fields.find("layer_types");
  if (types == nullptr) return std::nullopt;
  if (!types->is_array() || types->size() != static_cast<std::size_t>(layers)) {
    fields.refuse(
        fmt::format("layer_types is {}; it must be a list of num_hidden_layers = {} "
                    "strings",
                    show_value(*types), layers));
    return std::nullopt;
  }
  std::int64_t sliding = 0;
  for (const auto& type : *types) {
    if (type == "sliding_attention") {
      ++sliding;
    } else if (type != "full_attention") {
      fields.refuse(
          fmt::format("layer_types has {}; supported are \"full_attention\" and "
                      "\"sliding_attention\"",
                      show_value(type)));
      return std::nullopt;
    }
  }
  return sliding;
}

void read_window(ConfigFields& fields, const Architecture& architecture,
                 ModelDescription& description) {
  std::int64_t window = 0;
  std::int64_t first_sliding = 0;  // layers from here on slide
  switch (architecture.window) {
    case Window::none:
      return;
    case Window::when_given: {
      // Absent means the class's default, null means no window.
      const bool absent = !fields.contains("sliding_window");
      window = absent ? architecture.default_window : fields.count("sliding_window", 0);
      break;
    }
    case Window::when_switched:
      if (!fields.flag("use_sliding_window", false)) return;
      window = fields.contains("sliding_window") ? fields.count("sliding_window", 0)
                                                 : architecture.default_window;
      first_sliding = fields.whole("max_window_layers", kDefaultMaxWindowLayers);
      break;
  }
  if (window == 0 || !fields.good()) return;
  const auto listed = sliding_layers_listed(fields, description.layers);
  if (!fields.good()) return;
  const std::int64_t sliding =
      listed.value_or(std::max<std::int64_t>(0, description.layers - first_sliding));
  if (sliding == 0) return;
  if (sliding != description.layers) {
    fields.refuse(
        fmt::format("{} of {} layers use sliding-window attention; a mix of sliding and "
                    "full layers is not supported",
                    sliding, description.layers));
    return;
  }
  description.sliding_window = window;
}

void read_dtype(ConfigFields& fields, ModelDescription& description) {
  const std::string older = fields.text("torch_dtype", "");
  const std::string newer = fields.text("dtype", older);
  if (!older.empty() && older != newer) {
    fields.refuse(fmt::format("torch_dtype \"{}\" and dtype \"{}\" differ; keep one",
                              escape_for_display(older), escape_for_display(newer)));
  }
  struct Row {
    std::string_view name;
    Dtype dtype;
  };
  constexpr std::array<Row, 3> kNames{
      {{"float32", Dtype::f32}, {"float16", Dtype::f16}, {"bfloat16", Dtype::bf16}}};
  for (const Row& row : kNames) {
    if (newer == row.name) description.stored_dtype = row.dtype;
  }
  // Another name is no reason to refuse: the tensors themselves say what they are.
}

// One id or a list of ids.
std::vector<TokenId> read_ids(ConfigFields& fields, std::string_view key, std::int64_t vocabulary) {
  const auto* value = fields.find(key);
  if (value == nullptr) return {};
  std::vector<TokenId> ids;
  const nlohmann::json list = value->is_array() ? *value : nlohmann::json::array({*value});
  for (const auto& item : list) {
    const auto id = integer_in(item, vocabulary - 1);
    if (!id) {
      fields.refuse(fmt::format("{} is {}; it must be a token id from 0 to {} (vocab_size - 1)",
                                key, show_value(item), vocabulary - 1));
      return {};
    }
    ids.push_back(TokenId{static_cast<std::int32_t>(*id)});
  }
  return ids;
}

void read_token_ids(ConfigFields& config, ConfigFields& generation, ModelDescription& description) {
  const std::int64_t vocabulary = description.vocabulary;
  description.eos = read_ids(generation, "eos_token_id", vocabulary);
  if (description.eos.empty()) description.eos = read_ids(config, "eos_token_id", vocabulary);
  std::vector<TokenId> bos = read_ids(config, "bos_token_id", vocabulary);
  if (bos.empty()) bos = read_ids(generation, "bos_token_id", vocabulary);
  if (!bos.empty()) description.bos = bos.front();
}

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

Result<ModelDescription> describe_model(const ConfigSource& source) {
  ConfigFields fields(*source.config, source.name);
  if (!fields.good()) return fields.failure();
  const Architecture* architecture = read_architecture(fields);
  if (architecture == nullptr) return fields.failure();
  ModelDescription description;
  description.model_type = std::string(architecture->model_type);
  refuse_unsupported(fields);
  read_shape(fields, *architecture, description);
  read_biases(fields, *architecture, description);
  read_experts(fields, *architecture, description);
  read_window(fields, *architecture, description);
  read_rope(fields, description);
  read_dtype(fields, description);
  const nlohmann::json nothing = nlohmann::json::object();
  ConfigFields generation(source.generation_config != nullptr ? *source.generation_config : nothing,
                          source.generation_name);
  read_token_ids(fields, generation, description);
  if (!fields.good()) return fields.failure();
  if (!generation.good()) return generation.failure();
  return description;
}

}  // namespace driftscope
