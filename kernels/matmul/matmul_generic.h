// SPDX-License-Identifier: Apache-2.0
// Internal: one output under any plan, compiled once per instruction set. Follows the definition
// in reduction_plan.h; lanes are independent, so they run in blocks that fit the registers.
#pragma once

#include <cstdint>

#include "kernels/matmul/matmul_kernels.h"

namespace driftscope::matmul_detail {
namespace {

struct PlainSum {
  float sum;
  [[gnu::always_inline]] void add_product(float x, float w) { sum = __builtin_fmaf(x, w, sum); }
  [[gnu::always_inline]] void join(PlainSum other) { sum += other.sum; }
  [[gnu::always_inline]] float result() const { return sum; }
};

struct WideSum {
  double sum;
  [[gnu::always_inline]] void add_product(float x, float w) {
    sum = __builtin_fma(static_cast<double>(x), static_cast<double>(w), sum);
  }
  [[gnu::always_inline]] void join(WideSum other) { sum += other.sum; }
  [[gnu::always_inline]] float result() const { return static_cast<float>(sum); }
};

struct KahanSum {
  float sum;
  float compensation;
  [[gnu::always_inline]] void add_term(float y) {
    const float t = sum + y;
    compensation = (t - sum) - y;
    sum = t;
  }
  [[gnu::always_inline]] void add_product(float x, float w) {
    add_term(__builtin_fmaf(x, w, -compensation));
  }
  [[gnu::always_inline]] void join(KahanSum other) {
    add_term(other.sum - (compensation + other.compensation));
  }
  [[gnu::always_inline]] float result() const { return sum - compensation; }
};

// Lanes first … first + Block - 1 of one chunk.
template <class State, int Block>
[[gnu::always_inline]] inline void sum_lane_block(const float* __restrict x,
                                                  const float* __restrict w, std::int64_t length,
                                                  std::int64_t lanes, std::int64_t first,
                                                  State* __restrict lane_states) {
  State block[Block] = {};
  std::int64_t k = first;
  for (; k + Block <= length; k += lanes) {
    for (int i = 0; i < Block; ++i) block[i].add_product(x[k + i], w[k + i]);
  }
  const std::int64_t padded = (length + lanes - 1) / lanes * lanes;
  if (k < padded) {  // the last step: some terms, then padding
    for (int i = 0; i < Block; ++i) {
      const bool inside = k + i < length;
      block[i].add_product(inside ? x[k + i] : 0.0F, inside ? w[k + i] : 0.0F);
    }
  }
  for (int i = 0; i < Block; ++i) lane_states[first + i] = block[i];
}

template <class State>
void sum_lanes(const float* x, const float* w, std::int64_t length, int lanes, State* states) {
  constexpr int kBlock = 16;
  if (lanes >= kBlock) {
    for (int first = 0; first < lanes; first += kBlock) {
      sum_lane_block<State, kBlock>(x, w, length, lanes, first, states);
    }
    return;
  }
  for (int first = 0; first < lanes; ++first) {
    sum_lane_block<State, 1>(x, w, length, lanes, first, states);
  }
}

template <class State>
State join_lanes(LaneCombine combine, State* states, int lanes) {
  if (combine == LaneCombine::butterfly) {
    for (int d = lanes / 2; d >= 1; d /= 2) {
      for (int i = 0; i < d; ++i) states[i].join(states[i + d]);
    }
  } else {
    for (int i = 1; i < lanes; ++i) states[0].join(states[i]);
  }
  return states[0];
}

template <class State>
State join_chunks(const GenericJob& job, State* chunks) {
  const int count = job.plan->split_k;
  State sum = chunks[0];
  switch (job.plan->split_combine) {
    case SplitCombine::sequential:
      for (int i = 1; i < count; ++i) sum.join(chunks[i]);
      break;
    case SplitCombine::tree:
      for (int d = 1; d < count; d *= 2) {
        for (int i = 0; i + d < count; i += 2 * d) chunks[i].join(chunks[i + d]);
      }
      sum = chunks[0];
      break;
    case SplitCombine::arrival:
      sum = chunks[job.order[0]];
      for (int i = 1; i < count; ++i) sum.join(chunks[job.order[i]]);
      break;
  }
  return sum;
}

template <class State>
State* sum_chunks(const GenericJob& job) {
  auto* lane_states = static_cast<State*>(job.scratch);
  State* chunks = lane_states + job.plan->lanes;
  const std::int64_t length = (job.k + job.plan->split_k - 1) / job.plan->split_k;
  for (int chunk = 0; chunk < job.plan->split_k; ++chunk) {
    const std::int64_t begin = chunk * length;
    if (begin >= job.k) {
      chunks[chunk] = State{};
      continue;
    }
    const std::int64_t count = begin + length <= job.k ? length : job.k - begin;
    sum_lanes(job.x + begin, job.w + begin, count, job.plan->lanes, lane_states);
    chunks[chunk] = join_lanes(job.plan->lane_combine, lane_states, job.plan->lanes);
  }
  return chunks;
}

float run_generic(const GenericJob& job) {
  switch (job.plan->accumulator) {
    case Accumulator::f32:
      return join_chunks(job, sum_chunks<PlainSum>(job)).result();
    case Accumulator::f64:
      return join_chunks(job, sum_chunks<WideSum>(job)).result();
    case Accumulator::kahan:
      return join_chunks(job, sum_chunks<KahanSum>(job)).result();
    case Accumulator::bf16:
    case Accumulator::f16:  // rounding lives in baseline code
      return combine_chunks(*job.plan, &sum_chunks<PlainSum>(job)->sum, job.order);
  }
  return 0.0F;
}

}  // namespace
}  // namespace driftscope::matmul_detail
