// SPDX-License-Identifier: Apache-2.0
// Projections on the device: under a stated plan by our kernels, or as the vendor's library picks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/cuda/cuda_session.h"
#include "engine/backend/cuda/cuda_weights.h"
#include "engine/backend/host/plan_log.h"
#include "engine/config/run_config.h"

namespace driftscope {

class CudaMatmuls {
 public:
  CudaMatmuls(std::shared_ptr<CudaSession> session, const RunConfig& config)
      : m_session(std::move(session)), m_config(config) {}

  struct Job {
    Phase phase;
    std::string_view operation;  // static storage
    const DeviceMatrix* weight;
    const float* x;  // [m, columns]
    float* y;        // [m, rows]
    std::int64_t m;
    std::int64_t rows_in_flight;  // decides the plan
    Dtype output_dtype;
    int stream;
  };
  // Errors: engine (an order of arrival or a workspace does not fit). Later ones stay in the
  // session.
  [[nodiscard]] Result<void> run(const Job& job, PlanLog& plans, int& generation);
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
  };
  // Room for the codes of x.
  [[nodiscard]] Result<void> give_code_space(DeviceMatmul& request, Scratch& scratch,
                                             int& generation);
  [[nodiscard]] Result<const int*> order_of(const ReductionPlan& plan);
  [[nodiscard]] Result<void> run_vendor(const Job& job, int& generation);
  void note_choice(const Job& job, const CudaVendorAlgorithm& algorithm);

  std::shared_ptr<CudaSession> m_session;
  RunConfig m_config;
  std::map<int, DeviceMemory> m_orders;  // by split_k
  std::map<int, Scratch> m_scratch;      // by stream
  std::vector<std::string> m_choices;
  std::set<std::string> m_known_choices;
};

}  // namespace driftscope
