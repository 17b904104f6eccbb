// SPDX-License-Identifier: Apache-2.0
// The host as a Backend.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "engine/backend/backend.h"
#include "engine/backend/host/host_weights.h"
#include "engine/backend/host/thread_pool.h"

namespace driftscope {

// What lanes on one machine share: loaded weights and, for equal thread counts, threads.
class HostResources {
 public:
  // Errors: engine (a knob that this machine cannot honour, no memory).
  [[nodiscard]] Result<std::unique_ptr<Backend>> open(
      const std::shared_ptr<const ModelCheckpoint>& checkpoint, const RunConfig& config);
  // Overrides the choice between copied and mapped weights for everything opened later.
  void set_storage(std::optional<WeightStorage> storage) { m_storage = storage; }
  [[nodiscard]] std::shared_ptr<ThreadPool> pool(int threads);

 private:
  std::optional<WeightStorage> m_storage;
  WeightCache m_weights;
  std::mutex m_mutex;
  std::map<int, std::weak_ptr<ThreadPool>> m_pools;
};

}  // namespace driftscope
