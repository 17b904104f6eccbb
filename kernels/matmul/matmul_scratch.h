// SPDX-License-Identifier: Apache-2.0
// Internal: memory of one worker that lasts from call to call, aligned to cache lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace driftscope::matmul_detail {

class Scratch {
 public:
  // At least `bytes` bytes; the contents of an earlier call are lost. Grows, never shrinks.
  [[nodiscard]] void* bytes(std::size_t bytes) {
    if (bytes > m_size) {
      m_memory.reset();
      m_memory.reset(::operator new (bytes, std::align_val_t{kAlignment}));
      m_size = bytes;
    }
    return m_memory.get();
  }
  [[nodiscard]] float* floats(std::int64_t count) {
    return static_cast<float*>(bytes(static_cast<std::size_t>(count) * sizeof(float)));
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  struct Free {
    void operator()(void* memory) const {
      ::operator delete (memory, std::align_val_t{kAlignment});
    }
  };
  std::unique_ptr<void, Free> m_memory;
  std::size_t m_size = 0;
};

}  // namespace driftscope::matmul_detail
