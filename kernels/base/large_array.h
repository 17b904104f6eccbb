// SPDX-License-Identifier: Apache-2.0
// Memory of arrays that kernels sweep: on cache lines and, from 2 MiB on, on huge pages where the
// system has them. A tile of a matmul touches many rows at once: with 4 KiB pages, translating
// addresses took a sixth of the time of a 512-row matmul.
#pragma once

#include <cstddef>
#include <vector>

namespace driftscope {

// Throws std::bad_alloc. `bytes` is at least 1.
[[nodiscard]] void* allocate_array(std::size_t bytes);
// What allocate_array(bytes) returned.
void free_array(void* memory, std::size_t bytes) noexcept;

template <class T>
struct ArrayAllocator {
  using value_type = T;
  ArrayAllocator() = default;
  template <class U>
  ArrayAllocator(const ArrayAllocator<U>&) {}  // NOLINT(google-explicit-constructor): required
  [[nodiscard]] T* allocate(std::size_t count) {
    return static_cast<T*>(allocate_array(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept { free_array(memory, count * sizeof(T)); }
  friend bool operator==(ArrayAllocator, ArrayAllocator) { return true; }
};

using FloatArray = std::vector<float, ArrayAllocator<float>>;

}  // namespace driftscope
