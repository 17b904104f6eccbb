// SPDX-License-Identifier: Apache-2.0
// Projections on the device: under a stated plan by our kernels, or as the vendor's library picks.
//
// Tensor-parallel ranks are shards of the one device: each computes its share of a matrix under the
// plan for that share's shape, as the host's Projector says, and the sums over terms meet in our
// own all-reduce.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/cuda/cuda_session.h"
#include "engine/backend/cuda/cuda_weights.h"
#include "engine/backend/host/plan_log.h"
#include "engine/config/rank_plans.h"
#include "engine/config/run_config.h"

namespace driftscope {

struct CudaProjection {
  const DeviceMatrix* weight = nullptr;  // [n, k], of all ranks
  const float* x = nullptr;              // [m, k]
  float* y = nullptr;                    // [m, n]
  std::int64_t m = 0;
  std::int64_t parts = 1;      // of the axis that ranks share (SharedShape); 1: not shared
  std::int64_t plan_rows = 0;  // M for the choice of the plan; 0: m
  Dtype output_dtype = Dtype::f32;
  int stream = 0;
};

class CudaMatmuls {
 public:
  CudaMatmuls(std::shared_ptr<CudaSession> session, const RunConfig& config);

  // As Projector's two. `operation` has static storage. Errors: engine (an order of arrival or a
  // workspace does not fit). Later ones stay in the session.
  [[nodiscard]] Result<void> share_outputs(Phase phase, std::string_view operation,
                                           std::span<const CudaProjection> group, PlanLog& plans,
                                           int& generation);
  [[nodiscard]] Result<void> share_terms(Phase phase, std::string_view operation,
                                         const CudaProjection& projection, PlanLog& plans,
                                         int& generation);
  [[nodiscard]] bool vendor() const { return m_config.matmul_policy == PlanPolicy::vendor; }
  // What the vendor's library chose, a line for each shape.
  [[nodiscard]] const std::vector<std::string>& choices() const { return m_choices; }

 private:
  // Of one stream, so that matmuls side by side do not share it.
  struct Scratch {
    DeviceList workspace{"the cuBLAS workspace"};
    DeviceList narrowed{"matmul inputs in 16 bits"};
    DeviceList codes{"matmul inputs in 8 bits"};
    DeviceList scales{"scales of matmul inputs"};
    DeviceList partial{"sums of tensor-parallel ranks"};
  };
  // A matmul of all of `projection` under `plan`; callers narrow it down to a rank's share.
  [[nodiscard]] static DeviceMatmul request_of(const CudaProjection& projection);
  [[nodiscard]] Result<void> multiply(DeviceMatmul request, const ReductionPlan& plan, int stream,
                                      int& generation);
  [[nodiscard]] Result<void> reduce(Phase phase, const CudaProjection& projection,
                                    const RankShape& share, const ReductionPlan& plan,
                                    PlanLog& plans, int& generation);
  // Room for the codes of x.
  [[nodiscard]] Result<void> give_code_space(DeviceMatmul& request, Scratch& scratch,
                                             int& generation);
  [[nodiscard]] Result<const int*> order_of(const ReductionPlan& plan);
  [[nodiscard]] Result<void> run_vendor(Phase phase, std::string_view operation,
                                        const CudaProjection& projection, int& generation);
  void note_choice(Phase phase, std::string_view operation, const CudaProjection& projection,
                   const CudaVendorAlgorithm& algorithm);

  std::shared_ptr<CudaSession> m_session;
  RunConfig m_config;
  std::string m_all_reduce_text;
  std::map<int, DeviceMemory> m_orders;  // by split_k
  std::map<int, Scratch> m_scratch;      // by stream
  std::vector<std::string> m_choices;
  std::set<std::string> m_known_choices;
};

}  // namespace driftscope
