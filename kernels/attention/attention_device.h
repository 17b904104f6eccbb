// SPDX-License-Identifier: Apache-2.0
// Attention on a device: the bits of attention(). Plain data; includes no CUDA header.
#pragma once

#include <cstdint>

#include "kernels/attention/attention_kind.h"
#include "kernels/plan/device_plan.h"
#include "kernels/plan/kv_dtype.h"

namespace driftscope {

// Keys and values of one sequence, all layers, in blocks of equal size: one, or the pages of a
// paged cache, where token t is row t mod block_tokens of block t / block_tokens. A block begins
// with the keys, [layers, block_tokens, kv_heads, head_dim] of kv_dtype; at the bytes stated here
// follow the values, laid out alike, and for int8 the f32 scales of both, [layers, block_tokens,
// kv_heads].
struct DeviceSequence {
  char* block = nullptr;          // the only one
  char* const* blocks = nullptr;  // the pages, a table in device memory; null: there is only one
  std::int64_t block_tokens = 0;
  std::int64_t values_at = 0;
  std::int64_t key_scales_at = 0;
  std::int64_t value_scales_at = 0;
  std::int64_t keys = 0;  // first position of the call + its rows
};

// The rows of a call: what each belongs to. All pointers to device memory.
struct DeviceRows {
  const DeviceSequence* sequences = nullptr;
  const std::int32_t* sequence_of = nullptr;  // [rows]
  const std::int32_t* positions = nullptr;    // [rows]
  std::int64_t rows = 0;
  std::int64_t layer = 0;
};

// As AttentionArguments, with all sequences in one call.
struct DeviceAttention {
  DeviceRows batch = {};
  const float* q = nullptr;  // [rows, heads, head_dim], contiguous
  float* y = nullptr;        // the same
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  float scale = 1.0F;
  std::int64_t window = 0;
  KvDtype kv_dtype = KvDtype::f32;
  AttentionKind kind = AttentionKind::flash;
  std::int64_t tile = 64;
  int splits = 4;
  DevicePlan score_plan = {};
  DevicePlan sum_plan = {};  // eager only
  SplitCombine split_combine = SplitCombine::sequential;
  // For split_combine arrival: the orders in which splits merge, and where each row's begins.
  const int* merge_orders = nullptr;
  const std::int32_t* merge_order_begin = nullptr;  // [rows]
  Dtype softmax_dtype = Dtype::f32;
  Dtype score_dtype = Dtype::f32;        // eager only
  Dtype probability_dtype = Dtype::f32;  // eager only
  Dtype output_dtype = Dtype::f32;
  float* scores = nullptr;        // eager: workspace [rows · heads, score_stride]
  std::int64_t score_stride = 0;  // at least the keys of any row
};

// Stores the call's keys and values into the caches.
struct DeviceStoreKv {
  DeviceRows batch = {};
  const float* k = nullptr;  // [rows, kv_heads, head_dim]
  const float* v = nullptr;  // the same
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  Dtype value_dtype = Dtype::f32;  // v is rounded to this before it is stored
  KvDtype kv_dtype = KvDtype::f32;
};

}  // namespace driftscope
