// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/reference/reference_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "engine/backend/reference/reference_experts.h"
#include "engine/backend/reference/reference_operations.h"
#include "engine/backend/reference/reference_rotations.h"
#include "engine/backend/reference/reference_taps.h"

namespace driftscope {
namespace {

using Values = std::vector<double>;

// Keys and values per layer, [length, kv_heads, head_dim], f64.
class ReferenceCache final : public KvCache {
 public:
  ReferenceCache(std::int64_t layers, std::int64_t width)
      : m_width(width), m_layers(static_cast<std::size_t>(layers)) {}
  [[nodiscard]] std::int64_t length() const override { return m_length; }
  void truncate(std::int64_t length) override {
    assert(length >= 0 && length <= m_length);
    m_length = length;
    for (Layer& layer : m_layers) {
      layer.keys.resize(static_cast<std::size_t>(length * m_width));
      layer.values.resize(static_cast<std::size_t>(length * m_width));
    }
  }
  [[nodiscard]] Result<std::unique_ptr<KvCache>> clone() const override {
    return std::make_unique<ReferenceCache>(*this);
  }

  struct Layer {
    Values keys, values;
  };
  [[nodiscard]] Layer& layer(std::int64_t index) {
    return m_layers[static_cast<std::size_t>(index)];
  }
  void advance(std::int64_t rows) { m_length += rows; }

 private:
  std::int64_t m_width = 0;
  std::int64_t m_length = 0;
  std::vector<Layer> m_layers;
};

class ReferenceBackend final : public Backend {
 public:
  ReferenceBackend(std::shared_ptr<const ModelCheckpoint> checkpoint,
                   std::shared_ptr<ThreadPool> pool)
      : m_checkpoint(std::move(checkpoint)),
        m_pool(std::move(pool)),
        m_model(m_checkpoint->description()),
        m_rotations(m_model),
        m_experts(m_model),
        m_taps(m_model) {}

  [[nodiscard]] const ModelDescription& model() const override { return m_model; }
  [[nodiscard]] Result<std::unique_ptr<KvCache>> create_cache(std::int64_t) override {
    return std::make_unique<ReferenceCache>(m_model.layers, key_width());
  }
  [[nodiscard]] Result<void> forward(const Batch& batch, const std::stop_token& stop) override;
  [[nodiscard]] std::int64_t output_rows() const override { return m_output_rows; }
  [[nodiscard]] Result<std::span<const float>> logits(std::int64_t first,
                                                      std::int64_t count) override;
  [[nodiscard]] std::span<const TensorTap> taps(std::int64_t output_row) override {
    return m_taps.row(output_row);
  }
  [[nodiscard]] RouteRow routes(std::int64_t output_row) override {
    return m_experts.routes(output_row);
  }
  [[nodiscard]] std::vector<std::string> plans() const override {
    return {"every operation in f64 from the stored weights, sums in sixteen parts"};
  }
  [[nodiscard]] std::string storage_note() const override {
    return "weights mapped from the checkpoint's files, widened row by row";
  }

 private:
  [[nodiscard]] std::int64_t query_width() const { return m_model.heads * m_model.head_dim; }
  [[nodiscard]] std::int64_t key_width() const { return m_model.kv_heads * m_model.head_dim; }
  [[nodiscard]] Values linear(const TensorView& weight, const TensorView& bias, const Values& x,
                              std::int64_t rows) {
    Values y(static_cast<std::size_t>(rows * weight.shape[0]));
    reference::linear(weight, bias, x.data(), rows, y.data(), *m_pool);
    return y;
  }
  // `bias` only counts in layer norms.
  [[nodiscard]] Values normalised(const Values& x, const TensorView& weight, const TensorView& bias,
                                  std::int64_t rows) const {
    Values y(x.size());
    if (m_model.norm == NormKind::layer) {
      reference::layernorm(x.data(), weight, bias, m_model.rms_epsilon, rows, y.data());
    } else {
      reference::rmsnorm(x.data(), weight, m_model.rms_epsilon, rows, y.data());
    }
    return y;
  }
  [[nodiscard]] Result<void> check_room(const ReferenceCache& cache, std::int64_t rows) const;
  [[nodiscard]] Values embed(const BatchSequence& sequence, std::int64_t first) const;
  [[nodiscard]] Values attend(const LayerTensors& layer, std::int64_t index, ReferenceCache& cache,
                              const Values& x, std::int64_t rows);
  void rotate(Values& q, Values& k, std::int64_t index, std::int64_t length,
              std::span<const std::int64_t> positions);
  [[nodiscard]] reference::Attention attention(const LayerTensors& layer) const;
  [[nodiscard]] Values feed_forward(const LayerTensors& layer, std::int64_t index,
                                    const Values& normed, std::int64_t rows);
  void run_layer(std::int64_t index, ReferenceCache& cache, Values& x, std::int64_t rows);
  void keep_outputs(const BatchSequence& sequence, const Values& x, std::int64_t rows);

