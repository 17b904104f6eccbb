// SPDX-License-Identifier: Apache-2.0
// The order of every floating-point sum, stated as data.
//
// A sum over an axis of length K under a plan:
//  1. K is cut into S = split_k contiguous chunks of C = ceil(K / S) elements; the last may
//     be shorter and trailing ones empty. An empty chunk is +0.
//  2. Inside a chunk, element k (counted from the chunk's start) belongs to lane k mod L.
//     The chunk is padded to a multiple of L with terms +0 * +0. Each lane starts at +0 and
//     adds its terms in rising k, one fused multiply-add each.
//  3. The L lanes are combined: `butterfly` adds lane i + d to lane i for d = L/2, L/4 … 1;
//     `sequential` adds lane 1, 2, 3 … to lane 0.
//  4. The S chunk sums are combined: `sequential` in rising order; `tree` adds chunk i + d
//     to chunk i for d = 1, 2, 4 … (i a multiple of 2d, i + d < S); `arrival` is sequential
//     in the order of a seeded permutation (arrival_order()).
// The accumulator says in what the lanes and combinations are held: f32; f64 (products and
// sums in f64, rounded once to f32 at the end); kahan (each lane and each combination keeps
// a compensation term, f32); bf16 or f16 (f32 inside a chunk; each chunk sum and each
// partial result of step 4 rounded to that type).
// Kahan in full: a state is (s, c), at first (+0, +0), and stands for s - c. Adding x·w:
// y = fma(x, w, -c); t = s + y; c = (t - s) - y; s = t. Combining (s, c) with (s', c'):
// y = s' - (c + c'); then as above. The result is s - c, once, after step 4.
// A NaN result is always the quiet NaN 0x7fc00000, so that its bits do not depend on operand order.
// No chunk and no lane depends on the number of threads, rows or the vector width.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace driftscope {

enum class LaneCombine : std::uint8_t { butterfly, sequential };
enum class SplitCombine : std::uint8_t { sequential, tree, arrival };
enum class Accumulator : std::uint8_t { f32, f64, kahan, bf16, f16 };

// What a kernel variant promises (the words of CCCL).
enum class Determinism : std::uint8_t {
  not_guaranteed,
  run_to_run,
  batch_invariant,
  device_to_device
};

struct ReductionPlan {
  int lanes = 32;   // power of two, 1 … 1024
  int split_k = 1;  // 1 … 1024
  LaneCombine lane_combine = LaneCombine::butterfly;
  SplitCombine split_combine = SplitCombine::sequential;
  Accumulator accumulator = Accumulator::f32;
  std::uint64_t arrival_seed = 0;  // used by SplitCombine::arrival only
  friend bool operator==(const ReductionPlan&, const ReductionPlan&) = default;
};

[[nodiscard]] std::string_view name_of(LaneCombine value);
[[nodiscard]] std::string_view name_of(SplitCombine value);
[[nodiscard]] std::string_view name_of(Accumulator value);
[[nodiscard]] std::string_view name_of(Determinism value);
[[nodiscard]] std::optional<LaneCombine> lane_combine_from_name(std::string_view name);
[[nodiscard]] std::optional<SplitCombine> split_combine_from_name(std::string_view name);
[[nodiscard]] std::optional<Accumulator> accumulator_from_name(std::string_view name);

// "lanes=32 split_k=4 butterfly sequential f32"
[[nodiscard]] std::string to_string(const ReductionPlan& plan);

// A permutation of 0 … count-1, a function of the seed alone (Fisher-Yates over splitmix64).
[[nodiscard]] std::vector<int> arrival_order(std::uint64_t seed, int count);

// The scalar definition of a dot product under a plan: the oracle of every variant.
// x, w: [k]; returns the sum in f32.
[[nodiscard]] float reduce_dot(const ReductionPlan& plan, const float* x, const float* w,
                               std::int64_t k);
// The same for a plain sum (each term is fused as fma(x, 1, lane)).
[[nodiscard]] float reduce_sum(const ReductionPlan& plan, const float* x, std::int64_t k);

// Pieces for variants that hold their lanes in registers. For f32, bf16 and f16 accumulators.
// Elements of one chunk but the last: ceil(k / split_k).
[[nodiscard]] constexpr std::int64_t chunk_length(const ReductionPlan& plan, std::int64_t k) {
  return (k + plan.split_k - 1) / plan.split_k;
}
// Step 3. lanes: [count], count a power of two; overwritten.
[[nodiscard]] float combine_lanes(LaneCombine combine, float* lanes, int count);
// Step 4, with the accumulator's rounding. sums: [split_k]; overwritten. A NaN comes out canonical.
// order: arrival_order(plan.arrival_seed, plan.split_k) where split_combine is arrival, else
// unused.
[[nodiscard]] float combine_chunks(const ReductionPlan& plan, float* sums, const int* order);
[[nodiscard]] constexpr float canonical_nan(float value) {
  return value == value ? value : __builtin_bit_cast(float, 0x7fc00000U);
}

}  // namespace driftscope
