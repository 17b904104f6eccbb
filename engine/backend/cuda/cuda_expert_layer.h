// SPDX-License-Identifier: Apache-2.0
// The feed-forward part of a layer with a mixture of experts on the device: the operations and
// rounding points of the host's ExpertLayer, in the same order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/cuda_matmuls.h"
#include "engine/backend/cuda/cuda_session.h"
#include "engine/backend/cuda/cuda_tap_recorder.h"
#include "engine/backend/cuda/cuda_weights.h"
#include "engine/backend/host/plan_log.h"
#include "engine/backend/host/rounding_scheme.h"
#include "engine/trace/trace.h"

namespace driftscope {

// How many rows an expert has decides its plan, so every layer's routes come to this side before
// its experts run: the device waits once a layer, and no graph can hold such a call.
class CudaExpertLayer {
 public:
  // References outlive the layer.
  struct Setup {
    CudaSession& session;
    const ModelDescription& model;
    const RunConfig& config;
    const RoundingScheme& rounding;
    CudaMatmuls& matmuls;
    PlanLog& plans;
    CudaTapRecorder& taps;
    int& generation;
  };
  explicit CudaExpertLayer(const Setup& setup);

  // Starts a pass; routes are kept of `output_rows` (rows of the batch, rising). tap_rows: the rows
  // with taps, in device memory.
  void begin(Phase phase, std::span<const std::int64_t> output_rows, const std::int64_t* tap_rows);
  // x: [rows, hidden], after the norm; y: [rows, hidden], what is added to the residual stream.
  [[nodiscard]] Result<void> run(const DeviceExperts& weights, std::int64_t layer, const float* x,
                                 std::int64_t rows, float* y);
  // As ExpertLayer's.
  [[nodiscard]] RouteRow routes(std::int64_t index) const;
  [[nodiscard]] const std::string& note() const { return m_note; }

 private:
  [[nodiscard]] Result<void> project_whole(std::string_view operation, const DeviceMatrix& weight,
                                           const float* x, std::int64_t rows, float* y,
                                           Dtype output_dtype);
  [[nodiscard]] Result<void> choose(const DeviceMatrix& router, std::int64_t layer, const float* x,
                                    std::int64_t rows);
  void keep_routes(std::int64_t rows);
  [[nodiscard]] Result<void> group_rows(std::int64_t rows);
  [[nodiscard]] Result<void> feed(const DeviceExpert& expert, bool shared, const float* x,
                                  std::int64_t rows, float* y, Dtype output_dtype);
  [[nodiscard]] Result<void> run_expert(const DeviceExpert& expert, std::size_t id, const float* x,
                                        std::int64_t rows, float* y);
  [[nodiscard]] Result<void> add_shared(const DeviceExperts& weights, std::int64_t layer,
                                        const float* x, std::int64_t rows, float* y);
  [[nodiscard]] Result<void> grow(DeviceList& list, std::int64_t rows, std::int64_t width);

  Setup m_setup;
  Phase m_phase = Phase::decode;
  const std::int64_t* m_tap_rows = nullptr;
  std::string m_note;
  std::int64_t m_hidden = 0;
  std::int64_t m_chosen = 0;
  std::size_t m_kept_layers = 0;  // layers with routes so far in this pass
  std::size_t m_layers = 0;       // layers with experts

  DeviceList m_logits{"router logits"};                // [rows, experts]
  DeviceList m_probabilities{"router probabilities"};  // [rows, experts]
  // ids [rows, chosen], weights [rows, chosen], margins [rows]; all of 32 bits
  DeviceList m_device_routes{"routes"};
  DeviceList m_device_group_rows{"rows of experts"};        // [rows · chosen]
  DeviceList m_device_group_weights{"weights of experts"};  // [rows · chosen]
  DeviceList m_gathered{"inputs of an expert"};
  DeviceList m_gate_up{"activations of an expert"};
  DeviceList m_activated{"activations of an expert"};
  DeviceList m_outputs{"outputs of an expert"};
  DeviceList m_gates{"gates of the shared expert"};

  std::vector<std::uint32_t> m_routes;     // as on the device
  std::vector<std::size_t> m_first;        // [experts + 1], as ExpertLayer's
  std::vector<std::int64_t> m_group_rows;  // [rows · chosen], rising within an expert
  std::vector<float> m_group_weights;      // [rows · chosen]
  std::vector<std::int64_t> m_kept_rows;
  std::vector<std::int32_t> m_kept_ids;  // [kept rows, layers, chosen]
  std::vector<float> m_kept_weights;     // [kept rows, layers, chosen]
  std::vector<float> m_kept_margins;     // [kept rows, layers]
};

}  // namespace driftscope
