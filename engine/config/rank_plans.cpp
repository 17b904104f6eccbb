// SPDX-License-Identifier: Apache-2.0
#include "engine/config/rank_plans.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "kernels/plan/plan_policy.h"

namespace driftscope {

namespace {

constexpr std::int64_t kMostLeaves = 8;

ReductionPlan plan_for(const RunConfig& config, std::int64_t m, std::int64_t n, std::int64_t k) {
  return matmul_plan(config.matmul_policy, config.matmul_plan, m, n, k);
}

}  // namespace

std::int64_t tree_leaves(std::int64_t parts) { return std::gcd(parts, kMostLeaves); }

RankShape share_outputs(const RunConfig& config, const SharedShape& shape) {
  assert(shape.parts >= 1 && shape.n % shape.parts == 0);
  const std::int64_t shards = std::min(config.tensor_parallel, shape.parts);
  const std::int64_t parts = (shape.parts + shards - 1) / shards;
  return {.shards = shards, .n = parts * (shape.n / shape.parts), .k = shape.k};
}

RankShape share_terms(const RunConfig& config, const SharedShape& shape) {
  assert(shape.parts % config.tensor_parallel == 0 && shape.k % shape.parts == 0);
  return {.shards = config.tensor_parallel, .n = shape.n, .k = shape.k / config.tensor_parallel};
}

ReductionPlan plan_of_outputs(const RunConfig& config, std::span<const SharedShape> fused) {
  assert(!fused.empty());
  std::int64_t n = 0;
  for (const SharedShape& shape : fused) {
    n += config.tensor_parallel_invariant ? shape.n : share_outputs(config, shape).n;
  }
  return plan_for(config, fused.front().m, n, fused.front().k);
}

ReductionPlan plan_of_terms(const RunConfig& config, const SharedShape& shape) {
  if (!config.tensor_parallel_invariant) {
    return plan_for(config, shape.m, shape.n, share_terms(config, shape).k);
  }
  ReductionPlan plan = plan_for(config, shape.m, shape.n, shape.k);
  plan.split_k = static_cast<int>(tree_leaves(shape.parts) / config.tensor_parallel);
  plan.split_combine = SplitCombine::tree;
  return plan;
}

}  // namespace driftscope
