// SPDX-License-Identifier: Apache-2.0
// The softmax of BlockedTask: from scores to weights, states merged, the result written.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "kernels/attention/attention_blocked.h"
#include "kernels/plan/portable_math.h"
#include "kernels/softmax/softmax.h"

namespace driftscope {
namespace {

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

// Turns the scores of one query into weights of its values, and rescales what it has so far.
void BlockedTask::soften(std::int64_t query, KeyRange segment, const State& state) {
  const KeyRange keys = intersect(segment, visible(query));
  const std::int64_t count = keys.end - keys.begin;
  float* row = scores(query, keys.begin, segment);
  const Dtype dtype = m_arguments.softmax_dtype;
  if (m_arguments.kind == AttentionKind::eager) {
    const bool sink = m_arguments.sinks != nullptr;
    if (sink) append_sink(m_arguments, head(query), row, count);
    softmax_row(row, row, count + (sink ? 1 : 0), m_arguments.sum_plan, dtype,
                m_arguments.probability_dtype, m_isa);
    std::fill(state.sum, state.sum + m_columns, 0.0F);
    *state.filled = 1;
    return;
  }
  const bool first = *state.filled == 0;
  const float old_max = first ? -std::numeric_limits<float>::infinity() : *state.max;
  const float tile_max = m_vector.row_max(row, count);
  const float max = old_max < tile_max ? tile_max : old_max;
  double factor = 1.0;
  if (first) {
    std::fill(state.sum, state.sum + m_columns, 0.0F);
    *state.denominator = 0.0;
  } else if (max != old_max) {
    factor = dtype == Dtype::f64 ? portable::exp(double{old_max} - double{max})
                                 : double{round_to(dtype, portable::exp(old_max - max))};
    m_vector.scale_row(state.sum, m_columns, static_cast<float>(factor));
  }
  *state.filled = 1;
  *state.max = max;
  if (dtype == Dtype::f64) {
    soften_f64(row, count, max, factor, state);
  } else {
    m_vector.row_exp(row, count, max, dtype);
  }
}

void BlockedTask::soften_f64(float* row, std::int64_t count, float max, double factor,
                             const State& state) {
  double denominator = *state.denominator * factor;
  for (std::int64_t i = 0; i < count; ++i) {
    const double e = portable::exp(double{row[i]} - double{max});
    denominator += e;
    row[i] = static_cast<float>(e);
  }
  *state.denominator = denominator;
}

void BlockedTask::merge(const State& into, const State& from) {
  if (*from.filled == 0) return;
  if (*into.filled == 0) {
    std::copy(from.sum, from.sum + m_columns, into.sum);
    *into.max = *from.max;
    *into.denominator = *from.denominator;
    *into.filled = 1;
    return;
  }
  const Dtype dtype = m_arguments.softmax_dtype;
  const float max = *into.max < *from.max ? *from.max : *into.max;
  double f1 = 0.0;
  double f2 = 0.0;
  if (dtype == Dtype::f64) {
    f1 = portable::exp(double{*into.max} - double{max});
    f2 = portable::exp(double{*from.max} - double{max});
    *into.denominator = std::fma(*from.denominator, f2, *into.denominator * f1);
  } else {
    f1 = double{round_to(dtype, portable::exp(*into.max - max))};
    f2 = double{round_to(dtype, portable::exp(*from.max - max))};
  }
  m_vector.merge_rows(into.sum, static_cast<float>(f1), from.sum, static_cast<float>(f2),
                      m_columns);
  float& denominator = into.sum[m_columns - m_vector.width];
  if (dtype != Dtype::f64) denominator = round_to(dtype, denominator);
  *into.max = max;
}

// The orders that need every split at hand; the result is left in state 0.
void BlockedTask::merge_splits(std::int64_t query) {
  const std::int64_t count = segmentation(m_arguments, *m_task.sequence, position(query)).count;
  if (m_arguments.split_combine == SplitCombine::tree) {
    for (std::int64_t d = 1; d < count; d *= 2) {
      for (std::int64_t i = 0; i + d < count; i += 2 * d) {
        merge(state(i, query), state(i + d, query));
      }
    }
    return;
  }
  m_work.merge_order.resize(to_size(count));
  merge_order(m_arguments, count, m_work.merge_order.data());
  const std::int64_t total = m_work.merge_order[0];
  for (std::size_t i = 1; i < to_size(count); ++i) {
    merge(state(total, query), state(m_work.merge_order[i], query));
  }
  if (total != 0) {
    *state(0, query).filled = 0;
    merge(state(0, query), state(total, query));
  }
}

// As a split whose values are zeros; its denominator, 1, stands in the last columns.
void BlockedTask::merge_sink(std::int64_t query) {
  const State sink = state(0, m_state_count * m_queries);
  std::fill(sink.sum, sink.sum + m_columns - m_vector.width, 0.0F);
  std::fill(sink.sum + m_columns - m_vector.width, sink.sum + m_columns, 1.0F);
  *sink.max = m_arguments.sinks[head(query)];
  *sink.denominator = 1.0;
  *sink.filled = 1;
  merge(state(0, query), sink);
}

void BlockedTask::finish(std::int64_t query) {
  const State result = state(0, query);
  if (m_arguments.sinks != nullptr && m_arguments.kind != AttentionKind::eager) merge_sink(query);
  assert(*result.filled != 0);  // a query sees itself at least
  const std::int64_t row = m_task.row_begin + query / m_heads;
  float* y = m_task.sequence->y + (row * m_arguments.heads + head(query)) * m_arguments.head_dim;
  const Dtype dtype = m_arguments.output_dtype;
  if (m_arguments.kind != AttentionKind::eager && m_arguments.softmax_dtype == Dtype::f64) {
    for (std::int64_t i = 0; i < m_arguments.head_dim; ++i) {
      const auto quotient = static_cast<float>(double{result.sum[i]} / *result.denominator);
      y[i] = canonical_nan(round_to(dtype, quotient));
    }
    return;
  }
  const float denominator =
      m_arguments.kind == AttentionKind::eager ? 1.0F : result.sum[m_columns - m_vector.width];
  m_vector.finish_row(result.sum, denominator, y, m_arguments.head_dim, dtype);
}

}  // namespace driftscope
