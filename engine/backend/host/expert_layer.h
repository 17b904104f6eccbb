// SPDX-License-Identifier: Apache-2.0
// The feed-forward part of a layer with a mixture of experts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/host/host_weights.h"
#include "engine/backend/host/plan_log.h"
#include "engine/backend/host/projector.h"
#include "engine/backend/host/rounding_scheme.h"
#include "engine/backend/host/tap_recorder.h"
#include "engine/trace/trace.h"
#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"

namespace driftscope {

// Rows are grouped by expert: a matmul of an expert has as many rows in flight as chose it, so that
// under a shape-dependent policy its plan, and with it the bits, depend on where other rows go.
// An expert that no row chose runs nothing. A row's total is added up in rising expert id, product
// and sum rounded apart (kernels/routing); the shared expert comes last.
// Tensor-parallel ranks share the width of every expert, as they do that of a dense layer: each
// expert ends in an all-reduce of its own, before its weight. Router and shared gate run whole on
// every rank.
class ExpertLayer {
 public:
  // References outlive the layer.
  struct Setup {
    const ModelDescription& model;
    const RunConfig& config;
    const RoundingScheme& rounding;
    Isa isa = Isa::scalar;
    Parallel& parallel;
    Projector& projector;
    PlanLog& plans;
    TapRecorder& taps;
  };
  explicit ExpertLayer(const Setup& setup);

  // Starts a pass; routes are kept of `output_rows` (indices of the batch's rows, rising).
  void begin(Phase phase, std::span<const std::int64_t> output_rows);
  // x: [rows, hidden], after the norm; y: [rows, hidden], what is added to the residual stream.
  void run(const HostExperts& weights, std::int64_t layer, const float* x, std::int64_t rows,
           float* y);
  // Of the index-th kept row, every layer; empty in dense models. Valid until the next begin().
  [[nodiscard]] RouteRow routes(std::int64_t index) const;
  // What the router runs under, for the list of plans.
  [[nodiscard]] const std::string& note() const { return m_note; }

 private:
  // A matrix that every rank has whole.
  void project_whole(std::string_view operation, const Linear& linear, const float* x,
                     std::int64_t rows, float* y, Dtype output_dtype);
  void choose(const Linear& router, std::int64_t layer, const float* x, std::int64_t rows);
  void keep_routes();
  void group_rows(std::int64_t rows);
  // gate, up, product and down of one expert for `rows` rows.
  void feed(const HostExpert& expert, bool shared, const float* x, std::int64_t rows, float* y,
            Dtype output_dtype);
  void run_expert(const HostExpert& expert, std::size_t id, const float* x, std::int64_t rows,
                  float* y);
  void add_shared(const HostExperts& weights, std::int64_t layer, const float* x, std::int64_t rows,
                  float* y);

  Setup m_setup;
  Phase m_phase = Phase::decode;
  std::string m_note;
  std::int64_t m_hidden = 0;
  std::size_t m_chosen = 0;
  std::size_t m_kept_layers = 0;  // layers with routes so far in this pass
  std::size_t m_layers = 0;       // layers with experts

  std::vector<float> m_logits;      // [rows, experts]
  std::vector<std::int32_t> m_ids;  // [rows, chosen]
  std::vector<float> m_weights;     // [rows, chosen]
  std::vector<float> m_margins;     // [rows]
  // Rows by expert: those of expert e are [m_first[e], m_first[e + 1]) of the two that follow.
  std::vector<std::size_t> m_first;        // [experts + 1]
  std::vector<std::int64_t> m_group_rows;  // [rows * chosen], rising within an expert
  std::vector<float> m_group_weights;      // [rows * chosen]
  std::vector<float> m_gathered;           // [rows of a group, hidden]
  std::vector<float> m_gate_up;            // [rows, 2 * width]
  std::vector<float> m_activated;          // [rows, width]
  std::vector<float> m_outputs;            // [rows, hidden]
  std::vector<float> m_gates;              // [rows]: of the shared expert
  std::vector<std::int64_t> m_all_rows;    // 0, 1, 2 …

  std::vector<std::int64_t> m_kept_rows;
  std::vector<std::int32_t> m_kept_ids;  // [kept rows, layers, chosen]
  std::vector<float> m_kept_weights;     // [kept rows, layers, chosen]
  std::vector<float> m_kept_margins;     // [kept rows, layers]
};

}  // namespace driftscope
