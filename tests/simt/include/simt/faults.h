// SPDX-License-Identifier: Apache-2.0
// What the harness found wrong. A launch that has a fault stops there and fails like a crashed
// kernel: with cudaErrorLaunchFailure, and every later call with it, until clear_faults().
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace simt {

[[nodiscard]] const std::vector<std::string>& faults();
void clear_faults();

// Thrown inside a simulated thread, caught where that thread ends.
struct Fault {
  std::string text;
};
[[noreturn]] void raise_fault(const std::string& text);

// The order in which the threads of a block run between two meeting points. A kernel without races
// gives the same bits under either.
enum class Order { rising, falling };
void set_order(Order order);

// Device memory, for tests: the bytes that cudaMalloc still grants (default: no limit).
void set_memory_limit(std::size_t bytes);
[[nodiscard]] std::size_t memory_in_use();
// GPUs of the machine (default: 1). A kernel runs on the thread's current one, finds the memory of
// no other, and may be given to its streams only.
void set_devices(int count);
[[nodiscard]] std::size_t launches();  // kernels run so far

}  // namespace simt
