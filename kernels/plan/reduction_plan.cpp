// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan/reduction_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

#include "kernels/plan/dtype.h"

namespace driftscope {

namespace {

template <class Enum, std::size_t N>
std::optional<Enum> find_name(const std::array<Enum, N>& values, std::string_view name) {
  for (const Enum value : values) {
    if (name_of(value) == name) return value;
  }
  return std::nullopt;
}

// How each accumulator adds a term, joins two partial sums, ends a chunk and ends the whole.
struct PlainF32 {
  struct State {
    float sum = 0.0F;
  };
  Dtype rounding = Dtype::f32;  // of chunk sums and their combinations
  static void add_product(State& state, float x, float w) { state.sum = std::fma(x, w, state.sum); }
  static void join(State& into, const State& from) { into.sum += from.sum; }
  void end_chunk(State& state) const { state.sum = round_to(rounding, state.sum); }
  static float result(const State& state) { return state.sum; }
};

struct WideF64 {
  struct State {
    double sum = 0.0;
  };
  static void add_product(State& state, float x, float w) {
    state.sum = std::fma(static_cast<double>(x), static_cast<double>(w), state.sum);
  }
  static void join(State& into, const State& from) { into.sum += from.sum; }
  static void end_chunk(State&) {}
  static float result(const State& state) { return static_cast<float>(state.sum); }
};

struct Kahan {
  struct State {
    float sum = 0.0F;
    float compensation = 0.0F;
  };
  static void add_term(State& state, float y) {
    const float t = state.sum + y;
    state.compensation = (t - state.sum) - y;
    state.sum = t;
  }
  static void add_product(State& state, float x, float w) {
    add_term(state, std::fma(x, w, -state.compensation));
  }
  static void join(State& into, const State& from) {
    add_term(into, from.sum - (into.compensation + from.compensation));
  }
  static void end_chunk(State&) {}
  static float result(const State& state) { return state.sum - state.compensation; }
};

// Step 3 on any state: the result is left in states[0].
template <class State, class Join>
void join_lanes(LaneCombine combine, State* states, int count, Join join) {
  switch (combine) {
    case LaneCombine::butterfly:
      for (int d = count / 2; d >= 1; d /= 2) {
        for (int i = 0; i < d; ++i) join(states[i], states[i + d]);
      }
      return;
    case LaneCombine::sequential:
      for (int i = 1; i < count; ++i) join(states[0], states[i]);
      return;
  }
}

// Step 4 on any state; returns the combined one.
template <class State, class Join>
State join_chunks(const ReductionPlan& plan, State* states, const int* order, Join join) {
  const int count = plan.split_k;
  switch (plan.split_combine) {
    case SplitCombine::sequential:
      for (int i = 1; i < count; ++i) join(states[0], states[i]);
      return states[0];
    case SplitCombine::tree:
      for (int d = 1; d < count; d *= 2) {
        for (int i = 0; i + d < count; i += 2 * d) join(states[i], states[i + d]);
      }
      return states[0];
    case SplitCombine::arrival: {
      State sum = states[order[0]];
      for (int i = 1; i < count; ++i) join(sum, states[order[i]]);
      return sum;
    }
  }
  return states[0];
}

template <class Accumulate, class Term>
float reduce(const ReductionPlan& plan, const Accumulate& accumulate, std::int64_t k, Term term) {
  using State = typename Accumulate::State;
  assert(plan.lanes >= 1 && (plan.lanes & (plan.lanes - 1)) == 0 && plan.split_k >= 1);
  const auto lanes = static_cast<std::size_t>(plan.lanes);
  const std::int64_t length = chunk_length(plan, k);
  std::vector<State> chunks(static_cast<std::size_t>(plan.split_k));
  std::vector<State> states(lanes);
  const auto join = [&](State& into, const State& from) { accumulate.join(into, from); };
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    const std::int64_t begin = std::min(k, static_cast<std::int64_t>(chunk) * length);
    const std::int64_t end = std::min(k, begin + length);
    if (begin == end) continue;  // an empty chunk is +0
    std::fill(states.begin(), states.end(), State{});
    const auto count = static_cast<std::size_t>(end - begin);
    const std::size_t padded = (count + lanes - 1) / lanes * lanes;
    for (std::size_t i = 0; i < padded; ++i) {
      const auto [x, w] = i < count ? term(begin + static_cast<std::int64_t>(i))
                                    : std::pair<float, float>{0.0F, 0.0F};
      accumulate.add_product(states[i % lanes], x, w);
    }
    join_lanes(plan.lane_combine, states.data(), plan.lanes, join);
    accumulate.end_chunk(states[0]);
    chunks[chunk] = states[0];
  }
  std::vector<int> order;
  if (plan.split_combine == SplitCombine::arrival) {
    order = arrival_order(plan.arrival_seed, plan.split_k);
  }
  const auto join_rounded = [&](State& into, const State& from) {
    accumulate.join(into, from);
    accumulate.end_chunk(into);
  };
  const State sum = join_chunks(plan, chunks.data(), order.data(), join_rounded);
  return canonical_nan(accumulate.result(sum));
}

template <class Term>
float reduce_terms(const ReductionPlan& plan, std::int64_t k, Term term) {
  switch (plan.accumulator) {
    case Accumulator::f32:
      return reduce(plan, PlainF32{}, k, term);
    case Accumulator::bf16:
      return reduce(plan, PlainF32{.rounding = Dtype::bf16}, k, term);
    case Accumulator::f16:
      return reduce(plan, PlainF32{.rounding = Dtype::f16}, k, term);
    case Accumulator::f64:
      return reduce(plan, WideF64{}, k, term);
    case Accumulator::kahan:
      return reduce(plan, Kahan{}, k, term);
  }
  return 0.0F;
}

Dtype rounding_of(Accumulator accumulator) {
  switch (accumulator) {
    case Accumulator::bf16:
      return Dtype::bf16;
    case Accumulator::f16:
      return Dtype::f16;
    case Accumulator::f32:
    case Accumulator::f64:
    case Accumulator::kahan:
      return Dtype::f32;
  }
  return Dtype::f32;
}

}  // namespace

