// SPDX-License-Identifier: Apache-2.0
// Opens the backend that a configuration names.
#pragma once

#include <memory>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/cuda_backend.h"
#include "engine/backend/host/host_backend.h"

namespace driftscope {

// Backends opened from one factory share loaded weights and threads where their settings allow.
class BackendFactory {
 public:
  // Errors: engine (no such backend here, a knob that it cannot honour, no memory).
  [[nodiscard]] Result<std::unique_ptr<Backend>> open(
      const std::shared_ptr<const ModelCheckpoint>& checkpoint, const RunConfig& config);
  // The f64 witness of this checkpoint, on `threads` threads of the host (0: all cores).
  [[nodiscard]] Result<std::unique_ptr<Backend>> open_reference(
      const std::shared_ptr<const ModelCheckpoint>& checkpoint, std::int64_t threads);
  // For `calls` passes over the weights: few do not repay copying them, so weights stay mapped and
  // the first row comes at once. Changes no bit. Has no part in what is open already.
  void expect_calls(std::int64_t calls);
  [[nodiscard]] HostResources& host() { return m_host; }

 private:
  HostResources m_host;
  CudaResources m_cuda;
};

}  // namespace driftscope
