// SPDX-License-Identifier: Apache-2.0
// Causal grouped-query attention over a KV cache, in several stated orders.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/attention/attention_kind.h"
#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"
#include "kernels/plan/kv_dtype.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

// One sequence's rows of one layer.
struct AttentionSequence {
  const float* q = nullptr;  // [rows, heads, head_dim], row stride q_stride
  std::int64_t q_stride = 0;
  const void* k = nullptr;          // [kv_length, kv_heads, head_dim], element type kv_dtype
  const void* v = nullptr;          // the same
  std::int64_t rows = 0;            // queries of this call
  std::int64_t first_position = 0;  // position of query 0; query r sees keys 0 … first_position + r
  float* y = nullptr;               // [rows, heads, head_dim], contiguous
  // int8: scales, [kv_length, kv_heads]; the element is code · scale, one f32 product.
  const float* k_scales = nullptr;
  const float* v_scales = nullptr;
  // A paged cache: where block_tokens > 0, token t is row t mod block_tokens of block
  // t / block_tokens of these tables, each block laid out as above, and k, v and their scales are
  // not read. Where the bytes lie changes no bit.
  std::int64_t block_tokens = 0;
  const void* const* k_blocks = nullptr;
  const void* const* v_blocks = nullptr;
  const float* const* k_scale_blocks = nullptr;
  const float* const* v_scale_blocks = nullptr;
};

struct AttentionArguments {
  std::span<const AttentionSequence> sequences;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // query head h reads key/value head h / (heads / kv_heads)
  std::int64_t head_dim = 0;
  float scale = 1.0F;       // multiplies the dot product
  std::int64_t window = 0;  // sliding window: a query sees itself and window-1 before; 0 = all
  float softcap = 0.0F;     // scores become cap · tanh(score / cap); 0: they stay
  // [heads]: a score per query head that takes weight and adds nothing; null: none.
  const float* sinks = nullptr;
  KvDtype kv_dtype = KvDtype::f32;  // widened exactly, but for int8
  AttentionKind kind = AttentionKind::flash;
  std::int64_t tile = 64;  // flash: keys per tile; split_kv_size: keys per split
  int splits = 4;          // split_kv_count. The boundaries come from the number of keys the
                           // whole call sees (first_position + rows), so they move when the same
                           // query is computed in another chunking: not batch-invariant.
  ReductionPlan score_plan = {};  // of each q·k over head_dim
  // eager: of the softmax denominator. Others: keys in rising order, and only arrival_seed is used.
  ReductionPlan sum_plan = {};
  SplitCombine split_combine = SplitCombine::sequential;  // how partial results merge
  Dtype softmax_dtype = Dtype::f32;  // f32 or f64: exp and denominator; f16/bf16: also rounded
  Dtype score_dtype = Dtype::f32;    // eager: scores stored in this (16-bit eager frameworks do)
  Dtype probability_dtype = Dtype::f32;  // eager: probabilities rounded before P·V
  Dtype output_dtype = Dtype::f32;
};
// The order, for one query at position p and one head. Its visible keys are lo … p, with
// lo = max(0, p - window + 1) under a window, else 0. A tile or split without a visible key is
// skipped, exactly: nothing is added, scaled or merged for it.
//
// Score of a key: s = reduce_dot(score_plan, q, k) * scale, both in f32 (eager: the dot product
// and the scaled score are each rounded to score_dtype). Under a cap, s becomes
// soft_capped(s, softcap) (soft_cap.h), every step of it rounded likewise.
//
// eager: with a sink, its score, rounded to score_dtype, stands behind the visible keys' and is
//   dropped again after the softmax; where score_dtype has 16 bits, the greatest of them all is
//   taken off first and the differences are rounded to it (as transformers' gpt-oss does).
//   softmax_row (softmax.h) over the visible keys under sum_plan, computed in softmax_dtype,
//   each probability rounded to probability_dtype; then each output element starts at +0 and adds
//   its keys in rising order, fma(probability, v, sum).
//
// A tile (flash: keys [t·tile, (t+1)·tile) of the sequence), with running max m, denominator l and
// accumulators a:
//   m' = max(m, the tile's visible scores), exact;
//   unless it is the query's first tile: f = exp(m - m'), l = l * f, a = a * f (f is exactly 1, and
//   nothing changes, when m' = m); the first one starts at l = +0, a = +0;
//   for each visible key in rising order: e = exp(s - m'), l = l + e, a = fma(e, v, a).
//   softmax_dtype f64: exp, f and l in f64; e and f rounded to f32 where they meet a.
//   softmax_dtype f16, bf16: e and f rounded to it, and l once after each tile and each merge.
// flash: tiles from key 0 in rising order.
// split_kv_*: each split is one such tile with a state of its own; two states merge as
//   m = max(m1, m2), f1 = exp(m1 - m), f2 = exp(m2 - m), l = fma(l2, f2, l1 * f1),
//   a = fma(a2, f2, a1 * f1), over the splits in rising order (sequential), split i + d into
//   split i for d = 1, 2, 4 … (tree), or in arrival_order(sum_plan.arrival_seed, S) (arrival).
//   Merging with a split that was skipped changes nothing. split_kv_size: split i is the keys
//   [i·tile, (i+1)·tile) and S = p / tile + 1, both functions of the query alone.
//   split_kv_count: S = splits and split i is the keys [i·c, (i+1)·c), c = ceil(n / S) with
//   n = first_position + rows of the call.
// A sink (all but eager) merges last, as a split with m = sink, l = 1, a = +0.
// All but eager end with y = a / l. Every y is rounded to output_dtype. NaN in a visible key, value
// or query gives NaN; the payload of a NaN is not specified.

// One way to compute it. All portable variants give the same bits. The promise is for given
// arguments; attention_is_batch_invariant says whether chunking can change them.
struct AttentionVariant {
  std::string_view name;  // "scalar", "avx2", "avx512"
  Isa isa;
  Determinism determinism;  // what the variant promises
  bool portable;            // same bits as the scalar definition
  void (*run)(const AttentionArguments& arguments, Parallel& parallel);
};
[[nodiscard]] std::span<const AttentionVariant> attention_variants();

// Whether a query's bits stay the same when its prompt is computed in other chunks.
[[nodiscard]] constexpr bool attention_is_batch_invariant(AttentionKind kind) {
  return kind != AttentionKind::split_kv_count;
}

void attention(const AttentionArguments& arguments, Isa isa, Parallel& parallel);
// f64 throughout, plain rising order, no rounding point. y: for each sequence in turn
// [rows, heads, head_dim].
void attention_reference(const AttentionArguments& arguments, double* y);

}  // namespace driftscope