std::string_view name_of(LaneCombine value) {
  switch (value) {
    case LaneCombine::butterfly:
      return "butterfly";
    case LaneCombine::sequential:
      return "sequential";
  }
  return "unknown";
}

std::string_view name_of(SplitCombine value) {
  switch (value) {
    case SplitCombine::sequential:
      return "sequential";
    case SplitCombine::tree:
      return "tree";
    case SplitCombine::arrival:
      return "arrival";
  }
  return "unknown";
}

std::string_view name_of(Accumulator value) {
  switch (value) {
    case Accumulator::f32:
      return "f32";
    case Accumulator::f64:
      return "f64";
    case Accumulator::kahan:
      return "kahan";
    case Accumulator::bf16:
      return "bf16";
    case Accumulator::f16:
      return "f16";
  }
  return "unknown";
}

std::string_view name_of(Determinism value) {
  switch (value) {
    case Determinism::not_guaranteed:
      return "not_guaranteed";
    case Determinism::run_to_run:
      return "run_to_run";
    case Determinism::batch_invariant:
      return "batch_invariant";
    case Determinism::device_to_device:
      return "device_to_device";
  }
  return "unknown";
}

std::optional<LaneCombine> lane_combine_from_name(std::string_view name) {
  return find_name(std::array{LaneCombine::butterfly, LaneCombine::sequential}, name);
}

std::optional<SplitCombine> split_combine_from_name(std::string_view name) {
  return find_name(std::array{SplitCombine::sequential, SplitCombine::tree, SplitCombine::arrival},
                   name);
}

std::optional<Accumulator> accumulator_from_name(std::string_view name) {
  return find_name(std::array{Accumulator::f32, Accumulator::f64, Accumulator::kahan,
                              Accumulator::bf16, Accumulator::f16},
                   name);
}

std::string to_string(const ReductionPlan& plan) {
  std::string text = fmt::format("lanes={} split_k={} {} {} {}", plan.lanes, plan.split_k,
                                 name_of(plan.lane_combine), name_of(plan.split_combine),
                                 name_of(plan.accumulator));
  if (plan.split_combine == SplitCombine::arrival) {
    text += fmt::format(" seed={}", plan.arrival_seed);
  }
  return text;
}

std::vector<int> arrival_order(std::uint64_t seed, int count) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::uint64_t state = seed;
  for (std::size_t i = order.size(); i > 1; --i) {
    state += 0x9e3779b97f4a7c15U;  // splitmix64 (Steele, Lea, Flood 2014)
    std::uint64_t z = state;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    z ^= z >> 31U;
    std::swap(order[i - 1], order[z % i]);
  }
  return order;
}

float reduce_dot(const ReductionPlan& plan, const float* x, const float* w, std::int64_t k) {
  return reduce_terms(plan, k, [=](std::int64_t i) { return std::pair{x[i], w[i]}; });
}

float reduce_sum(const ReductionPlan& plan, const float* x, std::int64_t k) {
  return reduce_terms(plan, k, [=](std::int64_t i) { return std::pair{x[i], 1.0F}; });
}

float combine_lanes(LaneCombine combine, float* lanes, int count) {
  join_lanes(combine, lanes, count, [](float& into, float from) { into += from; });
  return lanes[0];
}

float combine_chunks(const ReductionPlan& plan, float* sums, const int* order) {
  const Dtype rounding = rounding_of(plan.accumulator);
  round_span(rounding, sums, static_cast<std::size_t>(plan.split_k));
  return canonical_nan(join_chunks(
      plan, sums, order, [=](float& into, float from) { into = round_to(rounding, into + from); }));
}

}  // namespace driftscope
