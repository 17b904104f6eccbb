// SPDX-License-Identifier: Apache-2.0
// What the machine can do at most, for the benches to divide by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/base/parallel.h"

namespace driftscope::bench {

// Anonymous memory in huge pages where the system gives them.
class HugeBuffer {
 public:
  explicit HugeBuffer(std::size_t bytes);
  ~HugeBuffer();
  HugeBuffer(const HugeBuffer&) = delete;
  HugeBuffer& operator=(const HugeBuffer&) = delete;
  [[nodiscard]] std::uint8_t* data() const { return m_data; }
  [[nodiscard]] std::size_t size() const { return m_size; }

 private:
  std::uint8_t* m_data = nullptr;
  std::size_t m_size = 0;
};

[[nodiscard]] double now_seconds();
// From now on now_seconds() counts the processor time of the calling thread: for one thread on a
// machine that others use.
void use_cpu_clock();

// Reads the whole buffer once; bytes per second.
[[nodiscard]] double memory_read_rate(const HugeBuffer& buffer, Parallel& parallel);

// f32 multiply-adds in registers, the widest vectors this CPU has; operations per second (a
// multiply-add counts two), for all workers together.
[[nodiscard]] double fma_rate(Parallel& parallel);
// The same of AVX512-BF16 dot products; 0 where the CPU has none.
[[nodiscard]] double bf16_dot_rate(Parallel& parallel);

}  // namespace driftscope::bench
