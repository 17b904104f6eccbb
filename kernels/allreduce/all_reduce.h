// SPDX-License-Identifier: Apache-2.0
// The sum of what tensor-parallel ranks hold, element by element, left with every rank.
//
// R ranks hold p_0 … p_(R-1), messages of E elements each. In every order a rank sends values of
// the reduce dtype: round() below is the rounding to it (f32: none), additions are f32. Each sum is
//  one_shot  round(((q_0 + q_1) + q_2) + …) with q_r = round(p_r): every rank reads all messages
//  and
//            adds them in rank order in f32; one rounding at the end (as one-shot kernels over
//            peer memory do).
//  ring      the message is cut into R chunks of ceil(E / R) elements, the last ones shorter or
//            empty. Chunk c starts at rank c + 1, and goes round (ranks modulo R) to rank c; each
//            rank on its way adds its own part and rounds, because it sends the sum on:
//            s = q_(c+1); s = round(s + q_(c+2)); … s = round(s + q_c). Then the finished chunks
//            go round unchanged (reduce-scatter and all-gather, as NCCL's ring does).
//  tree      rank i + d sends its sum to rank i, for d = 1, 2, 4 … (i a multiple of 2d, i + d < R):
//            s_i = round(s_i + s_(i+d)), at first s_i = q_i. Then rank 0's sum goes to all. With
//            f32 this is SplitCombine::tree over the ranks.
// With one rank nothing is sent, and nothing is rounded.
// A NaN result is the quiet NaN 0x7fc00000. The order of additions depends on the number of ranks
// and on the element's position in the message, never on threads or on the speed of a rank.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/allreduce/all_reduce_order.h"
#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

struct AllReduceArguments {
  // [ranks][elements], not overlapping. In: each rank's part; out: the sum, the same bits in each.
  std::span<float* const> ranks;
  std::int64_t elements = 0;
  Dtype dtype = Dtype::f32;  // f32, bf16 or f16: of what ranks send
};

struct AllReduceVariant {
  std::string_view name;
  AllReduceOrder order;
  // `ring` promises run_to_run only: a row's place in the message decides its chunk, and so its
  // order of additions, from three ranks on. (Two parts have one sum, whichever comes first.)
  Determinism determinism;
  void (*run)(const AllReduceArguments& arguments, Parallel& parallel);
};
[[nodiscard]] std::span<const AllReduceVariant> all_reduce_variants();

// At least one rank.
void all_reduce(AllReduceOrder order, const AllReduceArguments& arguments, Parallel& parallel);

// Elements of every ring chunk but the last ones: ceil(elements / ranks).
[[nodiscard]] constexpr std::int64_t ring_chunk(std::int64_t elements, std::int64_t ranks) {
  return (elements + ranks - 1) / ranks;
}

// Rising f64 sum of the parts as they are, without rounding: the witness in tests. sums: [elements]
void all_reduce_reference(std::span<const float* const> ranks, std::int64_t elements, double* sums);

}  // namespace driftscope
