// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

#include "kernels/attention/attention_task.h"

namespace driftscope {
namespace {

// Queries of one task. Many share the work of reading keys; few keep the scores in cache.
constexpr std::int64_t kQueriesPerTask = 64;

std::vector<AttentionTask> cut_tasks(const AttentionArguments& arguments, int workers) {
  const std::int64_t group = arguments.heads / arguments.kv_heads;
  std::int64_t rows = 0;
  for (const AttentionSequence& sequence : arguments.sequences) rows += sequence.rows;
  // With few rows (decode) a group of heads is cut so that every worker has something to do.
  const std::int64_t wanted = (workers + arguments.kv_heads - 1) / arguments.kv_heads;
  const std::int64_t parts = workers == 1 || rows == 0
                                 ? 1
                                 : std::clamp<std::int64_t>((wanted + rows - 1) / rows, 1, group);
  const std::int64_t heads_per_task = (group + parts - 1) / parts;
  const std::int64_t rows_per_task = std::max<std::int64_t>(1, kQueriesPerTask / heads_per_task);
  std::vector<AttentionTask> tasks;
  for (const AttentionSequence& sequence : arguments.sequences) {
    for (std::int64_t row = 0; row < sequence.rows; row += rows_per_task) {
      for (std::int64_t head = 0; head < arguments.heads;) {
        const std::int64_t kv_head = head / group;
        const std::int64_t head_end = std::min(head + heads_per_task, (kv_head + 1) * group);
        tasks.push_back({.sequence = &sequence,
                         .kv_head = kv_head,
                         .head_begin = head,
                         .head_end = head_end,
                         .row_begin = row,
                         .row_end = std::min(row + rows_per_task, sequence.rows)});
        head = head_end;
      }
    }
  }
  // The last rows of a prompt see the most keys: start them first.
  std::ranges::reverse(tasks);
  return tasks;
}

template <AttentionFunction function>
void run(const AttentionArguments& arguments, Parallel& parallel) {
  assert(arguments.kv_heads > 0 && arguments.heads % arguments.kv_heads == 0);
  assert(arguments.head_dim > 0 && arguments.tile > 0 && arguments.splits > 0);
  assert(arguments.kv_dtype != Dtype::f64);
  const std::vector<AttentionTask> tasks = cut_tasks(arguments, parallel.workers());
  const auto task = [&](std::size_t index, int) { function(arguments, tasks[index], nullptr); };
  parallel.run(tasks.size(), task);
}

constexpr std::array kVariants = {
    AttentionVariant{"scalar", Isa::scalar, Determinism::device_to_device, true,
                     run<attention_task_scalar>},
#if defined(__x86_64__) && defined(DRIFTSCOPE_SIMD_ROWS)
    AttentionVariant{"avx2", Isa::avx2, Determinism::device_to_device, true,
                     run<attention_task_avx2>},
    AttentionVariant{"avx512", Isa::avx512, Determinism::device_to_device, true,
                     run<attention_task_avx512>},
#endif
};

}  // namespace

std::span<const AttentionVariant> attention_variants() { return kVariants; }

void attention(const AttentionArguments& arguments, Isa isa, Parallel& parallel) {
  for (const AttentionVariant& variant : kVariants) {
    if (variant.isa == isa) return variant.run(arguments, parallel);
  }
  kVariants[0].run(arguments, parallel);
}

}  // namespace driftscope
