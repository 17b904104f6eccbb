// SPDX-License-Identifier: Apache-2.0
// The scalar definition, one query and one head at a time: the oracle of the other variants.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/attention/attention_task.h"
#include "kernels/plan/portable_math.h"
#include "kernels/plan/soft_cap.h"
#include "kernels/quant/kv_codec.h"
#include "kernels/softmax/softmax.h"

namespace driftscope {
namespace {

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

// One query of one head, and where its keys and values lie.
struct Query {
  const AttentionArguments& arguments;
  const AttentionTask& task;
  const float* q;         // [head_dim]
  std::int64_t position;  // in the sequence
  float* y;               // [head_dim]
  std::int64_t head;      // of the queries
};

std::vector<float> read_head(const Query& query, const CacheSide& side, std::int64_t key) {
  const AttentionArguments& arguments = query.arguments;
  std::vector<float> values(to_size(arguments.head_dim));
  const CacheHead head = cache_head(arguments, side, key, query.task.kv_head);
  kv_widen(arguments.kv_dtype, head.data, head.scale, values.data(), arguments.head_dim);
  return values;
}

std::vector<float> scores(const Query& query, KeyRange keys) {
  const AttentionArguments& arguments = query.arguments;
  const Dtype dtype = score_rounding(arguments);
  std::vector<float> result;
  for (std::int64_t key = keys.begin; key < keys.end; ++key) {
    const std::vector<float> k = read_head(query, keys_of(*query.task.sequence), key);
    const float dot = reduce_dot(arguments.score_plan, query.q, k.data(), arguments.head_dim);
    const float score = round_to(dtype, round_to(dtype, dot) * arguments.scale);
    const float cap = arguments.softcap;
    result.push_back(cap > 0.0F ? soft_capped(score, cap, dtype, dtype) : score);
  }
  return result;
}

void add_weighted_value(const Query& query, std::int64_t key, float weight,
                        std::vector<float>& sum) {
  const std::vector<float> v = read_head(query, values_of(*query.task.sequence), key);
  for (std::size_t i = 0; i < v.size(); ++i) sum[i] = std::fma(weight, v[i], sum[i]);
}

void eager(const Query& query) {
  const AttentionArguments& arguments = query.arguments;
  const KeyRange keys = visible_keys(arguments, query.position);
  std::vector<float> row = scores(query, keys);
  if (arguments.sinks != nullptr) {
    row.push_back(0.0F);
    append_sink(arguments, query.head, row.data(), keys.end - keys.begin);
  }
  softmax_row(row.data(), row.data(), static_cast<std::int64_t>(row.size()), arguments.sum_plan,
              arguments.softmax_dtype, arguments.probability_dtype, Isa::scalar);
  std::vector<float> sum(to_size(arguments.head_dim), 0.0F);
  for (std::int64_t key = keys.begin; key < keys.end; ++key) {
    add_weighted_value(query, key, row[to_size(key - keys.begin)], sum);
  }
  for (std::size_t i = 0; i < sum.size(); ++i)
    query.y[i] = canonical_nan(round_to(arguments.output_dtype, sum[i]));
}

// What a tile or split leaves behind. Real: float, or double for softmax_dtype f64.
template <class Real>
struct State {
  bool empty = true;
  float max = -std::numeric_limits<float>::infinity();
  Real denominator = 0;
  std::vector<float> sum;
};

template <class Real>
Real softmax_round(const Query& query, Real value) {
  if constexpr (std::is_same_v<Real, double>)
    return value;
  else
    return round_to(query.arguments.softmax_dtype, value);
}

template <class Real>
void add_tile(const Query& query, KeyRange tile, State<Real>& state) {
  const KeyRange visible = visible_keys(query.arguments, query.position);
  const KeyRange keys = intersect(tile, visible);
  if (keys.empty()) return;
  const std::vector<float> s = scores(query, keys);
  float max = state.max;
  for (const float score : s) max = max < score ? score : max;
  if (state.empty) {
    state.sum.assign(to_size(query.arguments.head_dim), 0.0F);
  } else if (max != state.max) {
    const Real factor = softmax_round(query, portable::exp(Real{state.max} - Real{max}));
    state.denominator *= factor;
    for (float& value : state.sum) value *= static_cast<float>(factor);
  }
  state.empty = false;
  state.max = max;
  for (std::int64_t key = keys.begin; key < keys.end; ++key) {
    const Real e =
        softmax_round(query, portable::exp(Real{s[to_size(key - keys.begin)]} - Real{max}));
    state.denominator += e;
    add_weighted_value(query, key, static_cast<float>(e), state.sum);
  }
  state.denominator = softmax_round(query, state.denominator);
}

template <class Real>
void merge(const Query& query, State<Real>& into, const State<Real>& from) {
  if (from.empty) return;
  if (into.empty) {
    into = from;
    return;
  }
  const float max = into.max < from.max ? from.max : into.max;
  const Real f1 = softmax_round(query, portable::exp(Real{into.max} - Real{max}));
  const Real f2 = softmax_round(query, portable::exp(Real{from.max} - Real{max}));
  into.max = max;
  into.denominator = softmax_round(query, std::fma(from.denominator, f2, into.denominator * f1));
  for (std::size_t i = 0; i < into.sum.size(); ++i) {
    into.sum[i] =
        std::fma(from.sum[i], static_cast<float>(f2), into.sum[i] * static_cast<float>(f1));
  }
}

template <class Real>
State<Real> merge_splits(const Query& query, std::vector<State<Real>>& splits) {
  if (query.arguments.split_combine == SplitCombine::tree) {
    for (std::size_t distance = 1; distance < splits.size(); distance *= 2) {
      for (std::size_t i = 0; i + distance < splits.size(); i += 2 * distance) {
        merge(query, splits[i], splits[i + distance]);
      }
    }
    return splits[0];
  }
  std::vector<int> order(splits.size());
  merge_order(query.arguments, static_cast<std::int64_t>(splits.size()), order.data());
  State<Real> total;
  for (const int split : order) merge(query, total, splits[static_cast<std::size_t>(split)]);
  return total;
}

template <class Real>
void online(const Query& query) {
  const AttentionArguments& arguments = query.arguments;
  const Segmentation cut = segmentation(arguments, *query.task.sequence, query.position);
  const bool flash = arguments.kind == AttentionKind::flash;
  std::vector<State<Real>> states(flash ? 1 : to_size(cut.count));
  for (std::int64_t i = 0; i < cut.count; ++i) {
    add_tile(query, {i * cut.size, (i + 1) * cut.size}, states[flash ? 0 : to_size(i)]);
  }
  State<Real> total = merge_splits(query, states);
  if (arguments.sinks != nullptr) {
    merge(query, total,
          State<Real>{.empty = false,
                      .max = arguments.sinks[query.head],
                      .denominator = 1,
                      .sum = std::vector<float>(to_size(arguments.head_dim), 0.0F)});
  }
  for (std::size_t i = 0; i < total.sum.size(); ++i) {
    const auto quotient = static_cast<float>(Real{total.sum[i]} / total.denominator);
    query.y[i] = canonical_nan(round_to(arguments.output_dtype, quotient));
  }
}

}  // namespace

void attention_task_scalar(const AttentionArguments& arguments, const AttentionTask& task) {
  const AttentionSequence& sequence = *task.sequence;
  for (std::int64_t row = task.row_begin; row < task.row_end; ++row) {
    for (std::int64_t head = task.head_begin; head < task.head_end; ++head) {
      const Query query{.arguments = arguments,
                        .task = task,
                        .q = sequence.q + row * sequence.q_stride + head * arguments.head_dim,
                        .position = sequence.first_position + row,
                        .y = sequence.y + (row * arguments.heads + head) * arguments.head_dim,
                        .head = head};
      if (arguments.kind == AttentionKind::eager) {
        eager(query);
      } else if (arguments.softmax_dtype == Dtype::f64) {
        online<double>(query);
      } else {
        online<float>(query);
      }
    }
  }
}

}  // namespace driftscope
