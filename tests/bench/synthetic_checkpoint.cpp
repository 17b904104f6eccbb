// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/synthetic_checkpoint.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/plan/dtype.h"

namespace driftscope::bench {
namespace {

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  float centre = 0.0F;
  float spread = 1.0F;
  [[nodiscard]] std::int64_t elements() const {
    return shape[0] * (shape.size() > 1 ? shape[1] : 1);
  }
};

Tensor matrix(std::string name, std::int64_t rows, std::int64_t columns) {
  return {.name = std::move(name),
          .shape = {rows, columns},
          .centre = 0.0F,
          .spread = std::sqrt(3.0F / static_cast<float>(columns))};
}

Tensor vector(std::string name, std::int64_t size, float centre) {
  return {.name = std::move(name), .shape = {size}, .centre = centre, .spread = 0.1F};
}

std::vector<Tensor> tensors_of(const SyntheticShape& shape) {
  const std::int64_t head_dim = shape.hidden / shape.heads;
  const std::int64_t keys = shape.kv_heads * head_dim;
  std::vector<Tensor> tensors;
  tensors.push_back(matrix("model.embed_tokens.weight", shape.vocabulary, shape.hidden));
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    const std::string attention = layer + "self_attn.";
    tensors.push_back(vector(layer + "input_layernorm.weight", shape.hidden, 1.0F));
    tensors.push_back(matrix(attention + "q_proj.weight", shape.hidden, shape.hidden));
    tensors.push_back(vector(attention + "q_proj.bias", shape.hidden, 0.0F));
    tensors.push_back(matrix(attention + "k_proj.weight", keys, shape.hidden));
    tensors.push_back(vector(attention + "k_proj.bias", keys, 0.0F));
    tensors.push_back(matrix(attention + "v_proj.weight", keys, shape.hidden));
    tensors.push_back(vector(attention + "v_proj.bias", keys, 0.0F));
    tensors.push_back(matrix(attention + "o_proj.weight", shape.hidden, shape.hidden));
    tensors.push_back(vector(layer + "post_attention_layernorm.weight", shape.hidden, 1.0F));
    tensors.push_back(matrix(layer + "mlp.gate_proj.weight", shape.intermediate, shape.hidden));
    tensors.push_back(matrix(layer + "mlp.up_proj.weight", shape.intermediate, shape.hidden));
    tensors.push_back(matrix(layer + "mlp.down_proj.weight", shape.hidden, shape.intermediate));
  }
  tensors.push_back(vector("model.norm.weight", shape.hidden, 1.0F));
  return tensors;
}

nlohmann::json config_of(const SyntheticShape& shape) {
  return {{"architectures", {"Qwen2ForCausalLM"}},
          {"model_type", "qwen2"},
          {"hidden_size", shape.hidden},
          {"num_hidden_layers", shape.layers},
          {"num_attention_heads", shape.heads},
          {"num_key_value_heads", shape.kv_heads},
          {"intermediate_size", shape.intermediate},
          {"vocab_size", shape.vocabulary},
          {"max_position_embeddings", 4096},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 1000000.0},
          {"hidden_act", "silu"},
          {"tie_word_embeddings", true},
          {"torch_dtype", "bfloat16"}};
}

std::string header_of(const std::vector<Tensor>& tensors) {
  nlohmann::ordered_json header;
  std::int64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const std::int64_t end = offset + 2 * tensor.elements();
    header[tensor.name] = {
        {"dtype", "BF16"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

// xorshift64*: quick, and the same on every machine.
class Random {
 public:
  float uniform() {
    m_state ^= m_state >> 12U;
    m_state ^= m_state << 25U;
    m_state ^= m_state >> 27U;
    const auto bits = static_cast<std::int32_t>((m_state * 0x2545F4914F6CDD1DU) >> 32U);
    return static_cast<float>(bits) * 0x1.0p-31F;
  }

 private:
  std::uint64_t m_state = 0x9E3779B97F4A7C15U;
};

}  // namespace

Result<void> write_synthetic_checkpoint(const std::filesystem::path& folder,
                                        const SyntheticShape& shape) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const std::vector<Tensor> tensors = tensors_of(shape);
  std::ofstream(folder / "config.json") << config_of(shape).dump(1);
  std::ofstream file(folder / "model.safetensors", std::ios::binary);
  const std::string header = header_of(tensors);
  const std::uint64_t length = header.size();
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << header;
  Random random;
  std::vector<std::uint16_t> values;
  for (const Tensor& tensor : tensors) {
    values.resize(static_cast<std::size_t>(tensor.elements()));
    for (std::uint16_t& value : values) {
      value = bf16_from_float(tensor.centre + tensor.spread * random.uniform());
    }
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(2 * values.size()));
  }
  if (file.flush()) return {};
  return fail(ErrorKind::output, fmt::format("{}: cannot write; is there room for {} MB?",
                                             (folder / "model.safetensors").string(), 2500));
}

}  // namespace driftscope::bench
