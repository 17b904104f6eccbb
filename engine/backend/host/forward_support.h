// SPDX-License-Identifier: Apache-2.0
// What the parts of ForwardPass share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/backend/host/host_kv_cache.h"
#include "engine/model/checkpoint.h"
#include "kernels/base/large_array.h"

namespace driftscope {

[[nodiscard]] inline HostKvCache& host_cache(const BatchSequence& sequence) {
  return static_cast<HostKvCache&>(*sequence.cache);
}
[[nodiscard]] inline std::size_t elements(std::int64_t rows, std::int64_t width) {
  return static_cast<std::size_t>(rows * width);
}
inline void grow(FloatArray& buffer, std::int64_t rows, std::int64_t width) {
  if (buffer.size() < elements(rows, width)) buffer.resize(elements(rows, width));
}
[[nodiscard]] inline std::int64_t query_width(const ModelDescription& model) {
  return model.heads * model.head_dim;
}
[[nodiscard]] inline std::int64_t key_width(const ModelDescription& model) {
  return model.kv_heads * model.head_dim;
}

}  // namespace driftscope
