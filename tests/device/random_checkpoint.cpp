// SPDX-License-Identifier: Apache-2.0
#include "tests/device/random_checkpoint.h"

#include <cmath>

namespace driftscope::parity {
namespace {

class RandomCheckpoint final : public ModelCheckpoint {
 public:
  explicit RandomCheckpoint(const RandomModel& model) {
    m_description.model_type = model.type;
    m_description.hidden = model.hidden;
    m_description.layers = model.layers;
    m_description.heads = model.heads;
    m_description.kv_heads = model.kv_heads;
    m_description.head_dim = model.head_dim;
    m_description.intermediate = model.intermediate;
    m_description.vocabulary = model.vocabulary;
    m_description.max_positions = 4096;
    m_description.sliding_window = model.sliding_window;
    m_description.tied_embeddings = model.tied;
    m_description.qkv_bias = model.type.starts_with("qwen2");
    m_description.qk_norm = model.type.starts_with("qwen3");
    m_description.moe = model.moe;
    m_description.stored_dtype = Dtype::bf16;
    m_embedding = matrix(model.vocabulary, model.hidden);
    m_lm_head = model.tied ? m_embedding : matrix(model.vocabulary, model.hidden);
    m_final_norm = vector(model.hidden, 1.0F);
    for (std::int64_t i = 0; i < model.layers; ++i) m_layers.push_back(make_layer(i));
  }

  [[nodiscard]] const std::filesystem::path& path() const override { return m_path; }
  [[nodiscard]] const ModelDescription& description() const override { return m_description; }
  [[nodiscard]] const TensorView& embedding() const override { return m_embedding; }
  [[nodiscard]] const TensorView& final_norm() const override { return m_final_norm; }
  [[nodiscard]] const TensorView& lm_head() const override { return m_lm_head; }
  [[nodiscard]] const LayerTensors& layer(std::int64_t index) const override {
    return m_layers[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] Result<std::vector<CheckpointFile>> files() const override {
    return std::vector<CheckpointFile>{};
  }
  [[nodiscard]] Result<std::string> combined_sha256() const override { return std::string{}; }

 private:
  LayerTensors make_layer(std::int64_t index) {
    const ModelDescription& d = m_description;
    const std::int64_t queries = d.heads * d.head_dim;
    const std::int64_t keys = d.kv_heads * d.head_dim;
    LayerTensors layer;
    layer.attention_norm = vector(d.hidden, 1.0F);
    layer.q = matrix(queries, d.hidden);
    layer.k = matrix(keys, d.hidden);
    layer.v = matrix(keys, d.hidden);
    if (d.qkv_bias) {
      layer.q_bias = vector(queries, 0.0F);
      layer.k_bias = vector(keys, 0.0F);
      layer.v_bias = vector(keys, 0.0F);
    }
    if (d.qk_norm) {
      layer.q_norm = vector(d.head_dim, 1.0F);
      layer.k_norm = vector(d.head_dim, 1.0F);
    }
    layer.o = matrix(d.hidden, queries);
    layer.ffn_norm = vector(d.hidden, 1.0F);
    if (d.moe.in_layer(index)) {
      add_experts(layer);
      return layer;
    }
    layer.gate = matrix(d.intermediate, d.hidden);
    layer.up = matrix(d.intermediate, d.hidden);
    layer.down = matrix(d.hidden, d.intermediate);
    return layer;
  }

  void add_experts(LayerTensors& layer) {
    const std::int64_t hidden = m_description.hidden;
    const ExpertDescription& moe = m_description.moe;
    layer.router = matrix(moe.experts, hidden);
    for (std::int64_t i = 0; i < moe.experts; ++i) {
      ExpertTensors& expert = layer.experts.emplace_back();
      expert.gate = matrix(moe.intermediate, hidden);
      expert.up = matrix(moe.intermediate, hidden);
      expert.down = matrix(hidden, moe.intermediate);
    }
    if (moe.shared_intermediate == 0) return;
    layer.shared_gate = matrix(moe.shared_intermediate, hidden);
    layer.shared_up = matrix(moe.shared_intermediate, hidden);
    layer.shared_down = matrix(hidden, moe.shared_intermediate);
    layer.shared_weight = matrix(1, hidden);
  }

  TensorView matrix(std::int64_t rows, std::int64_t columns) {
    const auto spread = static_cast<float>(1.7 / std::sqrt(static_cast<double>(columns)));
    return tensor({rows, columns}, 0.0F, spread);
  }
  TensorView vector(std::int64_t count, float centre) { return tensor({count}, centre, 0.1F); }

  // Uniform in [centre - spread, centre + spread): xorshift64* (Vigna), fast enough for gigabytes.
  TensorView tensor(std::vector<std::int64_t> shape, float centre, float spread) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    std::vector<std::uint16_t>& values = m_storage.emplace_back(static_cast<std::size_t>(count));
    for (std::uint16_t& value : values) {
      m_state ^= m_state >> 12U;
      m_state ^= m_state << 25U;
      m_state ^= m_state >> 27U;
      const auto integer = static_cast<std::int32_t>((m_state * 0x2545f4914f6cdd1dU) >> 40U);
      value = bf16_from_float(centre + static_cast<float>(integer - (1 << 23)) * 0x1p-23F * spread);
    }
    return {.data = values.data(), .dtype = Dtype::bf16, .shape = std::move(shape), .name = {}};
  }

  std::filesystem::path m_path = "random";
  ModelDescription m_description;
  std::uint64_t m_state = 0x9e3779b97f4a7c15U;
  std::vector<std::vector<std::uint16_t>> m_storage;
  TensorView m_embedding, m_final_norm, m_lm_head;
  std::vector<LayerTensors> m_layers;
};

}  // namespace

std::shared_ptr<const ModelCheckpoint> random_checkpoint(const RandomModel& model) {
  return std::make_shared<const RandomCheckpoint>(model);
}

}  // namespace driftscope::parity
