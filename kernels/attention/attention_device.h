// SPDX-License-Identifier: Apache-2.0
// Attention on a device: the bits of attention(). Plain data; includes no CUDA header.
#pragma once

#include <cstdint>

#include "kernels/attention/attention_kind.h"
#include "kernels/plan/device_plan.h"

namespace driftscope {

// Keys and values of one sequence, all layers.
struct DeviceSequence {
  void* k = nullptr;             // of layer 0: [room, kv_heads, head_dim] of kv_dtype
  void* v = nullptr;             // the same
  std::int64_t layer_bytes = 0;  // from one layer to the next
  std::int64_t keys = 0;         // first position of the call + its rows
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
  Dtype kv_dtype = Dtype::f32;
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
  const float* k = nullptr;  // [rows, kv_width]
  const float* v = nullptr;  // [rows, kv_width]
  std::int64_t kv_width = 0;
  Dtype value_dtype = Dtype::f32;  // v is rounded to this before it is stored
  Dtype kv_dtype = Dtype::f32;
};

}  // namespace driftscope
