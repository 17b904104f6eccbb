// SPDX-License-Identifier: Apache-2.0
// Anonymous memory in large blocks, on huge pages where the kernel grants them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/result.h"

namespace driftscope {

// Hands out pieces of large anonymous mappings; everything is released together. Huge pages
// matter for weights: a decode step reads all of them once, and with 4 KiB pages the
// address translation, not the memory, sets the pace.
class HugeArena {
 public:
  HugeArena() = default;
  ~HugeArena();
  HugeArena(HugeArena&& other) noexcept;
  HugeArena& operator=(HugeArena&& other) noexcept;
  HugeArena(const HugeArena&) = delete;
  HugeArena& operator=(const HugeArena&) = delete;

  // Zero-filled, aligned to 64 bytes. Errors: engine (the system has no memory left).
  [[nodiscard]] Result<void*> allocate(std::size_t bytes);
  [[nodiscard]] std::size_t bytes_handed_out() const { return m_handed_out; }
  // Whether the kernel accepted the request for huge pages for every block.
  [[nodiscard]] bool huge_pages_asked() const { return m_huge_pages_asked; }

 private:
  struct Block {
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  [[nodiscard]] Result<void> add_block(std::size_t bytes);
  void release();

  std::vector<Block> m_blocks;
  std::size_t m_used_in_last = 0;
  std::size_t m_handed_out = 0;
  bool m_huge_pages_asked = true;
};

// Bytes that can be allocated without pushing others out: MemAvailable of /proc/meminfo, and what
// is left under the memory limit of this process's control group.
[[nodiscard]] std::uint64_t available_memory();

}  // namespace driftscope
