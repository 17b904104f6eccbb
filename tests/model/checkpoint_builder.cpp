// SPDX-License-Identifier: Apache-2.0
#include "tests/model/checkpoint_builder.h"

namespace driftscope {

std::string u64_bytes(std::uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>((value >> (8 * i)) & 0xFF));
  return bytes;
}

std::string safetensors_bytes(const std::string& header, const std::string& data) {
  return u64_bytes(header.size()) + header + data;
}

std::string tensor_file(const std::vector<BuiltTensor>& tensors, std::size_t extra_padding) {
  nlohmann::json header = nlohmann::json::object();
  std::size_t position = 0;
  for (const BuiltTensor& tensor : tensors) {
    std::size_t bytes = tensor.dtype == "F64" || tensor.dtype == "I64" ? 8
                        : tensor.dtype == "F32"                        ? 4
                        : tensor.dtype == "I8" || tensor.dtype == "U8" ? 1
                                                                       : 2;
    for (const std::int64_t size : tensor.shape) bytes *= static_cast<std::size_t>(size);
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {position, position + bytes}}};
    position += bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8 + extra_padding, ' ');
  return safetensors_bytes(text, std::string(position, '\0'));
}

nlohmann::json small_config(const std::string& model_type) {
  return {{"model_type", model_type}, {"hidden_size", 8},         {"num_hidden_layers", 2},
          {"num_attention_heads", 2}, {"num_key_value_heads", 1}, {"head_dim", 4},
          {"intermediate_size", 12},  {"vocab_size", 16},         {"max_position_embeddings", 64},
          {"rms_norm_eps", 1e-5},     {"rope_theta", 10000.0},    {"tie_word_embeddings", false},
          {"torch_dtype", "float32"}};
}

std::vector<BuiltTensor> small_tensors(const nlohmann::json& config, const std::string& prefix) {
  const std::string type = config.at("model_type");
  const bool attention_bias = config.value("attention_bias", false);
  const bool qkv_bias = type == "qwen2" || attention_bias;
  const bool mlp_bias = config.value("mlp_bias", false);
  std::vector<BuiltTensor> tensors{{prefix + "embed_tokens.weight", "F32", {16, 8}},
                                   {prefix + "norm.weight", "F32", {8}}};
  if (!config.value("tie_word_embeddings", false)) {
    tensors.push_back({"lm_head.weight", "F32", {16, 8}});
  }
  for (const char* layer : {"layers.0.", "layers.1."}) {
    const auto add = [&](const char* suffix, std::vector<std::int64_t> shape) {
      tensors.push_back({prefix + layer + suffix, "F32", std::move(shape)});
    };
    add("input_layernorm.weight", {8});
    add("post_attention_layernorm.weight", {8});
    add("self_attn.q_proj.weight", {8, 8});
    add("self_attn.k_proj.weight", {4, 8});
    add("self_attn.v_proj.weight", {4, 8});
    add("self_attn.o_proj.weight", {8, 8});
    add("mlp.gate_proj.weight", {12, 8});
    add("mlp.up_proj.weight", {12, 8});
    add("mlp.down_proj.weight", {8, 12});
    if (qkv_bias) {
      add("self_attn.q_proj.bias", {8});
      add("self_attn.k_proj.bias", {4});
      add("self_attn.v_proj.bias", {4});
    }
    if (attention_bias) add("self_attn.o_proj.bias", {8});
    if (mlp_bias) {
      add("mlp.gate_proj.bias", {12});
      add("mlp.up_proj.bias", {12});
      add("mlp.down_proj.bias", {8});
    }
    if (type == "qwen3") {
      add("self_attn.q_norm.weight", {4});
      add("self_attn.k_norm.weight", {4});
    }
  }
  return tensors;
}

void write_checkpoint(const TemporaryDirectory& directory, const nlohmann::json& config,
                      const std::vector<BuiltTensor>& tensors) {
  directory.write("config.json", config.dump());
  directory.write("model.safetensors", tensor_file(tensors));
}

}  // namespace driftscope
