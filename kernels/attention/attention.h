// SPDX-License-Identifier: Apache-2.0
// Causal grouped-query attention over a KV cache, in several stated orders.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

enum class AttentionKind : std::uint8_t {
  eager,           // all scores, softmax, probabilities rounded, then P·V
  flash,           // online softmax over key tiles of fixed size, from key 0 (FlashAttention-2)
  split_kv_count,  // keys of the sequence cut into a fixed number of splits, merged at the end
  split_kv_size,   // keys cut into splits of a fixed size: batch-invariant
};

// One sequence's rows of one layer.
struct AttentionSequence {
  const float* q = nullptr;  // [rows, heads, head_dim], row stride q_stride
  std::int64_t q_stride = 0;
  const void* k = nullptr;  // [kv_length, kv_heads, head_dim], element type kv_dtype
  const void* v = nullptr;  // the same
  std::int64_t rows = 0;           // queries of this call
  std::int64_t first_position = 0;  // position of query 0; query r sees keys 0 … first_position + r
  float* y = nullptr;       // [rows, heads, head_dim], contiguous
};

struct AttentionArguments {
  std::span<const AttentionSequence> sequences;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // query head h reads key/value head h / (heads / kv_heads)
  std::int64_t head_dim = 0;
  float scale = 1.0F;           // multiplies the dot product
  std::int64_t window = 0;      // sliding window: a query sees itself and window-1 before; 0 = all
  Dtype kv_dtype = Dtype::f32;  // f32, f16 or bf16
  AttentionKind kind = AttentionKind::flash;
  std::int64_t tile = 64;    // flash: keys per tile; split_kv_size: keys per split
  int splits = 4;            // split_kv_count. The boundaries come from the number of keys the
                             // whole call sees (first_position + rows), so they move when the same
                             // query is computed in another chunking: not batch-invariant.
  ReductionPlan score_plan;  // of each q·k over head_dim
  ReductionPlan sum_plan;    // eager: of the softmax denominator. Others: keys in rising order.
  SplitCombine split_combine = SplitCombine::sequential;  // how partial results merge
  Dtype softmax_dtype = Dtype::f32;  // f32 or f64: exp and denominator; f16/bf16: also rounded
  Dtype score_dtype = Dtype::f32;    // eager: scores stored in this (16-bit eager frameworks do)
  Dtype probability_dtype = Dtype::f32;  // eager: probabilities rounded before P·V
  Dtype output_dtype = Dtype::f32;
};
// P·V: for each output element keys are added in rising order, one fma each (lanes = 1), within a
// tile or split; partial results are rescaled by exp(old max - new max) and merged in order.
void attention(const AttentionArguments& arguments, Isa isa, Parallel& parallel);
// f64 throughout, plain rising order. y: for each sequence in turn [rows, heads, head_dim].
void attention_reference(const AttentionArguments& arguments, double* y);

}  // namespace driftscope
