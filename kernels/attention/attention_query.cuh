// SPDX-License-Identifier: Apache-2.0
// What both attention kernels share: one block, one query of one head.
#pragma once

#include "kernels/attention/attention_cache.cuh"
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
  KvCacheSide k;
  KvCacheSide v;
  std::int64_t kv_head;
  std::int64_t head_dim;
  KvDtype kv_dtype;
  [[nodiscard]] __device__ KvRow key(std::int64_t token) const {
    return k.row(token, kv_head, head_dim, kv_dtype);
  }
  [[nodiscard]] __device__ KvRow value(std::int64_t token) const {
    return v.row(token, kv_head, head_dim, kv_dtype);
  }
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
  query.k = {sequence, a.kv_heads, a.batch.layer, KvSide::keys};
  query.v = {sequence, a.kv_heads, a.batch.layer, KvSide::values};
  query.kv_head = head / (a.heads / a.kv_heads);
  query.head_dim = a.head_dim;
  query.kv_dtype = a.kv_dtype;
  return query;
}

struct ScoreTerms {
  Global<const float> q;
  KvRow key;
  template <class State>
  __device__ void operator()(State& state, std::int64_t i, bool inside) const {
    state.add_product(inside ? q[i] : 0.0F, inside ? key.at(i) : 0.0F);
  }
};

// q·k by the score plan, before scaling; every thread of the group gets it.
__device__ inline float score_of(const DeviceAttention& a, const QueryOfBlock& query,
                                 std::int64_t key, const Group& group) {
  return reduce_terms(a.score_plan, a.head_dim, ScoreTerms{query.q, query.key(key)}, group);
}

}  // namespace driftscope::cuda
