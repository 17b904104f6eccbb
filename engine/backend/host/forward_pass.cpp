// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/forward_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "engine/backend/host/attention_setup.h"
#include "engine/backend/host/host_kv_cache.h"
#include "kernels/activation/activation.h"
#include "kernels/rmsnorm/rmsnorm.h"

namespace driftscope {
namespace {

HostKvCache& host_cache(const BatchSequence& sequence) {
  return static_cast<HostKvCache&>(*sequence.cache);
}

std::size_t elements(std::int64_t rows, std::int64_t width) {
  return static_cast<std::size_t>(rows * width);
}

void grow(FloatArray& buffer, std::int64_t rows, std::int64_t width) {
  if (buffer.size() < elements(rows, width)) buffer.resize(elements(rows, width));
}

std::int64_t query_width(const ModelDescription& model) { return model.heads * model.head_dim; }
std::int64_t key_width(const ModelDescription& model) { return model.kv_heads * model.head_dim; }

Dtype table_dtype(RopeTableDtype dtype) {
  switch (dtype) {
    case RopeTableDtype::f32:
      return Dtype::f32;
    case RopeTableDtype::f64:
      return Dtype::f64;
    case RopeTableDtype::bf16:
      return Dtype::bf16;
  }
  return Dtype::f32;
}

}  // namespace

ForwardPass::ForwardPass(const HostWeights& weights, const RunConfig& config, Isa isa,
                         Parallel& parallel)
    : m_weights(weights),
      m_model(weights.checkpoint().description()),
      m_config(config),
      m_rounding(rounding_scheme(config)),
      m_isa(isa),
      m_parallel(parallel),
      m_projector(config, isa, parallel),
      m_plans(config.matmul_kernel == MatmulKernel::bf16_dot ? "kernel=bf16_dot" : ""),
      m_taps(m_model),
      m_experts({.model = m_model,
                 .config = m_config,
                 .rounding = m_rounding,
                 .isa = isa,
                 .parallel = parallel,
                 .projector = m_projector,
                 .plans = m_plans,
                 .taps = m_taps}),
      m_attention_note(attention_note(config)),
      m_norm_note(fmt::format("norm: lanes={} split={}", config.norm_lanes, config.norm_split)),
      m_ranks_note(ranks_note(config, m_model)) {}

Result<void> ForwardPass::run(const Batch& batch, const std::stop_token& stop) {
  lay_out(batch);
  grow_buffers();
  embed(batch);
  for (std::int64_t layer = 0; layer < m_model.layers; ++layer) {
    if (stop.stop_requested()) return fail(ErrorKind::interrupted, "stopped on request");
    run_layer(batch, layer);
  }
  for (const BatchSequence& sequence : batch.sequences) {
    host_cache(sequence).advance(static_cast<std::int64_t>(sequence.tokens.size()));
  }
  finish_rows();
  m_plans.note(m_phase, m_attention_note);
  m_plans.note(m_phase, m_norm_note);
  if (m_config.tensor_parallel > 1) m_plans.note(m_phase, m_ranks_note);
  if (m_model.moe.experts > 0) m_plans.note(m_phase, m_experts.note());
  if (!m_weights.quantisation_note().empty()) {
    m_plans.note(m_phase, m_weights.quantisation_note());
  }
  return {};
}

void ForwardPass::lay_out(const Batch& batch) {
  m_phase = batch.phase;
  m_positions.clear();
  m_output_rows.clear();
  m_tap_rows.clear();
  m_tapped_outputs.clear();
  m_tap_of_output.clear();
  std::int64_t positions = 0;
  for (const BatchSequence& sequence : batch.sequences) {
    const auto count = static_cast<std::int64_t>(sequence.tokens.size());
    assert(count > 0 && sequence.output_rows >= 0 && sequence.output_rows <= count);
    HostKvCache& cache = host_cache(sequence);
    cache.reserve(cache.length() + count);
    positions = std::max(positions, cache.length() + count);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto row = static_cast<std::int64_t>(m_positions.size());
      m_positions.push_back(static_cast<std::int32_t>(cache.length() + i));
      if (i < count - sequence.output_rows) continue;
      const bool tapped = sequence.taps && batch.taps != TapLevel::logits;
      m_tap_of_output.push_back(tapped ? static_cast<std::int64_t>(m_tap_rows.size()) : -1);
      if (tapped) {
        m_tap_rows.push_back(row);
        m_tapped_outputs.push_back(static_cast<std::int64_t>(m_output_rows.size()));
      }
      m_output_rows.push_back(row);
    }
  }
  m_rows = static_cast<std::int64_t>(m_positions.size());
  m_taps.begin(batch.taps, m_tap_rows);
  m_experts.begin(m_phase, m_output_rows);
  grow_rope_table(positions);
}

