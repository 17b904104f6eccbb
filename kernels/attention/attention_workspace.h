// SPDX-License-Identifier: Apache-2.0
// Memory of one task, kept by its thread from call to call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention/attention_task.h"

namespace driftscope {

// A float array that starts on a cache line and never shrinks.
class AlignedFloats {
 public:
  // At least `count` floats; contents undefined.
  [[nodiscard]] float* resize(std::size_t count);
  [[nodiscard]] float* data() const { return m_begin; }

 private:
  std::vector<float> m_storage;
  float* m_begin = nullptr;
};

struct AttentionWorkspace {
  AlignedFloats queries;            // [queries, padded_dim]
  AlignedFloats keys;               // [padded_dim, kKeyChunk]
  AlignedFloats values;             // [kKeyChunk, columns]
  AlignedFloats scores;             // [queries, score_stride]
  AlignedFloats sums;               // [states, queries, columns]
  std::vector<float> max;           // [states, queries]
  std::vector<double> denominator;  // [states, queries], softmax_dtype f64 only
  std::vector<char> filled;         // [states, queries]
  std::vector<KeyRange> visible;    // [queries]
  std::vector<char> page_bytes;     // one head of kKeyChunk keys, paged cache only
  std::vector<float> page_scales;   // [kKeyChunk]
  std::vector<int> plan_order;
  std::vector<int> merge_order;
};

// The workspace of the calling thread.
[[nodiscard]] AttentionWorkspace& thread_workspace();

}  // namespace driftscope
