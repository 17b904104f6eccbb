// SPDX-License-Identifier: Apache-2.0
// Tensor-parallel ranks on a GPU each, for all_reduce=nccl.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/backend/cuda/cuda_module.h"
#include "engine/backend/cuda/cuda_session.h"

namespace driftscope {

class CudaRankGroup {
 public:
  // `first` is rank 0, on GPU 0; rank r is on GPU r. Errors: engine (a module without NCCL, fewer
  // GPUs than ranks, what NCCL says).
  [[nodiscard]] static Result<std::shared_ptr<CudaRankGroup>> open(
      const std::shared_ptr<const CudaModule>& module, std::shared_ptr<CudaSession> first,
      int ranks);
  CudaRankGroup() = default;
  CudaRankGroup(const CudaRankGroup&) = delete;
  CudaRankGroup& operator=(const CudaRankGroup&) = delete;
  ~CudaRankGroup();

  [[nodiscard]] std::span<const std::shared_ptr<CudaSession>> sessions() const {
    return m_sessions;
  }
  [[nodiscard]] Result<void> sum(const CudaGroupSum& request);
  // "2.28.9", and which of its environment variables are set: " NCCL_ALGO=Ring".
  [[nodiscard]] const std::string& note() const { return m_note; }

 private:
  std::vector<std::shared_ptr<CudaSession>> m_sessions;  // [ranks]
  CudaGroup* m_group = nullptr;
  std::string m_note;
};

}  // namespace driftscope
