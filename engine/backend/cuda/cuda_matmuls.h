// SPDX-License-Identifier: Apache-2.0
// Projections on the device: under a stated plan by our kernels, or as the vendor's library picks.
//
// Tensor-parallel ranks are shards of the one device: each computes its share of a matrix under the
// plan for that share's shape, as the host's Projector says, and the sums over terms meet in our
// own all-reduce. With all_reduce=nccl the ranks of those are on a GPU each
// (cuda_matmuls_nccl.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/cuda/cuda_rank_group.h"
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
  // `group`: the ranks of all_reduce=nccl, else null.
  CudaMatmuls(std::shared_ptr<CudaSession> session, const RunConfig& config,
              std::shared_ptr<CudaRankGroup> group);
  CudaMatmuls(const CudaMatmuls&) = delete;
  CudaMatmuls& operator=(const CudaMatmuls&) = delete;
  ~CudaMatmuls();

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
  struct RankShare {
    RankShape shape;
    ReductionPlan plan;
  };
  [[nodiscard]] Result<void> reduce(const CudaProjection& projection, const RankShare& share,
                                    int& generation);
  // y = the sum of `ranks` parts, one after the other, with bias and rounding.
  void finish_sum(const CudaProjection& projection, const float* parts, std::int64_t ranks);
  // Terms [first, first + count). y: [m, n], contiguous.
  [[nodiscard]] static DeviceMatmul terms_of(DeviceMatmul request, std::int64_t first,
                                             std::int64_t count);

  struct Peer;
  struct CudaSumBuffers {
    float* part;
    void* narrowed;
  };
  void add_peers();
  [[nodiscard]] Result<void> reduce_by_nccl(const CudaProjection& projection,
                                            const RankShare& share, int& generation);
  [[nodiscard]] Result<void> run_peer(std::size_t rank, CudaProjection projection,
                                      const RankShare& share, std::vector<CudaSumBuffers>& buffers);
  [[nodiscard]] Result<void> sum_share(std::size_t rank, const CudaProjection& projection,
                                       const RankShare& share, std::vector<CudaSumBuffers>& buffers,
                                       int& generation);
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
  std::shared_ptr<CudaRankGroup> m_group;
  std::vector<std::unique_ptr<Peer>> m_peers;  // ranks 1 …
  std::string m_all_reduce_text;
  std::map<int, DeviceMemory> m_orders;  // by split_k
  std::map<int, Scratch> m_scratch;      // by stream
  std::vector<std::string> m_choices;
  std::set<std::string> m_known_choices;
};

}  // namespace driftscope
