// SPDX-License-Identifier: Apache-2.0
// The inner loops of attention, one set per vector width. attention_blocked.cpp decides which
// query meets which key in which order; these do arithmetic on blocks of keys.
//
// Scores are computed with keys across the lanes of a register: each lane follows the whole
// ReductionPlan of its own key, so any plan runs at full width and nothing is shuffled. For that a
// chunk of keys is transposed once and shared by all queries of the task.
#pragma once

#include <cstdint>

#include "kernels/plan/dtype.h"
#include "kernels/plan/kv_dtype.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

// Keys that are transposed, or values that are widened, at a time.
inline constexpr std::int64_t kKeyChunk = 32;
// Queries that add_values takes at most.
inline constexpr std::int64_t kValueQueries = 4;

// Part of a K or V cache: one head of `count` neighbouring keys.
struct CacheBlock {
  const void* data;  // the head of the first key
  KvDtype dtype;
  std::int64_t stride;        // elements from key to key
  const float* scales;        // int8: of the first key's head
  std::int64_t scale_stride;  // from key to key
  std::int64_t count;         // at most kKeyChunk
  std::int64_t head_dim;
};

struct ScoreBlock {
  const float* q;     // [queries, padded_dim], zeros behind head_dim
  const float* keys;  // [padded_dim, kKeyChunk] transposed, zeros behind head_dim
  float* scores;      // kKeyChunk of each query, row stride score_stride
  std::int64_t queries;
  std::int64_t head_dim;
  std::int64_t padded_dim;
  std::int64_t score_stride;
  const ReductionPlan* plan;
  const int* order;  // of the plan's chunks, for SplitCombine::arrival
  float scale;
  Dtype dtype;  // the dot product and the scaled score are rounded to this
};

struct ValueBlock {
  const float* weights;  // [queries, keys], row stride weight_stride
  const float* values;   // [keys, columns], row stride columns
  float* sums;           // [queries, columns], row stride columns
  std::int64_t weight_stride;
  std::int64_t queries;  // 1 … kValueQueries
  std::int64_t keys;
  std::int64_t columns;  // a multiple of the width
};

struct AttentionVector {
  std::int64_t width;  // floats of a register
  // target [head_dim, kKeyChunk]; zero where count is less than kKeyChunk.
  void (*transpose_keys)(const CacheBlock& keys, float* target);
  // target [count, columns]: the values, then zeros, and 1 in the last register, so that the
  // softmax denominator is summed as one more column. columns: a multiple of the width, at least
  // head_dim + width.
  void (*widen_values)(const CacheBlock& values, std::int64_t columns, float* target);
  void (*score)(const ScoreBlock& block);
  // row = soft_capped(row, cap, dtype, dtype); count a multiple of the width
  void (*cap_row)(float* row, std::int64_t count, float cap, Dtype dtype);
  float (*row_max)(const float* row, std::int64_t count);
  // row = exp(row - max) rounded to dtype
  void (*row_exp)(float* row, std::int64_t count, float max, Dtype dtype);
  // sums = fma(weight, value, sums), keys in rising order
  void (*add_values)(const ValueBlock& block);
  // row *= factor; count a multiple of the width
  void (*scale_row)(float* row, std::int64_t count, float factor);
  // into = fma(from, from_factor, into * into_factor); count a multiple of the width
  void (*merge_rows)(float* into, float into_factor, const float* from, float from_factor,
                     std::int64_t count);
  // y = row / denominator rounded to dtype, every NaN the same
  void (*finish_row)(const float* row, float denominator, float* y, std::int64_t count,
                     Dtype dtype);
};

[[nodiscard]] const AttentionVector& attention_vector_avx2();
[[nodiscard]] const AttentionVector& attention_vector_avx512();

}  // namespace driftscope
