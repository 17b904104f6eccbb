// SPDX-License-Identifier: Apache-2.0
// How matmuls run on tensor-parallel ranks, of which there may be one.
//
// Each rank computes its share of every matrix (rank_plans.h) under the plan for that share's
// shape. Heads and feed-forward channels stay with their rank from the outputs of q, k, v, gate and
// up to the terms of o and down, so attention and activation, which look at one head or channel at
// a time, need no exchange. Embedding and LM head are shared by vocabulary: a row or logit comes
// from one rank, and nothing is added. Only o and down end in an all-reduce:
//   every rank's f32 sums over its terms → rounded to reduce_dtype as the all-reduce says
//   → the sum → + bias in f32 → rounded to the activation type, where the rounding points ask.
// Key and value heads that several ranks hold have the same bits in each and are kept once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/host/host_weights.h"
#include "engine/backend/host/plan_log.h"
#include "engine/config/rank_plans.h"
#include "kernels/base/isa.h"
#include "kernels/base/large_array.h"
#include "kernels/base/parallel.h"

namespace driftscope {

struct Projection {
  WeightView weight;  // [n, k], of all ranks
  const float* bias = nullptr;
  const float* x = nullptr;  // [m, k]
  std::int64_t m = 0;
  float* y = nullptr;          // [m, n]
  std::int64_t parts = 1;      // of the axis that ranks share (SharedShape)
  std::int64_t plan_rows = 0;  // M for the choice of the plan; 0: m
  Dtype output_dtype = Dtype::f32;
};

// Whether the ranks that `config` asks for can share this model.
// Errors: engine, naming the counts that do not divide, and the ranks that the model allows.
[[nodiscard]] Result<void> check_ranks(const RunConfig& config, const ModelDescription& model);

// What ranks share, for people; for more than one rank.
[[nodiscard]] std::string ranks_note(const RunConfig& config, const ModelDescription& model);

class Projector {
 public:
  // `parallel` outlives it.
  Projector(const RunConfig& config, Isa isa, Parallel& parallel);

  // Column-parallel. A group reads the same x as one fused matmul per rank: the plan is chosen for
  // the outputs of all its members together. `operation` has static storage.
  void share_outputs(Phase phase, std::string_view operation, std::span<const Projection> group,
                     PlanLog& plans);
  // Row-parallel, with the all-reduce.
  void share_terms(Phase phase, std::string_view operation, const Projection& projection,
                   PlanLog& plans);

 private:
  // Calls run(rank, parallel) for each rank: on a thread each where that keeps all threads busy,
  // else one after the other on all threads.
  template <class Run>
  void for_each_rank(std::int64_t ranks, const Run& run);
  // With the kernel that `matmul_kernel` names.
  void multiply(const MatmulArguments& arguments, Parallel& parallel) const;
  // y = the added sums, with bias and rounding.
  void finish_sums(const Projection& projection);

  RunConfig m_config;
  Isa m_isa;
  Parallel& m_parallel;
  std::string m_all_reduce_text;
  FloatArray m_partial;            // [ranks][m, n]
  std::vector<float*> m_messages;  // [ranks]: where each rank's sums begin
};

}  // namespace driftscope