void ForwardPass::grow_buffers() {
  grow(m_x, m_rows, m_model.hidden);
  grow(m_normed, m_rows, m_model.hidden);
  if (m_config.fused_qkv) grow(m_qkv, m_rows, query_width(m_model) + 2 * key_width(m_model));
  grow(m_q, m_rows, query_width(m_model));
  grow(m_k, m_rows, key_width(m_model));
  grow(m_v, m_rows, key_width(m_model));
  grow(m_attended, m_rows, query_width(m_model));
  grow(m_delta, m_rows, m_model.hidden);
  grow(m_gate_up, m_rows, 2 * m_model.intermediate);
  grow(m_activated, m_rows, m_model.intermediate);
  grow(m_result, output_rows(), m_model.hidden);
}

void ForwardPass::expect_positions(std::int64_t positions) {
  grow_rope_table(std::min(positions, m_model.max_positions));
}

// A row of the table depends on its position only, so growing changes no value.
void ForwardPass::grow_rope_table(std::int64_t positions) {
  if (positions <= m_rope.positions) return;
  constexpr std::int64_t kLeast = 256;
  const std::int64_t wanted =
      std::max(positions, std::min(std::max(2 * m_rope.positions, kLeast), m_model.max_positions));
  m_rope = make_rope_table(m_model.inverse_frequencies(), wanted,
                           table_dtype(m_config.rope_table_dtype), 1.0);
}

void ForwardPass::embed(const Batch& batch) {
  const WeightView& table = m_weights.embedding();
  const auto hidden = static_cast<std::size_t>(m_model.hidden);
  const std::size_t row_bytes = hidden * dtype_size(table.dtype);
  const auto* bytes = static_cast<const std::byte*>(table.data);
  float* x = m_x.data();
  for (const BatchSequence& sequence : batch.sequences) {
    for (const TokenId token : sequence.tokens) {
      assert(token.value >= 0 && token.value < m_model.vocabulary);
      widen(table.dtype, bytes + static_cast<std::size_t>(token.value) * row_bytes, x, hidden);
      x += hidden;
    }
  }
  round_span(m_rounding.embedding, m_x.data(), elements(m_rows, m_model.hidden));
  m_taps.record(Operation::embd, -1, m_x.data(), m_model.hidden);
}

void ForwardPass::run_layer(const Batch& batch, std::int64_t index) {
  const HostLayer& layer = m_weights.layer(index);
  normalise(m_x.data(), layer.attention_norm, m_normed.data(), m_rows, m_model.hidden);
  m_taps.record(Operation::attn_norm, index, m_normed.data(), m_model.hidden);
  project_qkv(layer, index);
  if (m_model.qk_norm) normalise_heads(layer, index);
  rotate(index);
  store_keys_and_values(batch, index);
  attend(batch, index);
  m_projector.share_terms(m_phase, "o_proj",
                          projection(layer.o, m_attended.data(), m_delta.data(), m_model.heads),
                          m_plans);
  m_taps.record(Operation::attn_out, index, m_delta.data(), m_model.hidden);
  add_to_residual();
  m_taps.record(Operation::ffn_inp, index, m_x.data(), m_model.hidden);
  feed_forward(layer, index);
  add_to_residual();
  m_taps.record(Operation::l_out, index, m_x.data(), m_model.hidden);
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
  normalise(m_q.data(), layer.q_norm, m_q.data(), m_rows * m_model.heads, m_model.head_dim);
  normalise(m_k.data(), layer.k_norm, m_k.data(), m_rows * m_model.kv_heads, m_model.head_dim);
  m_taps.record(Operation::q_cur_normed, index, m_q.data(), query_width(m_model));
  m_taps.record(Operation::k_cur_normed, index, m_k.data(), key_width(m_model));
}

