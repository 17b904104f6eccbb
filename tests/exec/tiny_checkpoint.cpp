// SPDX-License-Identifier: Apache-2.0
#include "tests/exec/tiny_checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace driftscope::test {
namespace {

// splitmix64: the same weights on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : m_state(seed) {}
  // In (-1, 1), 24 bits.
  float uniform() {
    m_state += 0x9E3779B97F4A7C15U;
    std::uint64_t z = m_state;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    z ^= z >> 31U;
    return static_cast<float>(static_cast<std::int64_t>(z >> 40U) - (std::int64_t{1} << 23U)) *
           0x1.0p-23F;
  }

 private:
  std::uint64_t m_state;
};

std::string dtype_text(Dtype dtype, bool safetensors) {
  switch (dtype) {
    case Dtype::f32:
      return safetensors ? "F32" : "float32";
    case Dtype::f16:
      return safetensors ? "F16" : "float16";
    case Dtype::bf16:
      return safetensors ? "BF16" : "bfloat16";
    case Dtype::f64:
      break;
  }
  throw std::runtime_error("no such weight type");
}

class TensorMaker {
 public:
  explicit TensorMaker(std::uint64_t seed) : m_random(seed) {}
  void matrix(const std::string& name, std::int64_t rows, std::int64_t columns, float scale) {
    NamedTensor tensor{.name = name, .shape = {rows, columns}, .values = {}};
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      tensor.values.push_back(scale * m_random.uniform());
    }
    m_tensors.push_back(std::move(tensor));
  }
  void projection(const std::string& name, std::int64_t rows, std::int64_t columns) {
    matrix(name, rows, columns, std::sqrt(3.0F / static_cast<float>(columns)));
  }
  void vector(const std::string& name, std::int64_t size, float centre, float spread) {
    NamedTensor tensor{.name = name, .shape = {size}, .values = {}};
    for (std::int64_t i = 0; i < size; ++i) {
      tensor.values.push_back(centre + spread * m_random.uniform());
    }
    m_tensors.push_back(std::move(tensor));
  }
  std::vector<NamedTensor> take() { return std::move(m_tensors); }

 private:
  Random m_random;
  std::vector<NamedTensor> m_tensors;
};

bool is_mixture(const TinyModel& model) {
  return model.type == "mixtral" || model.type.ends_with("_moe");
}

void add_feed_forward(TensorMaker& maker, const std::string& prefix, std::int64_t hidden,
                      std::int64_t width) {
  maker.projection(prefix + "gate_proj.weight", width, hidden);
  maker.projection(prefix + "up_proj.weight", width, hidden);
  maker.projection(prefix + "down_proj.weight", hidden, width);
}

void add_experts(TensorMaker& maker, const TinyModel& model, const std::string& layer) {
  if (model.type == "mixtral") {
    const std::string block = layer + "block_sparse_moe.";
    maker.projection(block + "gate.weight", model.experts, model.hidden);
    for (std::int64_t i = 0; i < model.experts; ++i) {
      const std::string expert = block + "experts." + std::to_string(i) + ".";
      maker.projection(expert + "w1.weight", model.intermediate, model.hidden);
      maker.projection(expert + "w2.weight", model.hidden, model.intermediate);
      maker.projection(expert + "w3.weight", model.intermediate, model.hidden);
    }
    return;
  }
  maker.projection(layer + "mlp.gate.weight", model.experts, model.hidden);
  for (std::int64_t i = 0; i < model.experts; ++i) {
    add_feed_forward(maker, layer + "mlp.experts." + std::to_string(i) + ".", model.hidden,
                     model.expert_intermediate);
  }
  if (model.type != "qwen2_moe") return;
  add_feed_forward(maker, layer + "mlp.shared_expert.", model.hidden, model.shared_intermediate);
  maker.projection(layer + "mlp.shared_expert_gate.weight", 1, model.hidden);
}

void add_layer(TensorMaker& maker, const TinyModel& model, std::int64_t index) {
  const std::string layer = "model.layers." + std::to_string(index) + ".";
  const std::int64_t queries = model.heads * model.head_dim;
  const std::int64_t keys = model.kv_heads * model.head_dim;
  maker.vector(layer + "input_layernorm.weight", model.hidden, 1.0F, 0.2F);
  const std::pair<const char*, std::int64_t> projections[] = {
      {"q_proj", queries}, {"k_proj", keys}, {"v_proj", keys}};
  for (const auto& [name, rows] : projections) {
    maker.projection(layer + "self_attn." + name + ".weight", rows, model.hidden);
    if (model.type.starts_with("qwen2")) {
      maker.vector(layer + "self_attn." + name + ".bias", rows, 0.0F, 0.3F);
    }
  }
  if (model.type.starts_with("qwen3")) {
    maker.vector(layer + "self_attn.q_norm.weight", model.head_dim, 1.0F, 0.2F);
    maker.vector(layer + "self_attn.k_norm.weight", model.head_dim, 1.0F, 0.2F);
  }
  maker.projection(layer + "self_attn.o_proj.weight", model.hidden, queries);
  maker.vector(layer + "post_attention_layernorm.weight", model.hidden, 1.0F, 0.2F);
  if (model.has_experts(index)) {
    add_experts(maker, model, layer);
  } else {
    add_feed_forward(maker, layer + "mlp.", model.hidden, model.intermediate);
  }
}

