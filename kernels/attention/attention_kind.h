// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace driftscope {

enum class AttentionKind : std::uint8_t {
  eager,           // all scores, softmax, probabilities rounded, then P·V
  flash,           // online softmax over key tiles of fixed size, from key 0 (FlashAttention-2)
  split_kv_count,  // keys of the sequence cut into a fixed number of splits, merged at the end
  split_kv_size,   // keys cut into splits of a fixed size: batch-invariant
};

}  // namespace driftscope
