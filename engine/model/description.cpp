// SPDX-License-Identifier: Apache-2.0
#include "engine/model/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "engine/model/config_fields.h"
#include "engine/model/expert_description.h"
#include "engine/model/rope_description.h"
#include "engine/model/window_description.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Bias = Architecture::AttentionBias;

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

struct ActivationName {
  std::string_view name;
  Activation activation;
};
constexpr std::array<ActivationName, 6> kActivations{{{"silu", Activation::silu},
                                                      {"swish", Activation::silu},
                                                      {"gelu_new", Activation::gelu_tanh},
                                                      {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                      {"gelu", Activation::gelu_erf},
                                                      {"gelu_python", Activation::gelu_erf}}};

void read_activation(ConfigFields& fields, const Architecture& architecture,
                     ModelDescription& description) {
  description.activation = architecture.default_activation;
  if (architecture.fixed_activation) return;
  const std::string_view key = architecture.keys.activation;
  const std::string name = fields.text(key, "");
  if (name.empty()) return;
  for (const ActivationName& row : kActivations) {
    if (row.name != name) continue;
    description.activation = row.activation;
    if (row.activation != Activation::silu && !architecture.mixture.experts_key.empty()) {
      fields.refuse(
          fmt::format("{} \"{}\" is not supported with experts; only silu is", key, name));
    }
    return;
  }
  fields.refuse(
      fmt::format("{} \"{}\" is not supported; supported are silu, gelu, gelu_new and "
                  "gelu_pytorch_tanh",
                  key, escape_for_display(name)));
}

// A key of the shape; required where the architecture has no default for it.
std::int64_t shape_count(ConfigFields& fields, std::string_view key, std::int64_t by_default) {
  return by_default > 0 ? fields.count(key, by_default) : fields.count(key);
}

void check_heads(ConfigFields& fields, const ModelDescription& description) {
  if (description.heads % description.kv_heads != 0) {
    fields.refuse(
        fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}; "
                    "fix the checkpoint",
                    description.heads, description.kv_heads));
  }
  if (description.head_dim % 2 != 0 && !description.learned_positions) {
    fields.refuse(
        fmt::format("head_dim {} is odd, rotary embedding needs pairs; fix the "
                    "checkpoint",
                    description.head_dim));
  }
}

void read_head_dim(ConfigFields& fields, const Architecture& architecture,
                   ModelDescription& description) {
  description.head_dim =
      fields.count("head_dim", fields.contains("head_dim") ? 0 : architecture.default_head_dim);
  if (!fields.good() || description.head_dim != 0) return;
  if (description.hidden % description.heads != 0) {
    fields.refuse(
        fmt::format("{} {} is not a multiple of {} heads and head_dim is not "
                    "given; fix the checkpoint",
                    architecture.keys.hidden, description.hidden, description.heads));
    return;
  }
  description.head_dim = description.hidden / description.heads;
}

void read_shape(ConfigFields& fields, const Architecture& architecture,
                ModelDescription& description) {
  const Architecture::Keys& keys = architecture.keys;
  const Architecture::Shape& shape = architecture.shape;
  description.hidden = shape_count(fields, keys.hidden, shape.hidden);
  description.layers = shape_count(fields, keys.layers, shape.layers);
  description.heads = shape_count(fields, keys.heads, shape.heads);
  // The plain feed-forward part is four times as wide unless the file says otherwise.
  description.intermediate = architecture.gated
                                 ? shape_count(fields, keys.intermediate, shape.intermediate)
                                 : fields.count(keys.intermediate, 4 * description.hidden);
  description.vocabulary = shape_count(fields, "vocab_size", shape.vocabulary);
  description.kv_heads = description.heads;
  if (!keys.kv_heads.empty()) {
    // Absent means the class's default, null means as many as heads.
    const bool class_default =
        !fields.contains(keys.kv_heads) && architecture.default_kv_heads != 0;
    description.kv_heads = fields.count(
        keys.kv_heads, class_default ? architecture.default_kv_heads : description.heads);
  }
  description.max_positions = fields.count(keys.max_positions, architecture.default_max_positions);
  description.rms_epsilon = fields.positive(keys.epsilon, architecture.default_epsilon);
  description.norm = architecture.norm;
  description.gated = architecture.gated;
  description.learned_positions = architecture.learned_positions;
  description.attention_sinks = architecture.attention_sinks;
  read_head_dim(fields, architecture, description);
  if (fields.good()) check_heads(fields, description);
}