  std::shared_ptr<const ModelCheckpoint> m_checkpoint;
  std::shared_ptr<ThreadPool> m_pool;
  const ModelDescription& m_model;
  reference::Rotations m_rotations;
  reference::Experts m_experts;
  reference::Taps m_taps;
  std::int64_t m_output_rows = 0;
  Values m_result;              // [output rows, hidden], after the last norm
  std::vector<float> m_logits;  // [rows asked for, vocabulary]
};

void add_to(Values& x, const Values& delta) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += delta[i];
}

// Sequences do not see each other, so one after the other is all the same.
Result<void> ReferenceBackend::forward(const Batch& batch, const std::stop_token& stop) {
  m_output_rows = 0;
  m_result.clear();
  m_experts.begin();
  for (const BatchSequence& sequence : batch.sequences) {
    auto& cache = static_cast<ReferenceCache&>(*sequence.cache);
    const std::int64_t before = cache.length();
    const auto rows = static_cast<std::int64_t>(sequence.tokens.size());
    // One sequence is all that a lane has; taps of several would need rows of each.
    m_taps.begin(sequence.taps && batch.sequences.size() == 1 ? batch.taps : TapLevel::logits,
                 sequence.output_rows);
    if (auto room = check_room(cache, rows); !room) return room;
    Values x = embed(sequence, before);
    m_taps.record(Operation::embd, -1, x);
    m_experts.keep_last(sequence.output_rows);
    for (std::int64_t index = 0; index < m_model.layers; ++index) {
      if (stop.stop_requested()) {
        cache.truncate(before);
        return fail(ErrorKind::interrupted, "stopped on request");
      }
      run_layer(index, cache, x, rows);
    }
    cache.advance(rows);
    keep_outputs(sequence, x, rows);
  }
  return {};
}

// A table of positions has a row for each; angles go on for ever.
Result<void> ReferenceBackend::check_room(const ReferenceCache& cache, std::int64_t rows) const {
  if (!m_model.learned_positions || cache.length() + rows <= m_model.max_positions) return {};
  return fail(ErrorKind::usage,
              fmt::format("position {} is beyond the model's table of {} positions; shorten the "
                          "sequence",
                          cache.length() + rows - 1, m_model.max_positions));
}

Values ReferenceBackend::embed(const BatchSequence& sequence, std::int64_t first) const {
  const std::int64_t hidden = m_model.hidden;
  std::vector<float> row(static_cast<std::size_t>(hidden));
  Values x;
  x.reserve(sequence.tokens.size() * row.size());
  std::int64_t position = first;
  for (const TokenId token : sequence.tokens) {
    m_checkpoint->embedding().values(token.value * hidden, hidden, row.data());
    for (const float value : row) x.push_back(value * m_model.embedding_scale);
    if (!m_model.learned_positions) continue;
    m_checkpoint->position_embedding().values(position++ * hidden, hidden, row.data());
    double* target = x.data() + x.size() - row.size();
    for (std::size_t i = 0; i < row.size(); ++i) target[i] += row[i];
  }
  return x;
}

void ReferenceBackend::run_layer(std::int64_t index, ReferenceCache& cache, Values& x,
                                 std::int64_t rows) {
  const LayerTensors& layer = m_checkpoint->layer(index);
  Values attended = attend(layer, index, cache, x, rows);
  m_taps.record(Operation::attn_out, index, attended);
  if (m_model.post_norms) {
    attended = normalised(attended, layer.post_attention_norm, {}, rows);
    m_taps.record(Operation::attn_post_norm, index, attended);
  }
  add_to(x, attended);
  m_taps.record(Operation::ffn_inp, index, x);
  const Values normed = normalised(x, layer.ffn_norm, layer.ffn_norm_bias, rows);
  m_taps.record(Operation::ffn_norm, index, normed);
  Values delta = m_model.moe.in_layer(index) ? m_experts.run(layer, normed, rows, *m_pool)
                                             : feed_forward(layer, index, normed, rows);
  m_taps.record(Operation::ffn_out, index, delta);
  if (m_model.post_norms) {
    delta = normalised(delta, layer.post_ffn_norm, {}, rows);
    m_taps.record(Operation::ffn_post_norm, index, delta);
  }
  add_to(x, delta);
  m_taps.record(Operation::l_out, index, x);
}

Values ReferenceBackend::feed_forward(const LayerTensors& layer, std::int64_t index,
                                      const Values& normed, std::int64_t rows) {
  Values up = linear(layer.up, layer.up_bias, normed, rows);
  if (!m_model.gated) {
    m_taps.record(Operation::ffn_up, index, up);
    for (double& value : up) value = reference::activated(m_model.activation, value);
    m_taps.record(Operation::ffn_swiglu, index, up);
    return linear(layer.down, layer.down_bias, up, rows);
  }
  Values gate = linear(layer.gate, layer.gate_bias, normed, rows);
  m_taps.record(Operation::ffn_gate, index, gate);
  m_taps.record(Operation::ffn_up, index, up);
  reference::gated(m_model.activation, gate.data(), up.data(),
                   static_cast<std::int64_t>(gate.size()), gate.data());
  m_taps.record(Operation::ffn_swiglu, index, gate);
  return linear(layer.down, layer.down_bias, gate, rows);
}

// `length`: of the sequence after this call. Keys that the cache holds stay as they were rotated:
// who wants the long set of LongRoPE for them too runs the sequence again from its first token.
void ReferenceBackend::rotate(Values& q, Values& k, std::int64_t index, std::int64_t length,
                              std::span<const std::int64_t> positions) {
  if (m_model.learned_positions) return;
  const reference::Rotation& rotation = m_rotations.of(m_model.rotates_locally(index), length);
  reference::rotate(q.data(), positions, m_model.heads, m_model.head_dim, rotation);
  reference::rotate(k.data(), positions, m_model.kv_heads, m_model.head_dim, rotation);
  m_taps.record(Operation::q_rope, index, q);
  m_taps.record(Operation::k_rope, index, k);
}

reference::Attention ReferenceBackend::attention(const LayerTensors& layer) const {
  return {.heads = m_model.heads,
          .kv_heads = m_model.kv_heads,
          .head_dim = m_model.head_dim,
          .scale = m_model.query_scale(),
          .softcap = m_model.attention_softcap,
          .sinks = m_model.attention_sinks ? reference::widened(layer.sinks) : Values{}};
}

Values ReferenceBackend::attend(const LayerTensors& layer, std::int64_t index,
                                ReferenceCache& cache, const Values& x, std::int64_t rows) {
  const Values normed = normalised(x, layer.attention_norm, layer.attention_norm_bias, rows);
  Values q = linear(layer.q, layer.q_bias, normed, rows);
  Values k = linear(layer.k, layer.k_bias, normed, rows);
  const Values v = linear(layer.v, layer.v_bias, normed, rows);
  m_taps.record(Operation::attn_norm, index, normed);
  m_taps.record(Operation::q_cur, index, q);
  m_taps.record(Operation::k_cur, index, k);
  m_taps.record(Operation::v_cur, index, v);
  if (m_model.qk_norm) {
    reference::rmsnorm(q.data(), layer.q_norm, m_model.rms_epsilon, rows * m_model.heads, q.data());
    reference::rmsnorm(k.data(), layer.k_norm, m_model.rms_epsilon, rows * m_model.kv_heads,
                       k.data());
    m_taps.record(Operation::q_cur_normed, index, q);
    m_taps.record(Operation::k_cur_normed, index, k);
  }
  std::vector<std::int64_t> positions(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) {
    positions[static_cast<std::size_t>(i)] = cache.length() + i;
  }
  rotate(q, k, index, cache.length() + rows, positions);
  ReferenceCache::Layer& stored = cache.layer(index);
  stored.keys.insert(stored.keys.end(), k.begin(), k.end());
  stored.values.insert(stored.values.end(), v.begin(), v.end());

  const reference::Attention shape = attention(layer);
  const std::int64_t window = m_model.window(index);
  Values attended(q.size());
  const auto row_task = [&](std::size_t row, int) {
    const std::int64_t position = positions[row];
    const std::int64_t begin = window > 0 ? std::max<std::int64_t>(0, position - window + 1) : 0;
    const auto offset = static_cast<std::int64_t>(row) * query_width();
    reference::attend(shape, q.data() + offset, stored.keys.data(), stored.values.data(), begin,
                      position + 1, attended.data() + offset);
  };
  m_pool->run(static_cast<std::size_t>(rows), row_task);
  m_taps.record(Operation::kqv_out, index, attended);
  return linear(layer.o, layer.o_bias, attended, rows);
}

void ReferenceBackend::keep_outputs(const BatchSequence& sequence, const Values& x,
                                    std::int64_t rows) {
  const auto first = (rows - sequence.output_rows) * m_model.hidden;
  const Values wanted(x.begin() + first, x.end());
  const Values normed = normalised(wanted, m_checkpoint->final_norm(),
                                   m_checkpoint->final_norm_bias(), sequence.output_rows);
  m_taps.record(Operation::result_norm, m_model.layers, normed);
  m_result.insert(m_result.end(), normed.begin(), normed.end());
  m_output_rows += sequence.output_rows;
}

Result<std::span<const float>> ReferenceBackend::logits(std::int64_t first, std::int64_t count) {
  assert(first >= 0 && count > 0 && first + count <= m_output_rows);
  const auto begin = m_result.begin() + first * m_model.hidden;
  const Values x(begin, begin + count * m_model.hidden);
  const Values rows = linear(m_checkpoint->lm_head(), {}, x, count);
  m_logits.assign(rows.size(), 0.0F);
  const double cap = m_model.final_softcap;
  std::transform(rows.begin(), rows.end(), m_logits.begin(), [cap](double value) {
    return static_cast<float>(cap > 0.0 ? reference::softcapped(value, cap) : value);
  });
  return std::span<const float>(m_logits);
}

}  // namespace

Result<std::unique_ptr<Backend>> open_reference(std::shared_ptr<const ModelCheckpoint> checkpoint,
                                                std::shared_ptr<ThreadPool> pool) {
  return std::make_unique<ReferenceBackend>(std::move(checkpoint), std::move(pool));
}

}  // namespace driftscope
