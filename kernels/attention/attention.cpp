// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

#include "kernels/attention/attention_blocked.h"

namespace driftscope {
namespace {

// Queries of one task. Many share the work of reading keys; few keep the scores in cache.
constexpr std::int64_t kQueriesPerTask = 64;
constexpr std::int64_t kFloatsPerTask = 128 * 1024;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Floats that one query occupies while its task runs.
std::int64_t query_floats(const AttentionArguments& arguments, const AttentionSequence& sequence) {
  const std::int64_t keys = sequence.first_position + sequence.rows;
  const Segmentation cut = segmentation(arguments, sequence, keys - 1);
  const bool keeps_splits = arguments.kind != AttentionKind::eager &&
                            arguments.kind != AttentionKind::flash &&
                            arguments.split_combine != SplitCombine::sequential;
  const std::int64_t states = keeps_splits ? cut.count : 2;
  return std::min(cut.size, keys) + states * (arguments.head_dim + 16);
}

// Query heads of one task. With few rows (decode) the heads of a group are parted so that every
// worker has something to do.
std::int64_t heads_per_task(const AttentionArguments& arguments, int workers) {
  const std::int64_t group = arguments.heads / arguments.kv_heads;
  std::int64_t rows = 0;
  for (const AttentionSequence& sequence : arguments.sequences) rows += sequence.rows;
  const std::int64_t tasks = std::max<std::int64_t>(1, rows * arguments.kv_heads);
  return ceil_div(group, std::clamp<std::int64_t>(ceil_div(workers, tasks), 1, group));
}

std::vector<AttentionTask> cut_tasks(const AttentionArguments& arguments, int workers) {
  const std::int64_t group = arguments.heads / arguments.kv_heads;
  const std::int64_t heads = heads_per_task(arguments, workers);
  std::vector<AttentionTask> tasks;
  for (const AttentionSequence& sequence : arguments.sequences) {
    if (sequence.rows <= 0) continue;
    const std::int64_t queries =
        std::min(kQueriesPerTask, kFloatsPerTask / query_floats(arguments, sequence));
    const std::int64_t rows = std::max<std::int64_t>(1, queries / heads);
    for (std::int64_t row = 0; row < sequence.rows; row += rows) {
      for (std::int64_t head = 0, end = 0; head < arguments.heads; head = end) {
        end = std::min(head + heads, (head / group + 1) * group);
        tasks.push_back({.sequence = &sequence,
                         .kv_head = head / group,
                         .head_begin = head,
                         .head_end = end,
                         .row_begin = row,
                         .row_end = std::min(row + rows, sequence.rows)});
      }
    }
  }
  // The last rows of a prompt see the most keys: start them first.
  std::ranges::reverse(tasks);
  return tasks;
}

#if defined(__x86_64__)
void attention_task_avx2(const AttentionArguments& arguments, const AttentionTask& task) {
  BlockedTask(arguments, task, attention_vector_avx2(), Isa::avx2).run();
}
void attention_task_avx512(const AttentionArguments& arguments, const AttentionTask& task) {
  BlockedTask(arguments, task, attention_vector_avx512(), Isa::avx512).run();
}
#endif

template <AttentionFunction function>
void run(const AttentionArguments& arguments, Parallel& parallel) {
  assert(arguments.kv_heads > 0 && arguments.heads % arguments.kv_heads == 0);
  assert(arguments.head_dim > 0 && arguments.tile > 0 && arguments.splits > 0);
  const std::vector<AttentionTask> tasks = cut_tasks(arguments, parallel.workers());
  const auto task = [&](std::size_t index, int) { function(arguments, tasks[index]); };
  parallel.run(tasks.size(), task);
}

constexpr std::array kVariants = {
    AttentionVariant{"scalar", Isa::scalar, Determinism::device_to_device, true,
                     run<attention_task_scalar>},
#if defined(__x86_64__)
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
