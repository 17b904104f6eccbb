// SPDX-License-Identifier: Apache-2.0
// Internal: memory of one worker that lasts from call to call, aligned to cache lines; on huge pages
// where it is large and the system has them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace driftscope::matmul_detail {

struct ScratchFree {
  std::align_val_t alignment = std::align_val_t{64};
  void operator()(void* memory) const { ::operator delete (memory, alignment); }
};

class Scratch {
 public:
  // At least `bytes` bytes; the contents of an earlier call are lost. Grows, never shrinks.
  [[nodiscard]] void* bytes(std::size_t bytes) {
    if (bytes > m_size) {
      const bool large = bytes >= kHugePage;
      const std::size_t size = large ? (bytes + kHugePage - 1) / kHugePage * kHugePage : bytes;
      const std::align_val_t alignment{large ? kHugePage : kAlignment};
      m_memory.reset();
      m_memory = {::operator new (size, alignment), ScratchFree{alignment}};
      if (large) ::madvise(m_memory.get(), size, MADV_HUGEPAGE);  // a wish: refusal does no harm
      m_size = size;
    }
    return m_memory.get();
  }
  [[nodiscard]] float* floats(std::int64_t count) {
    return static_cast<float*>(bytes(static_cast<std::size_t>(count) * sizeof(float)));
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20U;
  std::unique_ptr<void, ScratchFree> m_memory;
  std::size_t m_size = 0;
};

}  // namespace driftscope::matmul_detail
