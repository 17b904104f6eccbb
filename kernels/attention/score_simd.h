// SPDX-License-Identifier: Apache-2.0
// q·k of a chunk of keys under a ReductionPlan, for *_avx2.cpp and *_avx512.cpp only.
#pragma once

#include "kernels/attention/attention_vector.h"
#include "kernels/plan/simd_vector.h"

#if defined(__AVX2__) && defined(__FMA__)

namespace driftscope::simd {
namespace {

#if defined(__AVX512F__)
constexpr int kScoreQueries = 2;
#else
constexpr int kScoreQueries = 1;
#endif
constexpr int kScoreRegisters = 2;

// Sums of kScoreQueries queries (or one) with kScoreRegisters registers of keys.
template <int Queries>
struct ScoreTile {
  Floats at[Queries][kScoreRegisters];
};

// Where the operands of a tile lie; terms: steps of `lanes` through the padded head.
struct ScoreOperands {
  const float* q;
  const float* keys;
  std::int64_t q_stride;
  std::int64_t terms;
};

// One lane of the plan: fma over its terms in rising k.
template <int Lanes, int Terms, int Queries>
DRIFTSCOPE_INLINE ScoreTile<Queries> lane_sum(const ScoreOperands& operands, int lane) {
  ScoreTile<Queries> sum;
  for (auto& row : sum.at) {
    for (Floats& x : row) x = all(0.0F);
  }
  const std::int64_t terms = Terms > 0 ? Terms : operands.terms;
  for (std::int64_t term = 0; term < terms; ++term) {
    const std::int64_t k = lane + term * Lanes;
    for (int query = 0; query < Queries; ++query) {
      const Floats q = all(operands.q[query * operands.q_stride + k]);
      for (int r = 0; r < kScoreRegisters; ++r) {
        sum.at[query][r] =
            fma(q, load(operands.keys + k * kKeyChunk + r * kWidth), sum.at[query][r]);
      }
    }
  }
  return sum;
}

// What the butterfly leaves in lane `lane` after the step of `Distance`: lane + Distance added.
template <int Lanes, int Terms, int Queries, int Distance>
DRIFTSCOPE_INLINE ScoreTile<Queries> butterfly(const ScoreOperands& operands, int lane) {
  if constexpr (Distance == Lanes) {
    return lane_sum<Lanes, Terms, Queries>(operands, lane);
  } else {
    ScoreTile<Queries> sum = butterfly<Lanes, Terms, Queries, 2 * Distance>(operands, lane);
    const ScoreTile<Queries> other =
        butterfly<Lanes, Terms, Queries, 2 * Distance>(operands, lane + Distance);
    for (int query = 0; query < Queries; ++query) {
      for (int r = 0; r < kScoreRegisters; ++r) {
        sum.at[query][r] = add(sum.at[query][r], other.at[query][r]);
      }
    }
    return sum;
  }
}

DRIFTSCOPE_INLINE Floats scaled(const ScoreBlock& block, Floats dot) {
  return round(block.dtype, mul(round(block.dtype, dot), all(block.scale)));
}

template <int Lanes, int Terms, int Queries>
DRIFTSCOPE_INLINE void score_tile(const ScoreBlock& block, std::int64_t query, std::int64_t key) {
  const ScoreOperands operands{.q = block.q + query * block.padded_dim,
                               .keys = block.keys + key,
                               .q_stride = block.padded_dim,
                               .terms = block.padded_dim / Lanes};
  const ScoreTile<Queries> sum = butterfly<Lanes, Terms, Queries, 1>(operands, 0);
  for (int i = 0; i < Queries; ++i) {
    float* row = block.scores + (query + i) * block.score_stride + key;
    for (int r = 0; r < kScoreRegisters; ++r) store(row + r * kWidth, scaled(block, sum.at[i][r]));
  }
}

// One chunk, f32 lanes in butterfly order. Terms 0: their number is known at run time.
template <int Lanes, int Terms>
void score_butterfly(const ScoreBlock& block) {
  for (std::int64_t key = 0; key < kKeyChunk; key += kScoreRegisters * kWidth) {
    std::int64_t query = 0;
    for (; query + kScoreQueries <= block.queries; query += kScoreQueries) {
      score_tile<Lanes, Terms, kScoreQueries>(block, query, key);
    }
    for (; query < block.queries; ++query) score_tile<Lanes, Terms, 1>(block, query, key);
  }
}

// Lanes of one chunk of the plan, combined in place; count: elements of the chunk.
DRIFTSCOPE_INLINE Floats chunk_of_any_plan(const ReductionPlan& plan, const float* q,
                                           const float* keys, std::int64_t count, Floats* lanes) {
  for (int i = 0; i < plan.lanes; ++i) lanes[i] = all(0.0F);
  for (std::int64_t k = 0; k < count; ++k) {
    Floats& lane = lanes[k & (plan.lanes - 1)];
    lane = fma(all(q[k]), load(keys + k * kKeyChunk), lane);
  }
  // The padding of the last block: fma(0, 0, lane).
  for (std::int64_t k = count; (k & (plan.lanes - 1)) != 0; ++k) {
    Floats& lane = lanes[k & (plan.lanes - 1)];
    lane = add(lane, all(0.0F));
  }
  if (plan.lane_combine == LaneCombine::sequential) {
    for (int i = 1; i < plan.lanes; ++i) lanes[0] = add(lanes[0], lanes[i]);
    return lanes[0];
  }
  for (int distance = plan.lanes / 2; distance >= 1; distance /= 2) {
    for (int i = 0; i < distance; ++i) lanes[i] = add(lanes[i], lanes[i + distance]);
  }
  return lanes[0];
}

// Step 4 of the plan; sums: [split_k], overwritten.
DRIFTSCOPE_INLINE Floats combine_any_plan(const ReductionPlan& plan, const int* order, Dtype dtype,
                                          Floats* sums) {
  const int count = plan.split_k;
  for (int i = 0; i < count; ++i) sums[i] = round(dtype, sums[i]);
  switch (plan.split_combine) {
    case SplitCombine::sequential:
      for (int i = 1; i < count; ++i) sums[0] = round(dtype, add(sums[0], sums[i]));
      break;
    case SplitCombine::tree:
      for (int d = 1; d < count; d *= 2) {
        for (int i = 0; i + d < count; i += 2 * d) {
          sums[i] = round(dtype, add(sums[i], sums[i + d]));
        }
      }
      break;
    case SplitCombine::arrival: {
      Floats total = sums[order[0]];
      for (int i = 1; i < count; ++i) total = round(dtype, add(total, sums[order[i]]));
      return total;
    }
  }
  return sums[0];
}

// Every plan with an f32, bf16 or f16 accumulator.
void score_any_plan(const ScoreBlock& block) {
  const ReductionPlan& plan = *block.plan;
  const Dtype dtype = plan.accumulator == Accumulator::bf16  ? Dtype::bf16
                      : plan.accumulator == Accumulator::f16 ? Dtype::f16
                                                             : Dtype::f32;
  alignas(64) Floats lanes[1024];
  alignas(64) Floats sums[1024];
  lanes[0] = sums[0] = all(0.0F);
  const std::int64_t length = (block.head_dim + plan.split_k - 1) / plan.split_k;
  for (std::int64_t query = 0; query < block.queries; ++query) {
    const float* q = block.q + query * block.padded_dim;
    for (std::int64_t key = 0; key < kKeyChunk; key += kWidth) {
      for (std::int64_t s = 0; s < plan.split_k; ++s) {
        const std::int64_t begin = s * length < block.head_dim ? s * length : block.head_dim;
        const std::int64_t end = begin + length < block.head_dim ? begin + length : block.head_dim;
        sums[s] = begin < end
                      ? chunk_of_any_plan(plan, q + begin, block.keys + begin * kKeyChunk + key,
                                          end - begin, lanes)
                      : all(0.0F);
      }
      store(block.scores + query * block.score_stride + key,
            scaled(block, combine_any_plan(plan, block.order, dtype, sums)));
    }
  }
}

void score(const ScoreBlock& block) {
  const ReductionPlan& plan = *block.plan;
  const bool plain = plan.accumulator == Accumulator::f32 && plan.split_k == 1 &&
                     plan.lane_combine == LaneCombine::butterfly;
  if (!plain || block.padded_dim % plan.lanes != 0) return score_any_plan(block);
  switch (plan.lanes) {
    case 1:
      return score_butterfly<1, 0>(block);
    case 8:
      return score_butterfly<8, 0>(block);
    case 16:
      return score_butterfly<16, 0>(block);
    case 32:
      if (block.padded_dim == 64) return score_butterfly<32, 2>(block);
      if (block.padded_dim == 128) return score_butterfly<32, 4>(block);
      return score_butterfly<32, 0>(block);
    default:
      return score_any_plan(block);
  }
}

}  // namespace
}  // namespace driftscope::simd

#endif
