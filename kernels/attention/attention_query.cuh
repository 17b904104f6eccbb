// SPDX-License-Identifier: Apache-2.0
// What both attention kernels share: one block, one query of one head.
#pragma once

#include "kernels/attention/attention_device.h"
#include "kernels/plan/device_reduction.cuh"

namespace driftscope::cuda {

struct KeySpan {
  std::int64_t begin;
  std::int64_t end;
};

__device__ inline std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
__device__ inline std::int64_t larger(std::int64_t a, std::int64_t b) { return a < b ? b : a; }

struct QueryOfBlock {
  std::int64_t row;
  std::int64_t position;
  KeySpan visible;
  std::int64_t keys;      // of the whole call
  Global<const float> q;  // [head_dim]
  Global<float> y;        // [head_dim]
  Global<const void> k;   // head's first key; keys lie kv_stride elements apart
  Global<const void> v;
  std::int64_t kv_begin;
  std::int64_t kv_stride;
};

__device__ inline QueryOfBlock query_of_block(const DeviceAttention& a) {
  QueryOfBlock query;
  query.row = static_cast<std::int64_t>(blockIdx.x) / a.heads;
  const std::int64_t head = static_cast<std::int64_t>(blockIdx.x) % a.heads;
  const std::int64_t number = Global<const std::int32_t>(a.batch.sequence_of)[query.row];
  const DeviceSequence sequence = Global<const DeviceSequence>(a.batch.sequences)[number];
  query.position = Global<const std::int32_t>(a.batch.positions)[query.row];
  query.visible = {a.window > 0 ? larger(0, query.position - a.window + 1) : 0, query.position + 1};
  query.keys = sequence.keys;
  const std::int64_t width = a.heads * a.head_dim;
  query.q = Global<const float>(a.q) + (query.row * width + head * a.head_dim);
  query.y = Global<float>(a.y) + (query.row * width + head * a.head_dim);
  const std::int64_t layer = a.batch.layer * sequence.layer_bytes;
  query.k = Global<const char>(static_cast<const char*>(sequence.k) + layer);
  query.v = Global<const char>(static_cast<const char*>(sequence.v) + layer);
  query.kv_begin = head / (a.heads / a.kv_heads) * a.head_dim;
  query.kv_stride = a.kv_heads * a.head_dim;
  return query;
}

struct ScoreTerms {
  const QueryOfBlock& query;
  std::int64_t key_begin;
  Dtype dtype;
  template <class State>
  __device__ void operator()(State& state, std::int64_t i, bool inside) const {
    state.add_product(inside ? query.q[i] : 0.0F,
                      inside ? load(query.k, dtype, key_begin + i) : 0.0F);
  }
};

// q·k by the score plan, before scaling; every thread of the group gets it.
__device__ inline float score_of(const DeviceAttention& a, const QueryOfBlock& query,
                                 std::int64_t key, const Group& group) {
  const ScoreTerms terms{query, query.kv_begin + key * query.kv_stride, a.kv_dtype};
  return reduce_terms(a.score_plan, a.head_dim, terms, group);
}

}  // namespace driftscope::cuda
