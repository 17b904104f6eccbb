// SPDX-License-Identifier: Apache-2.0
// Attention by blocks of queries and keys: the order of attention.h for every query, with the
// reading of keys and values shared. It only decides what is computed when; the arithmetic is in
// an AttentionVector.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention_task.h"
#include "kernels/attention/attention_vector.h"
#include "kernels/attention/attention_workspace.h"

namespace driftscope {

// Queries are numbered row by row, heads within a row, so ranges of keys rise with the number.
class BlockedTask {
 public:
  BlockedTask(const AttentionArguments& arguments, const AttentionTask& task,
              const AttentionVector& vector, Isa isa);
  void run();

 private:
  // Where a state of the online softmax lies: state 0 is the result.
  struct State {
    float* sum;  // [m_columns]; the denominator in the last m_vector.width
    float* max;
    double* denominator;
    char* filled;
  };
  [[nodiscard]] std::int64_t head(std::int64_t query) const {
    return m_task.head_begin + query % m_heads;
  }
  [[nodiscard]] State state(std::int64_t index, std::int64_t query) const;
  [[nodiscard]] std::int64_t position(std::int64_t query) const {
    return m_task.sequence->first_position + m_task.row_begin + query / m_heads;
  }
  [[nodiscard]] KeyRange visible(std::int64_t query) const {
    return m_work.visible[static_cast<std::size_t>(query)];
  }
  [[nodiscard]] float* scores(std::int64_t query, std::int64_t key, KeyRange segment) const {
    return m_work.scores.data() + query * m_score_stride + (key - segment.begin);
  }
  [[nodiscard]] CacheBlock cache_block(const CacheSide& side, KeyRange keys) const;
  [[nodiscard]] CacheBlock gather_pages(const CacheSide& side, KeyRange keys) const;
  [[nodiscard]] bool merges_at_once() const {
    return m_arguments.split_combine == SplitCombine::sequential;
  }

  void prepare_workspace();
  void copy_queries();
  void run_segment(std::int64_t index, KeyRange segment);
  void compute_scores(KeyRange segment);
  void cap_scores(KeyRange chunk, KeyRange segment, std::int64_t first, std::int64_t last);
  void fallback_scores(KeyRange chunk, KeyRange segment, std::int64_t first, std::int64_t last);
  void soften(std::int64_t query, KeyRange segment, const State& state);
  void soften_f64(float* row, std::int64_t count, float max, double factor, const State& state);
  void add_values(std::int64_t state_index, KeyRange segment);
  void add_chunk(std::int64_t state_index, std::int64_t first, std::int64_t count, KeyRange chunk,
                 KeyRange segment);
  void add_keys(std::int64_t state_index, std::int64_t first, std::int64_t count, KeyRange keys,
                KeyRange chunk, KeyRange segment);
  void merge(const State& into, const State& from);
  void merge_splits(std::int64_t query);
  void merge_sink(std::int64_t query);
  void finish(std::int64_t query);

  const AttentionArguments& m_arguments;
  const AttentionTask& m_task;
  const AttentionVector& m_vector;
  Isa m_isa;
  AttentionWorkspace& m_work;
  std::int64_t m_heads;
  std::int64_t m_queries;
  std::int64_t m_padded_dim = 0;
  std::int64_t m_columns = 0;
  std::int64_t m_score_stride = 0;
  std::int64_t m_state_count = 1;
  Segmentation m_cut{};
  KeyRange m_keys{};  // seen by any query
};

}  // namespace driftscope
