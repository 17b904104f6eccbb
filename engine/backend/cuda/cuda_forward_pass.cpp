// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_forward_pass.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <utility>

#include "engine/backend/cuda/cuda_kv_cache.h"
#include "engine/backend/host/attention_setup.h"
#include "engine/backend/host/projector.h"
#include "kernels/rope/rope.h"

namespace driftscope {
namespace {

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

CudaForwardPass::CudaForwardPass(std::shared_ptr<CudaSession> session,
                                 std::shared_ptr<const CudaWeights> weights,
                                 const RunConfig& config, std::shared_ptr<CudaRankGroup> group)
    : m_session(std::move(session)),
      m_weights(std::move(weights)),
      m_model(m_weights->checkpoint().description()),
      m_config(config),
      m_rounding(rounding_scheme(config)),
      m_matmuls(m_session, config, std::move(group)),
      m_taps(m_session, m_model),
      m_experts({.session = *m_session,
                 .model = m_model,
                 .config = m_config,
                 .rounding = m_rounding,
                 .matmuls = m_matmuls,
                 .plans = m_plans,
                 .taps = m_taps,
                 .generation = m_generation}) {}

CudaForwardPass::~CudaForwardPass() { drop_graphs(); }

void CudaForwardPass::drop_graphs() {
  for (const auto& [key, known] : m_graphs) {
    m_session->table().release_graph(m_session->context(), known.graph);
  }
  m_graphs.clear();
}

Result<void> CudaForwardPass::run(const Batch& batch, const std::stop_token& stop) {
  if (auto done = prepare(batch); !done) return done;
  // Only decode calls come back with the same shape.
  const bool as_graph = m_config.cuda_graph && batch.phase == Phase::decode;
  auto done = as_graph ? run_as_graph(stop) : run_layers(stop, false);
  if (done) {
    m_taps.finish();
    m_session->call(m_session->table().synchronize);
  }
  if (auto status = m_session->status(); done && !status) done = status;
  if (!done) return done;
  for (const BatchSequence& sequence : batch.sequences) {
    static_cast<CudaKvCache&>(*sequence.cache)
        .advance(static_cast<std::int64_t>(sequence.tokens.size()));
  }
  return {};
}

Result<void> CudaForwardPass::prepare(const Batch& batch) {
  m_phase = batch.phase;
  m_level = batch.taps;
  m_vendor_logits = false;
  if (auto done = m_tables.lay_out(*m_session, batch, m_config, m_generation); !done) return done;
  if (auto done = m_taps.begin(batch.taps, m_tables.tap_rows(), m_generation); !done) return done;
  m_experts.begin(m_phase, m_tables.output_row_list(), m_tables.taps());
  if (auto done = grow_rope_table(m_tables.most_keys()); !done) return done;
  return grow_buffers();
}

Result<void> CudaForwardPass::grow_buffers() {
  const std::int64_t rows = m_tables.rows();
  Result<void> done;
  const auto grow = [&](DeviceList& list, std::int64_t count, std::int64_t width) {
    if (!done) return;
    done = list.reserve(*m_session, static_cast<std::size_t>(count * width) * sizeof(float),
                        m_generation);
  };
  grow(m_x, rows, m_model.hidden);
  grow(m_normed, rows, m_model.hidden);
  if (m_config.fused_qkv) grow(m_qkv, rows, query_width(m_model) + 2 * key_width(m_model));
  grow(m_q, rows, query_width(m_model));
  grow(m_k, rows, key_width(m_model));
  grow(m_v, rows, key_width(m_model));
  grow(m_attended, rows, query_width(m_model));
  grow(m_delta, rows, m_model.hidden);
  grow(m_gate_up, rows, 2 * m_model.intermediate);
  grow(m_activated, rows, m_model.intermediate);
  grow(m_result, output_rows(), m_model.hidden);
  if (m_config.attention == AttentionMode::eager) {
    // In powers of two, so that a graph lasts for many steps.
    const auto keys = static_cast<std::uint64_t>(std::max<std::int64_t>(256, m_tables.most_keys()));
    m_score_stride = static_cast<std::int64_t>(std::bit_ceil(keys));
    grow(m_scores, rows * m_model.heads, m_score_stride);
  }
  return done;
}

// A row of the table depends on its position only, so growing changes no value.
Result<void> CudaForwardPass::grow_rope_table(std::int64_t positions) {
  if (positions <= m_rope_positions) return {};
  constexpr std::int64_t kLeast = 256;
  const std::int64_t wanted =
      std::max(positions, std::min(std::max(2 * m_rope_positions, kLeast), m_model.max_positions));
  const RopeTable table = make_rope_table(m_model.inverse_frequencies(), wanted,
                                          table_dtype(m_config.rope_table_dtype), 1.0);
  if (auto done = m_cosine.assign(*m_session, table.cosine, m_generation); !done) return done;
  if (auto done = m_sine.assign(*m_session, table.sine, m_generation); !done) return done;
  m_rope_positions = wanted;
  return m_session->status();
}

Result<void> CudaForwardPass::run_layers(const std::stop_token& stop, bool captured) {
  embed();
  for (std::int64_t layer = 0; layer < m_model.layers; ++layer) {
    if (!captured && stop.stop_requested()) {
      return fail(ErrorKind::interrupted, "stopped on request");
    }
    if (auto done = run_layer(layer); !done) return done;
    if (!captured) m_taps.flush();
  }
  finish_rows();
  note_attention();
  return {};
}

// The first call of a shape runs as it is, so that everything it needs is allocated; the second is
// recorded; from then on the record runs. A table or buffer that has moved starts this anew.
Result<void> CudaForwardPass::run_as_graph(const std::stop_token& stop) {
  if (stop.stop_requested()) return fail(ErrorKind::interrupted, "stopped on request");
  const GraphKey key{m_tables.rows(), output_rows(), m_tables.tap_rows(), m_level, m_score_stride};
  KnownGraph& known = m_graphs[key];
  if (known.generation != m_generation) {
    m_session->table().release_graph(m_session->context(), known.graph);
    known = {};
    const auto done = run_layers(stop, false);
    known.generation = m_generation;
    return done;
  }
  if (known.graph == nullptr) {
    if (auto done = capture(known); !done) return done;
  }
  m_session->call(m_session->table().run_graph, known.graph);
  m_taps.recorded_by_graph();
  return {};
}

Result<void> CudaForwardPass::capture(KnownGraph& known) {
  const CudaTable& table = m_session->table();
  m_session->call(table.begin_graph);
  if (auto status = m_session->status(); !status) return status;
  Result<void> done = run_layers({}, true);
  if (auto status = m_session->status(); done && !status) done = status;
  // Whatever happened, the stream leaves its recording state.
  CudaMessage message{};
  const int ended = table.end_graph(m_session->context(), &known.graph, &message);
  if (!done) {
    table.release_graph(m_session->context(), known.graph);
    known = {};
    return done;
  }
  if (ended != 0) return fail(ErrorKind::engine, std::string("backend cuda: ") + message.text);
  m_plans.note(m_phase, "CUDA graph: " + std::to_string(m_tables.rows()) + " rows");
  return {};
}

void CudaForwardPass::note_attention() {
  m_plans.note(m_phase, attention_note(m_config));
  m_plans.note(m_phase, "norm: lanes=" + std::to_string(m_config.norm_lanes) +
                            " split=" + std::to_string(m_config.norm_split));
  if (m_config.tensor_parallel > 1) m_plans.note(m_phase, ranks_note(m_config, m_model));
  if (m_model.moe.experts > 0) m_plans.note(m_phase, m_experts.note());
  if (!m_weights->quantisation_note().empty()) {
    m_plans.note(m_phase, m_weights->quantisation_note());
  }
}

void CudaForwardPass::embed() {
  const DeviceMatrix& table = m_weights->embedding();
  m_session->run(m_session->table().embed, DeviceEmbed{.table = table.data,
                                                       .ids = m_tables.ids(),
                                                       .y = m_x.as<float>(),
                                                       .rows = m_tables.rows(),
                                                       .width = m_model.hidden,
                                                       .table_dtype = table.dtype,
                                                       .output_dtype = m_rounding.embedding});
  record(Operation::embd, -1, m_x, m_model.hidden);
}

void CudaForwardPass::finish_rows() {
  if (output_rows() == 0) return;
  m_session->run(m_session->table().gather, DeviceGather{.x = m_x.as<float>(),
                                                         .rows = m_tables.outputs(),
                                                         .y = m_result.as<float>(),
                                                         .count = output_rows(),
                                                         .width = m_model.hidden,
                                                         .x_stride = m_model.hidden,
                                                         .y_stride = m_model.hidden});
  normalise(m_result.as<float>(), m_weights->final_norm(), m_result.as<float>(), output_rows(),
            m_model.hidden);
  m_taps.record(Operation::result_norm, m_model.layers, m_result.as<float>(), m_model.hidden,
                m_tables.tapped_outputs());
}

// The vendor's choice depends on the number of rows, so there all are computed at once.
Result<std::span<const float>> CudaForwardPass::logits(std::int64_t first, std::int64_t count) {
  assert(first >= 0 && count > 0 && first + count <= output_rows());
  const bool vendor = m_matmuls.vendor();
  const std::int64_t from = vendor ? 0 : first;
  const std::int64_t rows = vendor ? output_rows() : count;
  const auto wanted = static_cast<std::size_t>(count * m_model.vocabulary);
  const auto skip = static_cast<std::size_t>((first - from) * m_model.vocabulary);
  if (vendor && m_vendor_logits) return std::span<const float>{m_logits.data() + skip, wanted};
  m_logits.resize(static_cast<std::size_t>(rows * m_model.vocabulary));
  const std::size_t bytes = m_logits.size() * sizeof(float);
  if (auto done = m_device_logits.reserve(*m_session, bytes, m_generation); !done) {
    return tl::unexpected(done.error());
  }
  const CudaProjection head{.weight = &m_weights->lm_head(),
                            .x = m_result.as<float>() + from * m_model.hidden,
                            .y = m_device_logits.as<float>(),
                            .m = rows,
                            .parts = m_model.vocabulary,
                            .plan_rows = output_rows(),
                            .output_dtype = m_config.logits_dtype};
  const auto done = share_outputs("lm_head", {&head, 1});
  if (!done) return tl::unexpected(done.error());
  m_session->call(m_session->table().download, static_cast<void*>(m_logits.data()),
                  static_cast<const void*>(m_device_logits.as<void>()), bytes);
  if (auto status = m_session->status(); !status) return tl::unexpected(status.error());
  m_vendor_logits = vendor;
  return std::span<const float>{m_logits.data() + skip, wanted};
}

std::span<const TensorTap> CudaForwardPass::taps(std::int64_t output_row) {
  const std::int64_t index = m_tables.tap_of_output(output_row);
  if (index < 0) return {};
  return m_taps.row(index);
}

std::vector<std::string> CudaForwardPass::plans() const {
  std::vector<std::string> lines = m_plans.lines();
  lines.insert(lines.end(), m_matmuls.choices().begin(), m_matmuls.choices().end());
  return lines;
}

}  // namespace driftscope
