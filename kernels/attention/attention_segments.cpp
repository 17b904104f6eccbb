// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/attention/attention_task.h"

namespace driftscope {

KeyRange visible_keys(const AttentionArguments& arguments, std::int64_t position) {
  const std::int64_t first =
      arguments.window > 0 ? std::max<std::int64_t>(0, position - arguments.window + 1) : 0;
  return {first, position + 1};
}

Segmentation segmentation(const AttentionArguments& arguments, const AttentionSequence& sequence,
                          std::int64_t position) {
  switch (arguments.kind) {
    case AttentionKind::eager:
      return {.size = position + 1, .count = 1};
    case AttentionKind::flash:
    case AttentionKind::split_kv_size:
      return {.size = arguments.tile, .count = position / arguments.tile + 1};
    case AttentionKind::split_kv_count: {
      const std::int64_t keys = sequence.first_position + sequence.rows;
      return {.size = (keys + arguments.splits - 1) / arguments.splits, .count = arguments.splits};
    }
  }
  return {.size = position + 1, .count = 1};
}

CacheHead cache_head(const AttentionArguments& arguments, const CacheSide& side, std::int64_t key,
                     std::int64_t kv_head) {
  const void* data = side.data;
  const float* scales = side.scales;
  if (side.block_tokens > 0) {
    const std::int64_t block = key / side.block_tokens;
    key %= side.block_tokens;
    data = side.blocks[block];
    if (arguments.kv_dtype == KvDtype::int8) scales = side.scale_blocks[block];
  }
  const std::int64_t head = key * arguments.kv_heads + kv_head;
  const auto offset =
      static_cast<std::size_t>(head * arguments.head_dim) * dtype_size(arguments.kv_dtype);
  return {.data = static_cast<const unsigned char*>(data) + offset,
          .scale = arguments.kv_dtype == KvDtype::int8 ? scales + head : nullptr};
}

void append_sink(const AttentionArguments& arguments, std::int64_t head, float* row,
                 std::int64_t count) {
  const Dtype dtype = arguments.score_dtype;
  row[count] = round_to(dtype, arguments.sinks[head]);
  if (dtype == Dtype::f32) return;  // the softmax takes the same differences
  float greatest = row[0];
  for (std::int64_t i = 1; i <= count; ++i) greatest = greatest < row[i] ? row[i] : greatest;
  for (std::int64_t i = 0; i <= count; ++i) row[i] = round_to(dtype, row[i] - greatest);
}

void merge_order(const AttentionArguments& arguments, std::int64_t count, int* order) {
  if (arguments.split_combine == SplitCombine::arrival) {
    std::ranges::copy(arrival_order(arguments.sum_plan.arrival_seed, static_cast<int>(count)),
                      order);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) order[i] = static_cast<int>(i);
}

}  // namespace driftscope
