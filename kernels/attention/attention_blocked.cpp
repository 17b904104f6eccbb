// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention_blocked.h"

#include <algorithm>
#include <cstring>

#include "kernels/quant/kv_codec.h"

namespace driftscope {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}
std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

BlockedTask::BlockedTask(const AttentionArguments& arguments, const AttentionTask& task,
                         const AttentionVector& vector, Isa isa)
    : m_arguments(arguments),
      m_task(task),
      m_vector(vector),
      m_isa(isa),
      m_work(thread_workspace()),
      m_heads(task.head_end - task.head_begin),
      m_queries(m_heads * (task.row_end - task.row_begin)) {
  m_work.visible.resize(to_size(m_queries));
  for (std::int64_t query = 0; query < m_queries; ++query) {
    m_work.visible[to_size(query)] = visible_keys(arguments, position(query));
  }
  m_keys = {visible(0).begin, visible(m_queries - 1).end};
  m_cut = segmentation(arguments, *task.sequence, position(m_queries - 1));
  const bool splits = arguments.kind == AttentionKind::split_kv_count ||
                      arguments.kind == AttentionKind::split_kv_size;
  if (splits) m_state_count = merges_at_once() ? 2 : m_cut.count;
  m_padded_dim = round_up(arguments.head_dim, std::min(arguments.score_plan.lanes, 64));
  m_columns = round_up(arguments.head_dim, vector.width) + vector.width;
  const bool sink_place = arguments.kind == AttentionKind::eager && arguments.sinks != nullptr;
  m_score_stride =
      round_up(std::min(m_cut.size, m_keys.end - m_keys.begin) + (sink_place ? 1 : 0), kKeyChunk);

  prepare_workspace();
  copy_queries();
}

void BlockedTask::prepare_workspace() {
  const ReductionPlan& plan = m_arguments.score_plan;
  float* keys = m_work.keys.resize(to_size(m_padded_dim * kKeyChunk));
  std::fill(keys + m_arguments.head_dim * kKeyChunk, keys + m_padded_dim * kKeyChunk, 0.0F);
  (void)m_work.values.resize(to_size(kKeyChunk * m_columns));
  if (m_task.sequence->block_tokens > 0) {
    const std::size_t bytes = to_size(kKeyChunk * m_arguments.head_dim) * sizeof(float);
    m_work.page_bytes.resize(std::max(m_work.page_bytes.size(), bytes));
    m_work.page_scales.resize(to_size(kKeyChunk));
  }
  (void)m_work.scores.resize(to_size(m_queries * m_score_stride));
  const std::int64_t sink_states = m_arguments.sinks == nullptr ? 0 : 1;
  const std::size_t states = to_size(m_state_count * m_queries + sink_states);
  (void)m_work.sums.resize(states * to_size(m_columns));
  m_work.max.resize(std::max(m_work.max.size(), states));
  m_work.denominator.resize(std::max(m_work.denominator.size(), states));
  m_work.filled.assign(states, 0);
  if (plan.split_combine == SplitCombine::arrival) {
    m_work.plan_order = arrival_order(plan.arrival_seed, plan.split_k);
  }
}

BlockedTask::State BlockedTask::state(std::int64_t index, std::int64_t query) const {
  const std::int64_t at = index * m_queries + query;
  return {.sum = m_work.sums.data() + at * m_columns,
          .max = &m_work.max[to_size(at)],
          .denominator = &m_work.denominator[to_size(at)],
          .filled = &m_work.filled[to_size(at)]};
}

CacheBlock BlockedTask::cache_block(const CacheSide& side, KeyRange keys) const {
  if (side.block_tokens > 0) return gather_pages(side, keys);
  const CacheHead head = cache_head(m_arguments, side, keys.begin, m_task.kv_head);
  return {.data = head.data,
          .dtype = m_arguments.kv_dtype,
          .stride = m_arguments.kv_heads * m_arguments.head_dim,
          .scales = head.scale,
          .scale_stride = m_arguments.kv_heads,
          .count = keys.end - keys.begin,
          .head_dim = m_arguments.head_dim};
}

