// SPDX-License-Identifier: Apache-2.0
// A CUDA device as a Backend, through the module that is loaded at run time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/cuda_module.h"
#include "engine/backend/cuda/cuda_rank_group.h"
#include "engine/backend/cuda/cuda_session.h"
#include "engine/backend/cuda/cuda_weights.h"

namespace driftscope {

// What lanes on one device share: the module, sessions of equal numbers of streams, and weights.
class CudaResources {
 public:
  CudaResources() = default;
  // Uses this module instead of looking for one (the SIMT harness).
  explicit CudaResources(std::shared_ptr<const CudaModule> module) : m_module(std::move(module)) {}

  // Errors: engine (no module, driver or device; what does not fit the device's memory; a knob
  // that this module cannot honour).
  [[nodiscard]] Result<std::unique_ptr<Backend>> open(
      const std::shared_ptr<const ModelCheckpoint>& checkpoint, const RunConfig& config);

 private:
  struct Loaded {
    std::weak_ptr<const ModelCheckpoint> checkpoint;
    WeightOptions options;
    std::weak_ptr<const CudaWeights> loaded;
  };
  [[nodiscard]] Result<std::shared_ptr<CudaSession>> session(int streams);
  // Null where no NCCL is asked for.
  [[nodiscard]] Result<std::shared_ptr<CudaRankGroup>> group(
      const std::shared_ptr<CudaSession>& session, const RunConfig& config);
  [[nodiscard]] Result<std::shared_ptr<const CudaWeights>> weights(
      const std::shared_ptr<CudaSession>& session,
      const std::shared_ptr<const ModelCheckpoint>& checkpoint, const RunConfig& config);

  std::mutex m_mutex;
  std::shared_ptr<const CudaModule> m_module;
  std::map<int, std::weak_ptr<CudaSession>> m_sessions;  // by streams
  std::map<std::pair<std::int64_t, std::int64_t>, std::weak_ptr<CudaRankGroup>>
      m_groups;  // by streams and ranks
  std::vector<Loaded> m_loaded;
};

}  // namespace driftscope
