// SPDX-License-Identifier: Apache-2.0
// Internal: memory of one worker that lasts from call to call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/large_array.h"

namespace driftscope::matmul_detail {

class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { release(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // At least `bytes` bytes, aligned to cache lines; the contents of an earlier call are lost.
  // Grows, never shrinks.
  [[nodiscard]] void* bytes(std::size_t bytes) {
    if (bytes > m_size) {
      release();
      m_memory = allocate_array(bytes);
      m_size = bytes;
    }
    return m_memory;
  }
  [[nodiscard]] float* floats(std::int64_t count) {
    return static_cast<float*>(bytes(static_cast<std::size_t>(count) * sizeof(float)));
  }

 private:
  void release() {
    if (m_memory != nullptr) free_array(m_memory, m_size);
    m_memory = nullptr;
    m_size = 0;
  }
  void* m_memory = nullptr;
  std::size_t m_size = 0;
};

}  // namespace driftscope::matmul_detail