void ForwardPass::rotate(std::int64_t index) {
  RopeArguments arguments{.x = m_q.data(),
                          .positions = m_positions.data(),
                          .rows = m_rows,
                          .heads = m_model.heads,
                          .head_dim = m_model.head_dim,
                          .table = &m_rope,
                          .layout = RopeLayout::rotate_half,
                          .round_products = m_rounding.rope_products,
                          .output_dtype = m_rounding.rope};
  apply_rope(arguments, m_isa, m_parallel);
  arguments.x = m_k.data();
  arguments.heads = m_model.kv_heads;
  apply_rope(arguments, m_isa, m_parallel);
  m_taps.record(Operation::q_rope, index, m_q.data(), query_width(m_model));
  m_taps.record(Operation::k_rope, index, m_k.data(), key_width(m_model));
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

void ForwardPass::attend(const Batch& batch, std::int64_t index) {
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
  attention(attention_arguments(m_config, m_model, m_rounding, m_sequences), m_isa, m_parallel);
  m_taps.record(Operation::kqv_out, index, m_attended.data(), width);
}

void ForwardPass::feed_forward(const HostLayer& layer, std::int64_t index) {
  normalise(m_x.data(), layer.ffn_norm, m_normed.data(), m_rows, m_model.hidden);
  m_taps.record(Operation::ffn_norm, index, m_normed.data(), m_model.hidden);
  if (m_model.moe.in_layer(index)) {
    m_experts.run(layer.moe, index, m_normed.data(), m_rows, m_delta.data());
  } else {
    feed_forward_dense(layer, index);
  }
  m_taps.record(Operation::ffn_out, index, m_delta.data(), m_model.hidden);
}

void ForwardPass::feed_forward_dense(const HostLayer& layer, std::int64_t index) {
  const std::int64_t width = m_model.intermediate;
  const bool stacked = m_config.fused_gate_up && m_config.tensor_parallel == 1;
  const std::int64_t stride = stacked ? 2 * width : width;
  float* gate = m_gate_up.data();
  float* up = stacked ? gate + width : gate + m_rows * width;
  const std::array parts{projection(layer.gate, m_normed.data(), gate, width),
                         projection(layer.up, m_normed.data(), up, width)};
  if (stacked) {
    const Projection both = projection(layer.gate_up, m_normed.data(), gate, 1);
    m_projector.share_outputs(m_phase, "gate_up_proj", {&both, 1}, m_plans);
  } else if (m_config.fused_gate_up) {
    m_projector.share_outputs(m_phase, "gate_up_proj", parts, m_plans);
  } else {
    m_projector.share_outputs(m_phase, "gate_proj", {&parts[0], 1}, m_plans);
    m_projector.share_outputs(m_phase, "up_proj", {&parts[1], 1}, m_plans);
  }
  m_taps.record(Operation::ffn_gate, index, gate, stride);
  m_taps.record(Operation::ffn_up, index, up, stride);
  swiglu({.gate = gate,
          .up = up,
          .y = m_activated.data(),
          .rows = m_rows,
          .width = width,
          .gate_stride = stride,
          .up_stride = stride,
          .silu_dtype = m_rounding.silu,
          .output_dtype = m_rounding.swiglu},
         m_isa, m_parallel);
  m_taps.record(Operation::ffn_swiglu, index, m_activated.data(), width);
  m_projector.share_terms(m_phase, "down_proj",
                          projection(layer.down, m_activated.data(), m_delta.data(), width),
                          m_plans);
}

// Only rows whose logits are wanted go on.
void ForwardPass::finish_rows() {
  float* target = m_result.data();
  for (const std::int64_t row : m_output_rows) {
    std::copy_n(m_x.data() + row * m_model.hidden, m_model.hidden, target);
    target += m_model.hidden;
  }
  if (m_output_rows.empty()) return;
  normalise(m_result.data(), m_weights.final_norm(), m_result.data(), output_rows(),
            m_model.hidden);
  m_taps.record_dense(Operation::result_norm, m_model.layers, m_result.data(), m_model.hidden,
                      m_tapped_outputs);
}

std::span<const float> ForwardPass::logits(std::int64_t first, std::int64_t count) {
  assert(first >= 0 && count > 0 && first + count <= output_rows());
  grow(m_logits, count, m_model.vocabulary);
  const Projection head{.weight = m_weights.lm_head(),
                        .x = m_result.data() + first * m_model.hidden,
                        .m = count,
                        .y = m_logits.data(),
                        .parts = m_model.vocabulary,
                        .plan_rows = output_rows(),
                        .output_dtype = m_config.logits_dtype};
  m_projector.share_outputs(m_phase, "lm_head", {&head, 1}, m_plans);
  return {m_logits.data(), elements(count, m_model.vocabulary)};
}

std::span<const TensorTap> ForwardPass::taps(std::int64_t output_row) {
  const std::int64_t index = m_tap_of_output[static_cast<std::size_t>(output_row)];
  if (index < 0) return {};
  return m_taps.row(index);
}

void ForwardPass::normalise(const float* x, const std::vector<float>& weight, float* y,
                            std::int64_t rows, std::int64_t width) {
  rmsnorm({.x = x,
           .weight = weight.data(),
           .y = y,
           .rows = rows,
           .width = width,
           .epsilon = static_cast<float>(m_model.rms_epsilon),
           .plan = {.lanes = m_config.norm_lanes, .split_k = m_config.norm_split},
           .normalised_dtype = m_rounding.norm_inner,
           .output_dtype = m_rounding.norm},
          m_isa, m_parallel);
}

Projection ForwardPass::projection(const Linear& linear, const float* x, float* y,
                                   std::int64_t parts) const {
  return {.weight = linear.weight,
          .bias = linear.bias_or_null(),
          .x = x,
          .m = m_rows,
          .y = y,
          .parts = parts,
          .output_dtype = m_rounding.matmul};
}

void ForwardPass::add_to_residual() {
  add_residual(m_x.data(), m_delta.data(), m_rows * m_model.hidden, m_rounding.residual, m_isa,
               m_parallel);
}

}  // namespace driftscope
