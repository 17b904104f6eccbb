// SPDX-License-Identifier: Apache-2.0
// The forward pass of a decoder on the host's kernels, whatever its description asks for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/host/expert_layer.h"
#include "engine/backend/host/host_weights.h"
#include "engine/backend/host/plan_log.h"
#include "engine/backend/host/projector.h"
#include "engine/backend/host/rotary_tables.h"
#include "engine/backend/host/rounding_scheme.h"
#include "engine/backend/host/tap_recorder.h"
#include "kernels/attention/attention.h"
#include "kernels/base/isa.h"
#include "kernels/base/large_array.h"
#include "kernels/base/parallel.h"

namespace driftscope {

// Activations are f32 values, rounded where the RoundingScheme says. Buffers are kept between
// calls, so a decode step allocates nothing. Every row's result depends on its own inputs and the
// plans only; which plans, may depend on the rows in flight (matmul_policy).
class ForwardPass {
 public:
  // `weights` and `parallel` outlive the pass.
  ForwardPass(const HostWeights& weights, const RunConfig& config, Isa isa, Parallel& parallel);

  // See Backend::forward(), logits() and taps(). The caches are HostKvCache.
  [[nodiscard]] Result<void> run(const Batch& batch, const std::stop_token& stop);
  // Sequences will be about this long: makes the rotary table now rather than during a step.
  void expect_positions(std::int64_t positions);
  [[nodiscard]] std::int64_t output_rows() const {
    return static_cast<std::int64_t>(m_output_rows.size());
  }
  [[nodiscard]] std::span<const float> logits(std::int64_t first, std::int64_t count);
  [[nodiscard]] std::span<const TensorTap> taps(std::int64_t output_row);
  [[nodiscard]] RouteRow routes(std::int64_t output_row) const {
    return m_experts.routes(output_row);
  }
  [[nodiscard]] std::vector<std::string> plans() const { return m_plans.lines(); }

 private:
  // Rows [begin, end) rotate by the same tables.
  struct RotarySpan {
    std::int64_t begin;
    std::int64_t end;
    bool is_long;
  };

  [[nodiscard]] Result<void> check_positions(const Batch& batch) const;
  void lay_out(const Batch& batch);
  void add_rotary_span(std::int64_t rows, bool is_long);
  void grow_buffers();
  void embed(const Batch& batch);
  void scale_embeddings();
  void add_positions();
  void run_layer(const Batch& batch, std::int64_t layer);
  void finish_rows();

  // forward_attention.cpp
  void run_attention(const Batch& batch, const HostLayer& layer, std::int64_t index);
  void project_qkv(const HostLayer& layer, std::int64_t index);
  void normalise_heads(const HostLayer& layer, std::int64_t index);
  void rotate(std::int64_t index);
  void store_keys_and_values(const Batch& batch, std::int64_t index);
  void attend(const Batch& batch, const HostLayer& layer, std::int64_t index);

  // forward_feed_forward.cpp
  void run_feed_forward(const HostLayer& layer, std::int64_t index);
  void project_gated(const HostLayer& layer, std::int64_t index);
  void project_ungated(const HostLayer& layer, std::int64_t index);
  // up: null where there is no gate
  void activate(const float* gate, const float* up, std::int64_t stride, std::int64_t index);

  // Rows of `hidden`, by the model's kind of norm.
  void normalise(const float* x, const std::vector<float>& weight, const std::vector<float>& bias,
                 float* y, std::int64_t rows);
  void normalise_rms(const float* x, const std::vector<float>& weight, float* y, std::int64_t rows,
                     std::int64_t width);
  // `parts`: of the axis that ranks share (SharedShape).
  [[nodiscard]] Projection projection(const Linear& linear, const float* x, float* y,
                                      std::int64_t parts) const;
  void add_to_residual();

  const HostWeights& m_weights;
  const ModelDescription& m_model;
  RunConfig m_config;
  RoundingScheme m_rounding;
  Isa m_isa;
  Parallel& m_parallel;
  RotaryTables m_rotary;
  Projector m_projector;
  PlanLog m_plans;
  TapRecorder m_taps;
  ExpertLayer m_experts;
  std::string m_attention_note;
  std::string m_norm_note;
  std::string m_ranks_note;

  // The batch in hand.
  Phase m_phase = Phase::decode;
  std::int64_t m_rows = 0;
  std::vector<std::int32_t> m_positions;       // [rows]
  std::vector<std::int64_t> m_output_rows;     // rows with logits wanted
  std::vector<std::int64_t> m_tap_rows;        // rows with taps wanted
  std::vector<std::int64_t> m_tapped_outputs;  // the same rows as indices of m_output_rows
  std::vector<std::int64_t> m_tap_of_output;   // [output rows]: index of m_tap_rows, or -1
  std::vector<RotarySpan> m_rotary_spans;      // in the order of the rows
  std::vector<AttentionSequence> m_sequences;

  // Buffers, [rows, width], row-major.
  FloatArray m_x;          // residual stream, width hidden
  FloatArray m_normed;     // hidden
  FloatArray m_qkv;        // heads * head_dim + 2 * kv_heads * head_dim; fused only
  FloatArray m_q;          // heads * head_dim
  FloatArray m_k;          // kv_heads * head_dim
  FloatArray m_v;          // kv_heads * head_dim
  FloatArray m_attended;   // heads * head_dim
  FloatArray m_delta;      // hidden: what is added to the residual stream
  FloatArray m_gate_up;    // 2 * intermediate: one half each, or fused rows
  FloatArray m_activated;  // intermediate
  FloatArray m_result;     // [output rows, hidden]
  FloatArray m_logits;     // [rows asked for, vocabulary]
};

}  // namespace driftscope
