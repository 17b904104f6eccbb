// SPDX-License-Identifier: Apache-2.0
// reduce_dot and reduce_sum (reduction_plan.h) on vectors, the same bits. For *_avx2.cpp and
// *_avx512.cpp only, as simd_vector.h is.
#pragma once

#include "kernels/plan/reduction_plan.h"
#include "kernels/plan/simd_vector.h"

#if defined(__AVX2__) && defined(__FMA__)

namespace driftscope::simd {
namespace {

constexpr int kMaxLanes = 1024;
constexpr int kMaxSplits = 1024;

// The term that a lane adds: x * x (sum of squares) or x * 1 (plain sum).
enum class Term { square, value };

template <Term term>
DRIFTSCOPE_INLINE Floats add_term(Floats x, Floats lane) {
  return term == Term::square ? fma(x, x, lane) : add(x, lane);
}

// Lanes in `Registers` registers; the last block is padded with +0.
template <Term term, int Registers>
DRIFTSCOPE_INLINE void sum_lanes(const float* x, std::int64_t count, float* lanes) {
  Floats sums[Registers];
  for (Floats& sum : sums) sum = all(0.0F);
  constexpr std::int64_t kBlock = Registers * kWidth;
  std::int64_t k = 0;
  for (; k + kBlock <= count; k += kBlock) {
    for (int r = 0; r < Registers; ++r) {
      sums[r] = add_term<term>(load(x + k + r * kWidth), sums[r]);
    }
  }
  if (k < count) {
    for (int r = 0; r < Registers; ++r) {
      const std::int64_t left = count - k - r * kWidth;
      const std::int64_t kept = left < 0 ? 0 : left > kWidth ? kWidth : left;
      const float* source = kept > 0 ? x + k + r * kWidth : x;
      sums[r] = add_term<term>(load_first(source, kept, all(0.0F)), sums[r]);
    }
  }
  for (int r = 0; r < Registers; ++r) store(lanes + r * kWidth, sums[r]);
}

// Any number of lanes, kept in memory.
template <Term term>
DRIFTSCOPE_INLINE void sum_lanes_in_memory(const float* x, std::int64_t count, int lane_count,
                                           float* lanes) {
  for (int i = 0; i < lane_count; ++i) lanes[i] = 0.0F;
  const std::int64_t padded = (count + lane_count - 1) / lane_count * lane_count;
  for (std::int64_t k = 0; k < padded; k += lane_count) {
    for (int i = 0; i < lane_count; ++i) {
      const float value = k + i < count ? x[k + i] : 0.0F;
      lanes[i] = term == Term::square ? __builtin_fmaf(value, value, lanes[i]) : value + lanes[i];
    }
  }
}

DRIFTSCOPE_INLINE float combine_lanes(LaneCombine combine, int lane_count, float* lanes) {
  if (combine == LaneCombine::sequential) {
    for (int i = 1; i < lane_count; ++i) lanes[0] += lanes[i];
    return lanes[0];
  }
  for (int distance = lane_count / 2; distance >= 1; distance /= 2) {
    for (int i = 0; i < distance; ++i) lanes[i] += lanes[i + distance];
  }
  return lanes[0];
}

template <Term term>
float chunk_sum(const ReductionPlan& plan, const float* x, std::int64_t count) {
  if (count <= 0) return 0.0F;
  alignas(64) float lanes[kMaxLanes];
  lanes[0] = 0.0F;  // the compiler does not know that lanes is at least 1
  if (plan.lanes == 2 * kWidth) {
    sum_lanes<term, 2>(x, count, lanes);
  } else if (plan.lanes == 4 * kWidth) {
    sum_lanes<term, 4>(x, count, lanes);
  } else if (plan.lanes == kWidth) {
    sum_lanes<term, 1>(x, count, lanes);
  } else {
    sum_lanes_in_memory<term>(x, count, plan.lanes, lanes);
  }
  return combine_lanes(plan.lane_combine, plan.lanes, lanes);
}

// Whether plan_sum holds the lanes in registers; the rest goes to the definition.
DRIFTSCOPE_INLINE bool has_vector_form(const ReductionPlan& plan) {
  return plan.accumulator != Accumulator::f64 && plan.accumulator != Accumulator::kahan &&
         plan.split_combine != SplitCombine::arrival;
}

template <Term term>
DRIFTSCOPE_INLINE float plan_sum(const ReductionPlan& plan, const float* x, std::int64_t count) {
  if (!has_vector_form(plan)) {
    return term == Term::square ? reduce_dot(plan, x, x, count) : reduce_sum(plan, x, count);
  }
  float sums[kMaxSplits];
  const std::int64_t length = (count + plan.split_k - 1) / plan.split_k;
  for (int s = 0; s < plan.split_k; ++s) {
    const std::int64_t begin = s * length < count ? s * length : count;
    const std::int64_t end = begin + length < count ? begin + length : count;
    sums[s] = chunk_sum<term>(plan, x + begin, end - begin);
  }
  return combine_chunks(plan, sums, nullptr);
}

}  // namespace
}  // namespace driftscope::simd

#endif
