// SPDX-License-Identifier: Apache-2.0
// Sums under a plan by a group of threads: the definition in reduction_plan.h, lane for lane. Up to
// 32 lanes a thread is a lane; above that it holds several.
#pragma once

#include "kernels/plan/device.cuh"
#include "kernels/plan/device_plan.h"

namespace driftscope::cuda {

// min(lanes, 32) neighbouring threads of a warp.
struct Group {
  int lane;       // of the thread in its group
  int width;      // power of two
  unsigned mask;  // of the group's threads in their warp
};

__device__ inline Group group_of(int lanes) {
  const int width = lanes < kWarpWidth ? lanes : kWarpWidth;
  const int thread = static_cast<int>(threadIdx.x) % kWarpWidth;
  const int lane = thread & (width - 1);
  const unsigned members = width == kWarpWidth ? 0xffffffffU : (1U << width) - 1U;
  return {lane, width, members << (thread - lane)};
}
// Groups in a block, and the number of the thread's own in it.
__device__ inline int group_number(const Group& group) {
  return static_cast<int>(threadIdx.x) / group.width;
}

// Partial sums, as in reduction_plan.h.
struct PlainState {
  float sum = 0.0F;
  __device__ void add_product(float x, float w) { sum = __fmaf_rn(x, w, sum); }
  __device__ void join(const PlainState& other) { sum = __fadd_rn(sum, other.sum); }
  __device__ void round_to(Dtype dtype) { sum = exact::rounded(dtype, sum); }
  [[nodiscard]] __device__ float result() const { return sum; }
  [[nodiscard]] __device__ PlainState from_xor(const Group& g, int distance) const {
    return {__shfl_xor_sync(g.mask, sum, distance, g.width)};
  }
  [[nodiscard]] __device__ PlainState from(const Group& g, int lane) const {
    return {__shfl_sync(g.mask, sum, lane, g.width)};
  }
};

struct WideState {
  double sum = 0.0;
  __device__ void add_product(float x, float w) {
    sum = __fma_rn(static_cast<double>(x), static_cast<double>(w), sum);
  }
  __device__ void add_term(double term) { sum = __dadd_rn(sum, term); }
  __device__ void join(const WideState& other) { sum = __dadd_rn(sum, other.sum); }
  __device__ void round_to(Dtype) {}
  [[nodiscard]] __device__ float result() const { return static_cast<float>(sum); }
  [[nodiscard]] __device__ WideState from_xor(const Group& g, int distance) const {
    return {__shfl_xor_sync(g.mask, sum, distance, g.width)};
  }
  [[nodiscard]] __device__ WideState from(const Group& g, int lane) const {
    return {__shfl_sync(g.mask, sum, lane, g.width)};
  }
};

struct KahanState {
  float sum = 0.0F;
  float compensation = 0.0F;
  __device__ void add_term(float y) {
    const float t = __fadd_rn(sum, y);
    compensation = __fsub_rn(__fsub_rn(t, sum), y);
    sum = t;
  }
  __device__ void add_product(float x, float w) { add_term(__fmaf_rn(x, w, -compensation)); }
  __device__ void join(const KahanState& other) {
    add_term(__fsub_rn(other.sum, __fadd_rn(compensation, other.compensation)));
  }
  __device__ void round_to(Dtype) {}
  [[nodiscard]] __device__ float result() const { return __fsub_rn(sum, compensation); }
  [[nodiscard]] __device__ KahanState from_xor(const Group& g, int distance) const {
    return {__shfl_xor_sync(g.mask, sum, distance, g.width),
            __shfl_xor_sync(g.mask, compensation, distance, g.width)};
  }
  [[nodiscard]] __device__ KahanState from(const Group& g, int lane) const {
    return {__shfl_sync(g.mask, sum, lane, g.width),
            __shfl_sync(g.mask, compensation, lane, g.width)};
  }
};

__device__ inline Dtype accumulator_rounding(Accumulator accumulator) {
  if (accumulator == Accumulator::bf16) return Dtype::bf16;
  return accumulator == Accumulator::f16 ? Dtype::f16 : Dtype::f32;
}

// Step 3. states: [slots], lanes s · 32 + lane of the group. The first lane's result counts.
template <class State>
__device__ State join_lanes(LaneCombine combine, State* states, int slots, const Group& group) {
  if (combine == LaneCombine::butterfly) {
    for (int distance = slots / 2; distance >= 1; distance /= 2) {
      for (int s = 0; s < distance; ++s) states[s].join(states[s + distance]);
    }
    State sum = states[0];
    for (int distance = group.width / 2; distance >= 1; distance /= 2) {
      sum.join(sum.from_xor(group, distance));
    }
    return sum;
  }
  State sum = states[0].from(group, 0);
  for (int s = 0; s < slots; ++s) {
    for (int lane = s == 0 ? 1 : 0; lane < group.width; ++lane) {
      sum.join(states[s].from(group, lane));
    }
  }
  return sum;
}

// Steps 2 and 3 of one chunk. terms(state, i, inside) adds term i, or a padding one. Up to 32 lanes
// stay in registers; more of them in local memory, so that there is no code for each number.
template <class State, class Terms>
__device__ State sum_chunk(const DevicePlan& plan, std::int64_t begin, std::int64_t length,
                           const Terms& terms, const Group& group) {
  if (plan.lanes <= kWarpWidth) {
    State state{};
    for (std::int64_t step = 0; step < length; step += plan.lanes) {
      const std::int64_t i = step + group.lane;
      terms(state, begin + i, i < length);
    }
    return join_lanes(plan.lane_combine, &state, 1, group);
  }
  constexpr int kMostSlots = 1024 / kWarpWidth;
  const int slots = plan.lanes / kWarpWidth;
  State states[kMostSlots] = {};
  for (std::int64_t step = 0; step < length; step += plan.lanes) {
    for (int s = 0; s < slots; ++s) {
      const std::int64_t i = step + s * kWarpWidth + group.lane;
      terms(states[s], begin + i, i < length);
    }
  }
  return join_lanes(plan.lane_combine, states, slots, group);
}

template <class State, class Terms>
DRIFTSCOPE_NOINLINE __device__ State sum_chunk_number(const DevicePlan& plan, std::int64_t k,
                                                      std::int64_t chunk, const Terms& terms,
                                                      const Group& group) {
  const std::int64_t length = (k + plan.split_k - 1) / plan.split_k;
  const std::int64_t begin = chunk * length;
  if (begin >= k) return State{};  // an empty chunk is +0
  const std::int64_t left = k - begin;
  State sum = sum_chunk<State>(plan, begin, left < length ? left : length, terms, group);
  sum.round_to(accumulator_rounding(plan.accumulator));
  return sum;
}

// Step 4 as a tree without an array of chunks: after chunk i, level n holds a sum of 2^n chunks
// where bit n of i + 1 is set, as in a binary counter.
template <class State, class ChunkSum>
DRIFTSCOPE_NOINLINE __device__ State join_tree(const DevicePlan& plan, const ChunkSum& chunk_sum) {
  constexpr int kLevels = 11;  // 1024 chunks
  const Dtype rounding = accumulator_rounding(plan.accumulator);
  State levels[kLevels] = {};
  for (int chunk = 0; chunk < plan.split_k; ++chunk) {
    State sum = chunk_sum(chunk);
    int level = 0;
    for (; (chunk >> level & 1) != 0; ++level) {
      levels[level].join(sum);
      sum = levels[level];
      sum.round_to(rounding);
    }
    levels[level] = sum;
  }
  State total{};
  bool any = false;
  for (int level = 0; level < kLevels; ++level) {
    if ((plan.split_k >> level & 1) == 0) continue;
    if (any) {
      levels[level].join(total);
      levels[level].round_to(rounding);
    }
    total = levels[level];
    any = true;
  }
  return total;
}

template <class State, class ChunkSum>
__device__ State join_chunks(const DevicePlan& plan, const ChunkSum& chunk_sum) {
  if (plan.split_combine == SplitCombine::tree) return join_tree<State>(plan, chunk_sum);
  const Dtype rounding = accumulator_rounding(plan.accumulator);
  const bool listed = plan.split_combine == SplitCombine::arrival && plan.split_k > 1;
  const Global<const int> order(plan.order);
  State total = chunk_sum(listed ? order[0] : 0);
  for (int i = 1; i < plan.split_k; ++i) {
    total.join(chunk_sum(listed ? order[i] : i));
    total.round_to(rounding);
  }
  return total;
}

// All threads of the group call it; the first one's result counts.
template <class State, class Terms>
__device__ State reduce(const DevicePlan& plan, std::int64_t k, const Terms& terms,
                        const Group& group) {
  return join_chunks<State>(plan, [&](std::int64_t chunk) {
    return sum_chunk_number<State>(plan, k, chunk, terms, group);
  });
}

// Terms x[i] · w[i] of two arrays, or x[i] · 1 where w is null.
struct ProductTerms {
  Global<const float> x;
  Global<const void> w;
  Dtype w_dtype;
  template <class State>
  __device__ void operator()(State& state, std::int64_t i, bool inside) const {
    if (w == nullptr) {
      state.add_product(inside ? x[i] : 0.0F, inside ? 1.0F : 0.0F);
    } else {
      state.add_product(inside ? x[i] : 0.0F, inside ? load(w, w_dtype, i) : 0.0F);
    }
  }
};

// The sum of any terms; every thread of the group gets the result.
template <class Terms>
__device__ float reduce_terms(const DevicePlan& plan, std::int64_t k, const Terms& terms,
                              const Group& group) {
  float sum = 0.0F;
  if (plan.accumulator == Accumulator::f64) {
    sum = reduce<WideState>(plan, k, terms, group).result();
  } else if (plan.accumulator == Accumulator::kahan) {
    sum = reduce<KahanState>(plan, k, terms, group).result();
  } else {
    sum = reduce<PlainState>(plan, k, terms, group).result();
  }
  return exact::with_canonical_nan(__shfl_sync(group.mask, sum, 0, group.width));
}

// reduce_dot()
__device__ inline float reduce_products(const DevicePlan& plan, std::int64_t k,
                                        const ProductTerms& terms, const Group& group) {
  return reduce_terms(plan, k, terms, group);
}

}  // namespace driftscope::cuda
