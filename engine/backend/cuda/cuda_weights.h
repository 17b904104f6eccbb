// SPDX-License-Identifier: Apache-2.0
// A checkpoint's weights in device memory, with the host backend's conversions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend/cuda/cuda_session.h"
#include "engine/backend/host/host_weights.h"

namespace driftscope {

struct DeviceMatrix {
  const void* data = nullptr;  // [rows, columns] of dtype
  Dtype dtype = Dtype::f32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const float* bias = nullptr;  // [rows] or null
  // Where present, the matrix is these codes, in device memory; `data` is where they begin.
  QuantisedView quantised = {};
};

struct DeviceExpert {
  DeviceMatrix gate, up;
  DeviceMatrix gate_up;  // data null if not asked for
  DeviceMatrix down;
};

// As HostExperts.
struct DeviceExperts {
  DeviceMatrix router;
  std::vector<DeviceExpert> experts;
  DeviceExpert shared;  // data null: none
  DeviceMatrix shared_weight;
};

struct DeviceLayer {
  const float* attention_norm = nullptr;
  DeviceMatrix q, k, v;
  DeviceMatrix qkv;  // data null if not asked for
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  DeviceMatrix o;
  const float* ffn_norm = nullptr;
  DeviceMatrix gate, up;
  DeviceMatrix gate_up;  // data null if not asked for
  DeviceMatrix down;
  DeviceExperts moe;
};

class CudaWeights {
 public:
  // Errors: engine (no memory on either side: what did not fit), malformed (a weight to be
  // quantised is NaN or infinite).
  [[nodiscard]] static Result<std::shared_ptr<const CudaWeights>> load(
      const std::shared_ptr<CudaSession>& session,
      const std::shared_ptr<const ModelCheckpoint>& checkpoint, WeightOptions options);

  [[nodiscard]] const ModelCheckpoint& checkpoint() const { return *m_checkpoint; }
  [[nodiscard]] const DeviceMatrix& embedding() const { return m_embedding; }
  [[nodiscard]] const DeviceMatrix& lm_head() const { return m_lm_head; }
  [[nodiscard]] const float* final_norm() const { return m_final_norm; }
  [[nodiscard]] const DeviceLayer& layer(std::int64_t index) const {
    return m_layers[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] std::string storage_note() const;
  // As HostWeights' one.
  [[nodiscard]] const std::string& quantisation_note() const { return m_quantisation_note; }

 private:
  friend class CudaWeightLoader;
  std::shared_ptr<const ModelCheckpoint> m_checkpoint;
  std::vector<DeviceMemory> m_memory;
  DeviceMatrix m_embedding;
  DeviceMatrix m_lm_head;
  const float* m_final_norm = nullptr;
  std::vector<DeviceLayer> m_layers;
  std::string m_quantisation_note;
};

}  // namespace driftscope
