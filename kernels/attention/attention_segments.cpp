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

void merge_order(const AttentionArguments& arguments, std::int64_t count, int* order) {
  if (arguments.split_combine == SplitCombine::arrival) {
    std::ranges::copy(arrival_order(arguments.sum_plan.arrival_seed, static_cast<int>(count)),
                      order);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) order[i] = static_cast<int>(i);
}

}  // namespace driftscope