nlohmann::json config_of(const TinyModel& model) {
  nlohmann::json config{{"model_type", model.type},
                        {"hidden_size", model.hidden},
                        {"num_hidden_layers", model.layers},
                        {"num_attention_heads", model.heads},
                        {"num_key_value_heads", model.kv_heads},
                        {"head_dim", model.head_dim},
                        {"intermediate_size", model.intermediate},
                        {"vocab_size", model.vocabulary},
                        {"max_position_embeddings", model.max_positions},
                        {"rms_norm_eps", 1e-5},
                        {"rope_theta", 10000.0},
                        {"hidden_act", "silu"},
                        {"tie_word_embeddings", model.tied},
                        {"torch_dtype", dtype_text(model.dtype, false)}};
  if (model.type == "mixtral") {
    config["num_local_experts"] = model.experts;
  } else if (is_mixture(model)) {
    config["num_experts"] = model.experts;
    config["moe_intermediate_size"] = model.expert_intermediate;
    config["norm_topk_prob"] = model.renormalise;
    config["mlp_only_layers"] = model.dense_layers;
    if (model.type == "qwen2_moe") {
      config["shared_expert_intermediate_size"] = model.shared_intermediate;
    }
  }
  if (is_mixture(model)) config["num_experts_per_tok"] = model.chosen;
  const std::string architecture = model.type == "qwen2"     ? "Qwen2ForCausalLM"
                                   : model.type == "qwen3"   ? "Qwen3ForCausalLM"
                                   : model.type == "mistral" ? "MistralForCausalLM"
                                                             : "LlamaForCausalLM";
  config["architectures"] = {architecture};
  if (model.sliding_window > 0) config["sliding_window"] = model.sliding_window;
  if (!model.eos.empty()) config["eos_token_id"] = model.eos;
  return config;
}

}  // namespace

bool TinyModel::has_experts(std::int64_t layer) const {
  return is_mixture(*this) &&
         std::find(dense_layers.begin(), dense_layers.end(), layer) == dense_layers.end();
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "driftscope-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  m_path = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(m_path, ignored);
}

std::vector<NamedTensor> random_tensors(const TinyModel& model) {
  TensorMaker maker(model.seed);
  maker.matrix("model.embed_tokens.weight", model.vocabulary, model.hidden, 0.6F);
  for (std::int64_t i = 0; i < model.layers; ++i) add_layer(maker, model, i);
  maker.vector("model.norm.weight", model.hidden, 1.0F, 0.2F);
  if (!model.tied) {
    maker.matrix("lm_head.weight", model.vocabulary, model.hidden,
                 3.0F * std::sqrt(3.0F / static_cast<float>(model.hidden)));
  }
  return maker.take();
}

void write_checkpoint(const std::filesystem::path& folder, const TinyModel& model,
                      const std::vector<NamedTensor>& tensors) {
  std::ofstream(folder / "config.json") << config_of(model).dump(1);
  nlohmann::ordered_json header;
  std::string data;
  for (const NamedTensor& tensor : tensors) {
    const std::size_t begin = data.size();
    data.resize(begin + tensor.values.size() * dtype_size(model.dtype));
    narrow(model.dtype, tensor.values.data(), data.data() + begin, tensor.values.size());
    header[tensor.name] = {{"dtype", dtype_text(model.dtype, true)},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::ofstream file(folder / "model.safetensors", std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << text << data;
}

std::shared_ptr<const ModelCheckpoint> open_tensors(const TinyModel& model,
                                                    const std::vector<NamedTensor>& tensors) {
  auto folder = std::make_shared<TemporaryFolder>();
  write_checkpoint(folder->path(), model, tensors);
  auto opened = ModelCheckpoint::open(folder->path());
  if (!opened) throw std::runtime_error(opened.error().message);
  auto checkpoint = *opened;
  // The folder lives as long as the checkpoint.
  const ModelCheckpoint* raw = checkpoint.get();
  return {raw, [folder, checkpoint](const ModelCheckpoint*) {}};
}

std::shared_ptr<const ModelCheckpoint> tiny_checkpoint(const TinyModel& model) {
  return open_tensors(model, random_tensors(model));
}

}  // namespace driftscope::test