void read_biases(ConfigFields& fields, const Architecture& architecture,
                 ModelDescription& description) {
  switch (architecture.attention_bias) {
    case Bias::none:
      break;
    case Bias::always:
      description.qkv_bias = true;
      description.output_bias = true;
      break;
    case Bias::qkv:
      description.qkv_bias = true;
      break;
    case Bias::qkv_by_default:
      description.qkv_bias = fields.flag("qkv_bias", true);
      break;
    case Bias::as_configured:
    case Bias::unless_off:
      description.qkv_bias =
          fields.flag("attention_bias", architecture.attention_bias == Bias::unless_off);
      description.output_bias = description.qkv_bias;
      break;
  }
  description.mlp_bias = architecture.gated
                             ? architecture.mlp_bias && fields.flag("mlp_bias", false)
                             : architecture.attention_bias == Bias::always;
  description.qk_norm = architecture.qk_norm;
  description.tied_embeddings = fields.flag("tie_word_embeddings", architecture.default_tied);
}

// A cap: absent means the class's default, null means none.
double read_cap(ConfigFields& fields, std::string_view key, double by_default) {
  return fields.contains(key) && !fields.has(key) ? 0.0 : fields.positive(key, by_default);
}

void read_gemma(ConfigFields& fields, const Architecture& architecture,
                ModelDescription& description) {
  constexpr double kDefaultQueryScalar = 256.0;
  if (!architecture.gemma) return;
  description.post_norms = true;
  description.embedding_scale = std::sqrt(static_cast<double>(description.hidden));
  description.attention_scale =
      1.0 / std::sqrt(fields.positive("query_pre_attn_scalar", kDefaultQueryScalar));
  description.attention_softcap =
      read_cap(fields, "attn_logit_softcapping", architecture.default_attention_softcap);
  description.final_softcap =
      read_cap(fields, "final_logit_softcapping", architecture.default_final_softcap);
  if (fields.flag("use_bidirectional_attention", false)) {
    fields.refuse("use_bidirectional_attention is not supported; only causal decoders are");
  }
}

void read_gpt2(ConfigFields& fields, const Architecture& architecture,
               ModelDescription& description) {
  if (!architecture.learned_positions) return;
  if (!fields.flag("scale_attn_weights", true)) description.attention_scale = 1.0;
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"}) {
    if (fields.flag(key, false)) fields.refuse(fmt::format("{} is not supported", key));
  }
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

// The object that holds the decoder's keys, and how messages call it.
struct DecoderKeys {
  const nlohmann::json* object = nullptr;
  std::string name;
};

DecoderKeys decoder_keys(ConfigFields& fields, const Architecture& architecture,
                         const ConfigSource& source) {
  if (architecture.nested.empty()) return {source.config, source.name};
  const auto* nested = fields.find(architecture.nested);
  if (nested == nullptr) {
    fields.refuse(fmt::format("{} is missing; it must hold the decoder's keys of {}",
                              architecture.nested, architecture.model_type));
  }
  return {nested, fmt::format("{}: {}", source.name, architecture.nested)};
}

ModelDescription read_decoder(ConfigFields& fields, const Architecture& architecture) {
  ModelDescription description;
  // What a decoder inside another file is called on its own.
  description.model_type = architecture.nested.empty()
                               ? std::string(architecture.model_type)
                               : std::string(architecture.model_type) + "_text";
  read_activation(fields, architecture, description);
  read_shape(fields, architecture, description);
  read_biases(fields, architecture, description);
  read_gemma(fields, architecture, description);
  read_gpt2(fields, architecture, description);
  read_experts(fields, architecture, description);
  read_window(fields, architecture, description);
  read_rope(fields, architecture, description);
  read_dtype(fields, description);
  return description;
}

}  // namespace

Result<ModelDescription> describe_model(const ConfigSource& source) {
  ConfigFields top(*source.config, source.name);
  if (!top.good()) return top.failure();
  const Architecture* architecture = read_architecture(top);
  if (architecture == nullptr) return top.failure();
  const DecoderKeys keys = decoder_keys(top, *architecture, source);
  if (!top.good()) return top.failure();
  ConfigFields fields(*keys.object, keys.name);
  ModelDescription description = read_decoder(fields, *architecture);
  const nlohmann::json nothing = nlohmann::json::object();
  ConfigFields generation(source.generation_config != nullptr ? *source.generation_config : nothing,
                          source.generation_name);
  top.adopt(fields);
  if (top.good()) read_token_ids(top, generation, description);
  if (!top.good()) return top.failure();
  if (!generation.good()) return generation.failure();
  return description;
}

}  // namespace driftscope
