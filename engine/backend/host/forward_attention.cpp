// SPDX-License-Identifier: Apache-2.0
// The attention part of ForwardPass.
#include <algorithm>
#include <array>

#include "engine/backend/host/attention_setup.h"
#include "engine/backend/host/forward_pass.h"
#include "engine/backend/host/forward_support.h"

namespace driftscope {

// m_delta: what attention adds to the residual stream.
void ForwardPass::run_attention(const Batch& batch, const HostLayer& layer, std::int64_t index) {
  normalise(m_x.data(), layer.attention_norm, layer.attention_norm_bias, m_normed.data(), m_rows);
  m_taps.record(Operation::attn_norm, index, m_normed.data(), m_model.hidden);
  project_qkv(layer, index);
  if (m_model.qk_norm) normalise_heads(layer, index);
  rotate(index);
  store_keys_and_values(batch, index);
  attend(batch, layer, index);
  m_projector.share_terms(m_phase, "o_proj",
                          projection(layer.o, m_attended.data(), m_delta.data(), m_model.heads),
                          m_plans);
  m_taps.record(Operation::attn_out, index, m_delta.data(), m_model.hidden);
  if (!m_model.post_norms) return;
  normalise_rms(m_delta.data(), layer.post_attention_norm, m_delta.data(), m_rows, m_model.hidden);
  m_taps.record(Operation::attn_post_norm, index, m_delta.data(), m_model.hidden);
}

void ForwardPass::project_qkv(const HostLayer& layer, std::int64_t index) {
  const std::int64_t queries = query_width(m_model);
  const std::int64_t keys = key_width(m_model);
  const float* x = m_normed.data();
  const std::array parts{projection(layer.q, x, m_q.data(), m_model.heads),
                         projection(layer.k, x, m_k.data(), m_model.kv_heads),
                         projection(layer.v, x, m_v.data(), m_model.kv_heads)};
  if (m_config.fused_qkv && m_config.tensor_parallel > 1) {
    m_projector.share_outputs(m_phase, "qkv_proj", parts, m_plans);
  } else if (m_config.fused_qkv) {
    const Projection stacked = projection(layer.qkv, x, m_qkv.data(), 1);
    m_projector.share_outputs(m_phase, "qkv_proj", {&stacked, 1}, m_plans);
    const float* row = m_qkv.data();
    for (std::int64_t i = 0; i < m_rows; ++i) {
      std::copy_n(row, queries, m_q.data() + i * queries);
      std::copy_n(row + queries, keys, m_k.data() + i * keys);
      std::copy_n(row + queries + keys, keys, m_v.data() + i * keys);
      row += queries + 2 * keys;
    }
  } else {
    constexpr std::array kNames{"q_proj", "k_proj", "v_proj"};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      m_projector.share_outputs(m_phase, kNames[i], {&parts[i], 1}, m_plans);
    }
  }
  m_taps.record(Operation::q_cur, index, m_q.data(), queries);
  m_taps.record(Operation::k_cur, index, m_k.data(), keys);
  m_taps.record(Operation::v_cur, index, m_v.data(), keys);
}

void ForwardPass::normalise_heads(const HostLayer& layer, std::int64_t index) {
  normalise_rms(m_q.data(), layer.q_norm, m_q.data(), m_rows * m_model.heads, m_model.head_dim);
  normalise_rms(m_k.data(), layer.k_norm, m_k.data(), m_rows * m_model.kv_heads, m_model.head_dim);
  m_taps.record(Operation::q_cur_normed, index, m_q.data(), query_width(m_model));
  m_taps.record(Operation::k_cur_normed, index, m_k.data(), key_width(m_model));
}

// Sequences that take other tables are rotated apart.
void ForwardPass::rotate(std::int64_t index) {
  if (m_model.learned_positions) return;
  const std::int64_t queries = query_width(m_model);
  const std::int64_t keys = key_width(m_model);
  for (const RotarySpan& span : m_rotary_spans) {
    RopeArguments arguments{.x = m_q.data() + span.begin * queries,
                            .positions = m_positions.data() + span.begin,
                            .rows = span.end - span.begin,
                            .heads = m_model.heads,
                            .head_dim = m_model.head_dim,
                            .table = &m_rotary.of(index, span.is_long),
                            .layout = RopeLayout::rotate_half,
                            .round_products = m_rounding.rope_products,
                            .output_dtype = m_rounding.rope};
    apply_rope(arguments, m_isa, m_parallel);
    arguments.x = m_k.data() + span.begin * keys;
    arguments.heads = m_model.kv_heads;
    apply_rope(arguments, m_isa, m_parallel);
  }
  m_taps.record(Operation::q_rope, index, m_q.data(), queries);
  m_taps.record(Operation::k_rope, index, m_k.data(), keys);
}

void ForwardPass::store_keys_and_values(const Batch& batch, std::int64_t index) {
  const std::int64_t width = key_width(m_model);
  round_span(m_rounding.stored_value, m_v.data(), elements(m_rows, width));
  std::int64_t row = 0;
  for (const BatchSequence& sequence : batch.sequences) {
    const auto count = static_cast<std::int64_t>(sequence.tokens.size());
    host_cache(sequence).store(index, m_k.data() + row * width, m_v.data() + row * width, count);
    row += count;
  }
}

void ForwardPass::attend(const Batch& batch, const HostLayer& layer, std::int64_t index) {
  const std::int64_t width = query_width(m_model);
  m_sequences.clear();
  std::int64_t row = 0;
  for (const BatchSequence& sequence : batch.sequences) {
    const HostKvCache& cache = host_cache(sequence);
    const auto count = static_cast<std::int64_t>(sequence.tokens.size());
    AttentionSequence& attended =
        m_sequences.emplace_back(AttentionSequence{.q = m_q.data() + row * width,
                                                   .q_stride = width,
                                                   .rows = count,
                                                   .first_position = cache.length(),
                                                   .y = m_attended.data() + row * width});
    cache.point(index, attended);
    row += count;
  }
  const float* sinks = layer.sinks.empty() ? nullptr : layer.sinks.data();
  attention(attention_arguments(m_config, m_model, m_rounding, m_sequences, index, sinks), m_isa,
            m_parallel);
  m_taps.record(Operation::kqv_out, index, m_attended.data(), width);
}

}  // namespace driftscope
