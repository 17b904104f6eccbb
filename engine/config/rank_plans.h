// SPDX-License-Identifier: Apache-2.0
// How tensor-parallel ranks share a matmul, and under which plan each of them runs its share.
// A function of the configuration and the shape alone: engine and analysis ask the same one.
#pragma once

#include <cstdint>
#include <span>

#include "engine/config/run_config.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

// One matmul of M rows, N outputs and K terms. The axis that ranks share consists of `parts`
// indivisible parts: attention heads, feed-forward channels, entries of the vocabulary.
struct SharedShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t parts = 0;
};

// What one rank computes.
struct RankShape {
  std::int64_t shards = 1;  // ranks with different shares; fewer than ranks: shares are replicated
  std::int64_t n = 0;       // outputs of a share (the last one may have fewer)
  std::int64_t k = 0;       // terms of a share
};

// Column-parallel: each rank has N / ranks of the outputs and all terms. With fewer parts than
// ranks (key and value heads), each part is held by several ranks; parts that ranks cannot share
// equally (vocabulary) are shared in pieces of ceil(parts / ranks), as padded tables are.
[[nodiscard]] RankShape share_outputs(const RunConfig& config, const SharedShape& shape);
// Row-parallel: each rank has all outputs and K / ranks of the terms. `parts` is a multiple of the
// ranks.
[[nodiscard]] RankShape share_terms(const RunConfig& config, const SharedShape& shape);

// The plan of a rank's share of a column-parallel matmul: for the share's shape, or for the whole
// one with tensor_parallel_invariant. Nothing is added between ranks, so only this plan can change
// a bit. Several shapes read the same rows as one fused matmul.
[[nodiscard]] ReductionPlan plan_of_outputs(const RunConfig& config,
                                            std::span<const SharedShape> fused);
// The same of a row-parallel one, whose sums then meet in an all-reduce.
[[nodiscard]] ReductionPlan plan_of_terms(const RunConfig& config, const SharedShape& shape);

// With tensor_parallel_invariant, K is cut into this many equal leaves: the largest power of two
// up to 8 that divides `parts`. Each leaf is reduced on its own and a binary tree adds the leaves;
// with 1, 2, 4 or 8 ranks the lower levels of the tree are a rank's own split-K, the upper ones the
// all-reduce. Lanes follow from the whole shape then, not from a rank's share.
[[nodiscard]] std::int64_t tree_leaves(std::int64_t parts);

// Whether the rows in flight decide in which order ranks' sums are added: a row's place in the
// message of a ring decides its chunk. Two ranks have one order only.
[[nodiscard]] constexpr bool ring_sees_the_batch(const RunConfig& config) {
  return config.tensor_parallel > 2 &&
         (config.all_reduce == AllReduce::ring || config.all_reduce == AllReduce::nccl);
}

}  // namespace driftscope