// Keys of several pages side by side, as they are stored.
CacheBlock BlockedTask::gather_pages(const CacheSide& side, KeyRange keys) const {
  const std::size_t bytes = to_size(m_arguments.head_dim) * dtype_size(m_arguments.kv_dtype);
  char* data = m_work.page_bytes.data();
  float* scales = m_work.page_scales.data();
  for (std::int64_t key = keys.begin; key < keys.end; ++key) {
    const CacheHead head = cache_head(m_arguments, side, key, m_task.kv_head);
    std::memcpy(data + to_size(key - keys.begin) * bytes, head.data, bytes);
    if (head.scale != nullptr) scales[key - keys.begin] = *head.scale;
  }
  return {.data = data,
          .dtype = m_arguments.kv_dtype,
          .stride = m_arguments.head_dim,
          .scales = scales,
          .scale_stride = 1,
          .count = keys.end - keys.begin,
          .head_dim = m_arguments.head_dim};
}

void BlockedTask::copy_queries() {
  float* target = m_work.queries.resize(to_size(m_queries * m_padded_dim));
  const AttentionSequence& sequence = *m_task.sequence;
  for (std::int64_t query = 0; query < m_queries; ++query, target += m_padded_dim) {
    const float* q = sequence.q + (m_task.row_begin + query / m_heads) * sequence.q_stride +
                     (m_task.head_begin + query % m_heads) * m_arguments.head_dim;
    std::copy(q, q + m_arguments.head_dim, target);
    std::fill(target + m_arguments.head_dim, target + m_padded_dim, 0.0F);
  }
}

void BlockedTask::run() {
  const std::int64_t first = m_keys.begin / m_cut.size;
  for (std::int64_t i = first; i * m_cut.size < m_keys.end; ++i) {
    run_segment(i, intersect({i * m_cut.size, (i + 1) * m_cut.size}, m_keys));
  }
  for (std::int64_t query = 0; query < m_queries; ++query) {
    if (m_state_count > 1 && !merges_at_once()) merge_splits(query);
    finish(query);
  }
}

void BlockedTask::run_segment(std::int64_t index, KeyRange segment) {
  std::int64_t target = 0;
  if (m_state_count > 1) target = merges_at_once() ? 1 : index;
  compute_scores(segment);
  for (std::int64_t query = 0; query < m_queries; ++query) {
    const KeyRange keys = intersect(segment, visible(query));
    if (!keys.empty()) soften(query, segment, state(target, query));
  }
  add_values(target, segment);
  const Dtype dtype = m_arguments.softmax_dtype;
  for (std::int64_t query = 0; query < m_queries; ++query) {
    const State current = state(target, query);
    if (*current.filled == 0 || intersect(segment, visible(query)).empty()) continue;
    float& denominator = current.sum[m_columns - m_vector.width];
    if (dtype != Dtype::f64) denominator = round_to(dtype, denominator);
    if (m_state_count > 1 && merges_at_once()) {
      merge(state(0, query), current);
      *current.filled = 0;
    }
  }
}

void BlockedTask::compute_scores(KeyRange segment) {
  const Accumulator accumulator = m_arguments.score_plan.accumulator;
  const bool fallback = accumulator == Accumulator::f64 || accumulator == Accumulator::kahan;
  for (std::int64_t key = segment.begin; key < segment.end; key += kKeyChunk) {
    const KeyRange chunk{key, std::min(key + kKeyChunk, segment.end)};
    std::int64_t first = 0;
    while (first < m_queries && intersect(chunk, visible(first)).empty()) ++first;
    std::int64_t last = m_queries;
    while (last > first && intersect(chunk, visible(last - 1)).empty()) --last;
    if (first == last) continue;
    if (fallback) {
      fallback_scores(chunk, segment, first, last);
      cap_scores(chunk, segment, first, last);
      continue;
    }
    m_vector.transpose_keys(cache_block(keys_of(*m_task.sequence), chunk), m_work.keys.data());
    m_vector.score({.q = m_work.queries.data() + first * m_padded_dim,
                    .keys = m_work.keys.data(),
                    .scores = scores(first, key, segment),
                    .queries = last - first,
                    .head_dim = m_arguments.head_dim,
                    .padded_dim = m_padded_dim,
                    .score_stride = m_score_stride,
                    .plan = &m_arguments.score_plan,
                    .order = m_work.plan_order.data(),
                    .scale = m_arguments.scale,
                    .dtype = score_rounding(m_arguments)});
    cap_scores(chunk, segment, first, last);
  }
}

