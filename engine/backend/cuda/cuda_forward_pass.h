// SPDX-License-Identifier: Apache-2.0
// The Llama family's forward pass on the device's kernels: the operations and rounding points of
// the host's ForwardPass, in the same order, so that portable plans give the same bits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/cuda_batch_tables.h"
#include "engine/backend/cuda/cuda_expert_layer.h"
#include "engine/backend/cuda/cuda_matmuls.h"
#include "engine/backend/cuda/cuda_session.h"
#include "engine/backend/cuda/cuda_tap_recorder.h"
#include "engine/backend/cuda/cuda_weights.h"
#include "engine/backend/host/plan_log.h"
#include "engine/backend/host/rounding_scheme.h"

namespace driftscope {

class CudaForwardPass {
 public:
  // `group`: the ranks of all_reduce=nccl, else null.
  CudaForwardPass(std::shared_ptr<CudaSession> session, std::shared_ptr<const CudaWeights> weights,
                  const RunConfig& config, std::shared_ptr<CudaRankGroup> group);
  ~CudaForwardPass();
  CudaForwardPass(const CudaForwardPass&) = delete;
  CudaForwardPass& operator=(const CudaForwardPass&) = delete;

  // See Backend::forward(), logits() and taps(). The caches are CudaKvCache; they grow only if the
  // whole pass went well.
  [[nodiscard]] Result<void> run(const Batch& batch, const std::stop_token& stop);
  [[nodiscard]] std::int64_t output_rows() const { return m_tables.output_rows(); }
  [[nodiscard]] Result<std::span<const float>> logits(std::int64_t first, std::int64_t count);
  [[nodiscard]] std::span<const TensorTap> taps(std::int64_t output_row);
  [[nodiscard]] RouteRow routes(std::int64_t output_row) const {
    return m_experts.routes(output_row);
  }
  [[nodiscard]] std::vector<std::string> plans() const;

 private:
  // What a captured graph depends on besides addresses.
  using GraphKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, TapLevel, std::int64_t>;
  struct KnownGraph {
    CudaGraph* graph = nullptr;  // null: the calls ran once, so all memory is there
    int generation = -1;
  };

  [[nodiscard]] Result<void> prepare(const Batch& batch);
  [[nodiscard]] Result<void> grow_buffers();
  [[nodiscard]] Result<void> grow_rope_table(std::int64_t positions);
  [[nodiscard]] Result<void> run_layers(const std::stop_token& stop, bool captured);
  [[nodiscard]] Result<void> run_as_graph(const std::stop_token& stop);
  [[nodiscard]] Result<void> capture(KnownGraph& known);
  void drop_graphs();
  void note_attention();

  void embed();
  [[nodiscard]] Result<void> run_layer(std::int64_t index);
  [[nodiscard]] Result<void> project_qkv(const DeviceLayer& layer, std::int64_t index);
  void split_qkv();
  void normalise_heads(const DeviceLayer& layer, std::int64_t index);
  void rotate(std::int64_t index);
  void attend(std::int64_t index);
  [[nodiscard]] Result<void> feed_forward(const DeviceLayer& layer, std::int64_t index);
  [[nodiscard]] Result<void> feed_forward_dense(const DeviceLayer& layer, std::int64_t index);
  void finish_rows();

  void normalise(const float* x, const float* weight, float* y, std::int64_t rows,
                 std::int64_t width);
  [[nodiscard]] CudaProjection projection(const DeviceMatrix& weight, const float* x, float* y,
                                          std::int64_t parts, int stream = 0) const;
  // Column-parallel, as one matmul; row-parallel.
  [[nodiscard]] Result<void> share_outputs(std::string_view operation,
                                           std::span<const CudaProjection> group);
  [[nodiscard]] Result<void> share_terms(std::string_view operation,
                                         const CudaProjection& projection);
  void add_to_residual();
  void record(Operation operation, std::int64_t layer, const DeviceList& values,
              std::int64_t width);

  std::shared_ptr<CudaSession> m_session;
  std::shared_ptr<const CudaWeights> m_weights;
  const ModelDescription& m_model;
  RunConfig m_config;
  RoundingScheme m_rounding;
  PlanLog m_plans;
  int m_generation = 0;  // of addresses
  CudaMatmuls m_matmuls;
  CudaTapRecorder m_taps;
  CudaExpertLayer m_experts;
  CudaBatchTables m_tables;
  Phase m_phase = Phase::decode;
  TapLevel m_level = TapLevel::logits;
  std::int64_t m_score_stride = 0;  // eager: keys that a row of scores has room for
  std::int64_t m_rope_positions = 0;
  std::map<GraphKey, KnownGraph> m_graphs;

  // [rows, width], as in ForwardPass.
  DeviceList m_x{"the residual stream"};
  DeviceList m_normed{"activations"};
  DeviceList m_qkv{"activations"};
  DeviceList m_q{"activations"};
  DeviceList m_k{"activations"};
  DeviceList m_v{"activations"};
  DeviceList m_attended{"activations"};
  DeviceList m_delta{"activations"};
  DeviceList m_gate_up{"activations"};
  DeviceList m_activated{"activations"};
  DeviceList m_scores{"the scores of eager attention"};
  DeviceList m_result{"output rows"};
  DeviceList m_device_logits{"logits"};
  DeviceList m_cosine{"the rotary table"};
  DeviceList m_sine{"the rotary table"};
  std::vector<float> m_logits;   // [rows asked for, vocabulary]
  bool m_vendor_logits = false;  // m_logits holds all output rows
};

}  // namespace driftscope
