// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/large_array.h"

#include <sys/mman.h>

#include <new>

namespace driftscope {

namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20U;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes < kHugePage ? kCacheLine : kHugePage};
}

}  // namespace

void* allocate_array(std::size_t bytes) {
  if (bytes < kHugePage) return ::operator new(bytes, alignment_of(bytes));
  const std::size_t pages = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = ::operator new(pages, alignment_of(bytes));
  ::madvise(memory, pages, MADV_HUGEPAGE);  // a wish: nothing depends on it
  return memory;
}

void free_array(void* memory, std::size_t bytes) noexcept {
  ::operator delete(memory, alignment_of(bytes));
}

}  // namespace driftscope