void BlockedTask::cap_scores(KeyRange chunk, KeyRange segment, std::int64_t first,
                             std::int64_t last) {
  if (!(m_arguments.softcap > 0.0F)) return;
  for (std::int64_t query = first; query < last; ++query) {
    m_vector.cap_row(scores(query, chunk.begin, segment), kKeyChunk, m_arguments.softcap,
                     score_rounding(m_arguments));
  }
}

// Accumulators that have no vector form: the definition, key by key.
void BlockedTask::fallback_scores(KeyRange chunk, KeyRange segment, std::int64_t first,
                                  std::int64_t last) {
  const Dtype dtype = score_rounding(m_arguments);
  for (std::int64_t key = chunk.begin; key < chunk.end; ++key) {
    float* k = m_work.keys.data();
    const CacheHead head = cache_head(m_arguments, keys_of(*m_task.sequence), key, m_task.kv_head);
    kv_widen(m_arguments.kv_dtype, head.data, head.scale, k, m_arguments.head_dim);
    for (std::int64_t query = first; query < last; ++query) {
      const float dot =
          reduce_dot(m_arguments.score_plan, m_work.queries.data() + query * m_padded_dim, k,
                     m_arguments.head_dim);
      *scores(query, key, segment) = round_to(dtype, round_to(dtype, dot) * m_arguments.scale);
    }
  }
}

void BlockedTask::add_values(std::int64_t state_index, KeyRange segment) {
  for (std::int64_t key = segment.begin; key < segment.end; key += kKeyChunk) {
    const KeyRange chunk{key, std::min(key + kKeyChunk, segment.end)};
    m_vector.widen_values(cache_block(values_of(*m_task.sequence), chunk), m_columns,
                          m_work.values.data());
    for (std::int64_t query = 0; query < m_queries; query += kValueQueries) {
      add_chunk(state_index, query, std::min(kValueQueries, m_queries - query), chunk, segment);
    }
  }
}

// Queries that see different keys share those that all of them see; each adds the keys before and
// after on its own, so its keys still rise.
void BlockedTask::add_chunk(std::int64_t state_index, std::int64_t first, std::int64_t count,
                            KeyRange chunk, KeyRange segment) {
  const KeyRange of_first = intersect(chunk, visible(first));
  const KeyRange of_last = intersect(chunk, visible(first + count - 1));
  const KeyRange common = intersect(of_first, of_last);
  if (common.empty()) {
    for (std::int64_t query = first; query < first + count; ++query) {
      add_keys(state_index, query, 1, intersect(chunk, visible(query)), chunk, segment);
    }
    return;
  }
  for (std::int64_t query = first; query < first + count; ++query) {
    const KeyRange own = intersect(chunk, visible(query));
    add_keys(state_index, query, 1, {own.begin, common.begin}, chunk, segment);
  }
  add_keys(state_index, first, count, common, chunk, segment);
  for (std::int64_t query = first; query < first + count; ++query) {
    const KeyRange own = intersect(chunk, visible(query));
    add_keys(state_index, query, 1, {common.end, own.end}, chunk, segment);
  }
}

void BlockedTask::add_keys(std::int64_t state_index, std::int64_t first, std::int64_t count,
                           KeyRange keys, KeyRange chunk, KeyRange segment) {
  if (keys.empty()) return;
  m_vector.add_values({.weights = scores(first, keys.begin, segment),
                       .values = m_work.values.data() + (keys.begin - chunk.begin) * m_columns,
                       .sums = state(state_index, first).sum,
                       .weight_stride = m_score_stride,
                       .queries = count,
                       .keys = keys.end - keys.begin,
                       .columns = m_columns});
}

}  // namespace driftscope
