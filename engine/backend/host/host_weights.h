// SPDX-License-Identifier: Apache-2.0
// A checkpoint's weights as the host's kernels read them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/backend/host/huge_memory.h"
#include "engine/config/run_config.h"
#include "engine/model/checkpoint.h"
#include "kernels/matmul/matmul.h"
#include "kernels/quant/quant_format.h"

namespace driftscope {

// A matrix and its bias, widened to f32 (empty: none).
struct Linear {
  WeightView weight;        // [outputs, inputs]
  std::vector<float> bias;  // [outputs] or empty
  [[nodiscard]] const float* bias_or_null() const { return bias.empty() ? nullptr : bias.data(); }
};

// A feed-forward part that some rows go through.
struct HostExpert {
  Linear gate, up;
  Linear gate_up;  // the two stacked; data null if not asked for
  Linear down;
};

// What stands in place of gate, up and down in a layer with experts.
struct HostExperts {
  Linear router;                    // [experts, hidden]
  std::vector<HostExpert> experts;  // [experts]; empty in dense layers
  HostExpert shared;                // data null: none
  Linear shared_weight;             // [1, hidden]
};

// Vectors are empty where the model has none.
struct HostLayer {
  std::vector<float> attention_norm, attention_norm_bias;  // [hidden]
  Linear q, k, v;
  Linear qkv;  // the three stacked, in this order; data null if not asked for
  std::vector<float> q_norm, k_norm;  // [head_dim]
  std::vector<float> sinks;           // [heads]
  Linear o;
  std::vector<float> post_attention_norm;                     // [hidden]
  std::vector<float> ffn_norm, ffn_norm_bias, post_ffn_norm;  // [hidden]
  Linear gate, up;  // gate: data null where the feed-forward part has none
  Linear gate_up;   // the two stacked; data null if not asked for
  Linear down;
  HostExperts moe;
};

// Mapped weights stay in the page cache and start at once; copies in anonymous huge pages
// decode two to three times faster.
enum class WeightStorage : std::uint8_t { copied, mapped };

struct WeightOptions {
  WeightDtype weights = WeightDtype::checkpoint;
  WeightDtype lm_head = WeightDtype::checkpoint;
  bool stacked = false;  // needed for fused matmuls; copied weights are always stacked
  // The layers' matrices become codes, from the stored values; norms, biases and the embedding keep
  // their type. A stacked matrix is its parts' codes one after another.
  std::optional<QuantSpec> quantisation = {};
  bool quantise_lm_head = false;              // the LM head too; the embedding stays as it is
  std::optional<WeightStorage> storage = {};  // empty: copied where memory allows
  Parallel* parallel = nullptr;  // copies and quantises; null: this thread. Changes no bit.
};
// What the quantisation knobs ask for; empty: none.
[[nodiscard]] std::optional<QuantSpec> quant_spec(const RunConfig& config);

// Immutable once loaded; shared by every lane that wants the same.
class HostWeights {
 public:
  // Errors: engine (no memory), malformed (a weight to be quantised is NaN or infinite).
  [[nodiscard]] static Result<std::shared_ptr<const HostWeights>> load(
      std::shared_ptr<const ModelCheckpoint> checkpoint, const WeightOptions& options);

  [[nodiscard]] const ModelCheckpoint& checkpoint() const { return *m_checkpoint; }
  [[nodiscard]] const WeightView& embedding() const { return m_embedding; }  // [vocabulary, hidden]
  [[nodiscard]] const WeightView& lm_head() const { return m_lm_head; }      // [vocabulary, hidden]
  [[nodiscard]] const std::vector<float>& final_norm() const { return m_final_norm; }
  [[nodiscard]] const std::vector<float>& final_norm_bias() const { return m_final_norm_bias; }
  // [max_positions, hidden]; data null where positions are rotations
  [[nodiscard]] const WeightView& position_embedding() const { return m_position_embedding; }
  [[nodiscard]] const HostLayer& layer(std::int64_t index) const {
    return m_layers[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] WeightStorage storage() const { return m_storage; }
  [[nodiscard]] std::string storage_note() const;
  // "weights: q_proj … down_proj int4_symmetric group=128, lm_head as stored"; empty: nothing is
  // quantised.
  [[nodiscard]] const std::string& quantisation_note() const { return m_quantisation_note; }

 private:
  friend class WeightLoader;
  std::shared_ptr<const ModelCheckpoint> m_checkpoint;
  HugeArena m_arena;
  WeightStorage m_storage = WeightStorage::copied;
  WeightView m_embedding;
  WeightView m_lm_head;
  WeightView m_position_embedding;
  std::vector<float> m_final_norm, m_final_norm_bias;
  std::vector<HostLayer> m_layers;
  std::string m_quantisation_note;
};

// Gives lanes with equal wishes the same weights, for as long as one of them holds them.
class WeightCache {
 public:
  [[nodiscard]] Result<std::shared_ptr<const HostWeights>> get(
      const std::shared_ptr<const ModelCheckpoint>& checkpoint, const WeightOptions& options);

 private:
  struct Entry {
    std::weak_ptr<const ModelCheckpoint> checkpoint;
    WeightDtype weights;
    WeightDtype lm_head;
    bool stacked;
    std::optional<QuantSpec> quantisation;
    bool quantise_lm_head;
    std::weak_ptr<const HostWeights> loaded;
  };
  std::mutex m_mutex;
  std::vector<Entry> m_entries;
};

}  // namespace driftscope
