// SPDX-License-Identifier: Apache-2.0
// How attention is cut into tasks, and what each instruction set does with one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention.h"

namespace driftscope {

// Some queries of one sequence that read the same key/value head. Nothing that is computed for a
// query depends on the other queries of its task.
struct AttentionTask {
  const AttentionSequence* sequence;
  std::int64_t kv_head;
  std::int64_t head_begin, head_end;  // query heads, all reading kv_head
  std::int64_t row_begin, row_end;
};

// Keys begin … end-1.
struct KeyRange {
  std::int64_t begin;
  std::int64_t end;
  [[nodiscard]] bool empty() const { return begin >= end; }
};

[[nodiscard]] constexpr KeyRange intersect(KeyRange a, KeyRange b) {
  return {a.begin < b.begin ? b.begin : a.begin, a.end < b.end ? a.end : b.end};
}

// The keys that a query at `position` sees.
[[nodiscard]] KeyRange visible_keys(const AttentionArguments& arguments, std::int64_t position);

// The tiles (flash) or splits that a query's keys are cut into; eager has one segment.
struct Segmentation {
  std::int64_t size;   // keys per segment; segment i is [i * size, (i + 1) * size), cut at the end
  std::int64_t count;  // S of the merge order
};
[[nodiscard]] Segmentation segmentation(const AttentionArguments& arguments,
                                        const AttentionSequence& sequence, std::int64_t position);

// order[i]: the i-th of `count` splits to be merged, for `sequential` and `arrival`.
void merge_order(const AttentionArguments& arguments, std::int64_t count, int* order);

// The type that scores are rounded to.
[[nodiscard]] constexpr Dtype score_rounding(const AttentionArguments& arguments) {
  return arguments.kind == AttentionKind::eager ? arguments.score_dtype : Dtype::f32;
}
// Eager with a sink: row [count + 1] has its last place filled and is brought to where softmax_row
// takes over (attention.h).
void append_sink(const AttentionArguments& arguments, std::int64_t head, float* row,
                 std::int64_t count);

// The keys or the values of a sequence.
struct CacheSide {
  const void* data;
  const float* scales;
  const void* const* blocks;
  const float* const* scale_blocks;
  std::int64_t block_tokens;
};
[[nodiscard]] inline CacheSide keys_of(const AttentionSequence& sequence) {
  return {sequence.k, sequence.k_scales, sequence.k_blocks, sequence.k_scale_blocks,
          sequence.block_tokens};
}
[[nodiscard]] inline CacheSide values_of(const AttentionSequence& sequence) {
  return {sequence.v, sequence.v_scales, sequence.v_blocks, sequence.v_scale_blocks,
          sequence.block_tokens};
}

// One head of one token.
struct CacheHead {
  const void* data;    // [head_dim]
  const float* scale;  // null where the type has none
};
[[nodiscard]] CacheHead cache_head(const AttentionArguments& arguments, const CacheSide& side,
                                   std::int64_t key, std::int64_t kv_head);

using AttentionFunction = void (*)(const AttentionArguments&, const AttentionTask&);
void attention_task_scalar(const AttentionArguments& arguments, const AttentionTask& task);

}  // namespace driftscope
