// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/forward_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "engine/backend/host/attention_setup.h"
#include "engine/backend/host/forward_support.h"
#include "kernels/activation/activation.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/rmsnorm/rmsnorm.h"

namespace driftscope {
namespace {

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
      m_rounding(rounding_scheme(config, m_model)),
      m_isa(isa),
      m_parallel(parallel),
      m_rotary(m_model, table_dtype(config.rope_table_dtype)),
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
      m_attention_note(attention_note(config, m_model)),
      m_norm_note(fmt::format("norm:{} lanes={} split={}",
                              m_model.norm == NormKind::layer ? " layer" : "", config.norm_lanes,
                              config.norm_split)),
      m_ranks_note(ranks_note(config, m_model)) {}

Result<void> ForwardPass::run(const Batch& batch, const std::stop_token& stop) {
  if (auto fits = check_positions(batch); !fits) return fits;
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
  for (const RotarySpan& span : m_rotary_spans) {
    if (m_model.rope_scaling.kind != RopeScaling::Kind::longrope) break;
    m_plans.note(m_phase,
                 span.is_long ? "rope: longrope, long factors" : "rope: longrope, short factors");
  }
  if (m_config.tensor_parallel > 1) m_plans.note(m_phase, m_ranks_note);
  if (m_model.moe.experts > 0) m_plans.note(m_phase, m_experts.note());
  if (!m_weights.quantisation_note().empty()) {
    m_plans.note(m_phase, m_weights.quantisation_note());
  }
  return {};
}

// A rotation can be made for any position; a learned row cannot.
Result<void> ForwardPass::check_positions(const Batch& batch) const {
  if (!m_model.learned_positions) return {};
  for (const BatchSequence& sequence : batch.sequences) {
    const std::int64_t length =
        host_cache(sequence).length() + static_cast<std::int64_t>(sequence.tokens.size());
    if (length <= m_model.max_positions) continue;
    return fail(ErrorKind::usage,
                fmt::format("position {} is beyond the model's table of {} positions; shorten the "
                            "sequence",
                            length - 1, m_model.max_positions));
  }
  return {};
}

void ForwardPass::lay_out(const Batch& batch) {
  m_phase = batch.phase;
  m_positions.clear();
  m_rotary_spans.clear();
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
    add_rotary_span(count, m_rotary.is_long(cache.length() + count));
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
  m_rotary.grow(positions);
}

void ForwardPass::add_rotary_span(std::int64_t rows, bool is_long) {
  const auto begin = static_cast<std::int64_t>(m_positions.size());
  if (m_rotary_spans.empty() || m_rotary_spans.back().is_long != is_long) {
    m_rotary_spans.push_back({.begin = begin, .end = begin, .is_long = is_long});
  }
  m_rotary_spans.back().end += rows;
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
  m_rotary.grow(std::min(positions, m_model.max_positions));
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
  if (m_model.embedding_scale != 1.0) scale_embeddings();
  if (m_model.learned_positions) add_positions();
  m_taps.record(Operation::embd, -1, m_x.data(), m_model.hidden);
}

void ForwardPass::scale_embeddings() {
  const Dtype dtype = m_rounding.embedding;
  const float scale = round_to(dtype, static_cast<float>(m_model.embedding_scale));
  float* x = m_x.data();
  for (std::size_t i = 0; i < elements(m_rows, m_model.hidden); ++i) x[i] *= scale;
  round_span(dtype, x, elements(m_rows, m_model.hidden));
}

void ForwardPass::add_positions() {
  const WeightView& table = m_weights.position_embedding();
  const auto hidden = static_cast<std::size_t>(m_model.hidden);
  const std::size_t row_bytes = hidden * dtype_size(table.dtype);
  const auto* bytes = static_cast<const std::byte*>(table.data);
  float* rows = m_delta.data();
  for (const std::int32_t position : m_positions) {
    widen(table.dtype, bytes + static_cast<std::size_t>(position) * row_bytes, rows, hidden);
    round_span(m_rounding.embedding, rows, hidden);
    rows += hidden;
  }
  add_residual(m_x.data(), m_delta.data(), m_rows * m_model.hidden, m_rounding.embedding, m_isa,
               m_parallel);
}

void ForwardPass::run_layer(const Batch& batch, std::int64_t index) {
  const HostLayer& layer = m_weights.layer(index);
  run_attention(batch, layer, index);
  add_to_residual();
  m_taps.record(Operation::ffn_inp, index, m_x.data(), m_model.hidden);
  run_feed_forward(layer, index);
  add_to_residual();
  m_taps.record(Operation::l_out, index, m_x.data(), m_model.hidden);
}

// Only rows whose logits are wanted go on.
void ForwardPass::finish_rows() {
  float* target = m_result.data();
  for (const std::int64_t row : m_output_rows) {
    std::copy_n(m_x.data() + row * m_model.hidden, m_model.hidden, target);
    target += m_model.hidden;
  }
  if (m_output_rows.empty()) return;
  normalise(m_result.data(), m_weights.final_norm(), m_weights.final_norm_bias(), m_result.data(),
            output_rows());
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
  if (m_model.final_softcap > 0.0) {
    soft_cap({.x = m_logits.data(),
              .count = count * m_model.vocabulary,
              .cap = static_cast<float>(m_model.final_softcap),
              .step_dtype = m_rounding.cap_step,
              .output_dtype = m_config.logits_dtype},
             m_isa, m_parallel);
  }
  return {m_logits.data(), elements(count, m_model.vocabulary)};
}

std::span<const TensorTap> ForwardPass::taps(std::int64_t output_row) {
  const std::int64_t index = m_tap_of_output[static_cast<std::size_t>(output_row)];
  if (index < 0) return {};
  return m_taps.row(index);
}

void ForwardPass::normalise(const float* x, const std::vector<float>& weight,
                            const std::vector<float>& bias, float* y, std::int64_t rows) {
  if (m_model.norm == NormKind::rms) return normalise_rms(x, weight, y, rows, m_model.hidden);
  layernorm({.x = x,
             .weight = weight.data(),
             .bias = bias.data(),
             .y = y,
             .rows = rows,
             .width = m_model.hidden,
             .epsilon = static_cast<float>(m_model.rms_epsilon),
             .plan = {.lanes = m_config.norm_lanes, .split_k = m_config.norm_split},
             .output_dtype = m_rounding.norm},
            m_isa, m_parallel);
}

void ForwardPass::normalise_rms(const float* x, const std::vector<float>& weight, float* y,
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
