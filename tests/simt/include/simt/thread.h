// SPDX-License-Identifier: Apache-2.0
// A simulated thread's view: its indices, barriers, shuffles and votes. Every meeting point must be
// reached by all threads that it names, at the same place in the source.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <source_location>

#include "cuda_runtime.h"

namespace simt {

// Set whenever another thread goes on.
struct Indices {
  uint3 thread;
  uint3 block;
  dim3 block_shape;
  dim3 grid_shape;
};
extern Indices current;

using Where = std::source_location;

enum class Meeting : std::uint8_t { barrier, warp_barrier, shuffle, vote };
// Waits for all threads of the block.
void meet_block(const Where& where);
// Waits for the warp's threads in `mask`, then returns the value that lane `source` gave (a lane
// outside the mask is a fault); `source` negative: the bits of those that gave a value not 0.
[[nodiscard]] std::uint64_t meet_warp(Meeting kind, unsigned mask, std::uint64_t value, int source,
                                      const Where& where);
[[nodiscard]] int lane_of_current();

template <class T>
T exchange(unsigned mask, T value, int source, const Where& where) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = meet_warp(Meeting::shuffle, mask, bits, source, where);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace simt

#define threadIdx (::simt::current.thread)
#define blockIdx (::simt::current.block)
#define blockDim (::simt::current.block_shape)
#define gridDim (::simt::current.grid_shape)

inline void __syncthreads(const simt::Where& where = simt::Where::current()) {
  simt::meet_block(where);
}
inline void __syncwarp(unsigned mask = 0xffffffffU,
                       const simt::Where& where = simt::Where::current()) {
  static_cast<void>(simt::meet_warp(simt::Meeting::warp_barrier, mask, 0, -1, where));
}
// Lanes form segments of `width`; a source outside the own segment gives the own value.
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,
                  const simt::Where& where = simt::Where::current()) {
  const int lane = simt::lane_of_current();
  const int source = lane ^ lane_mask;
  const bool inside = source < (lane / width + 1) * width;
  return simt::exchange(mask, value, inside ? source : lane, where);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              const simt::Where& where = simt::Where::current()) {
  const int lane = simt::lane_of_current();
  return simt::exchange(mask, value, lane / width * width + source % width, where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   const simt::Where& where = simt::Where::current()) {
  const int lane = simt::lane_of_current();
  const int source = lane + static_cast<int>(delta);
  const bool inside = source < (lane / width + 1) * width;
  return simt::exchange(mask, value, inside ? source : lane, where);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              const simt::Where& where = simt::Where::current()) {
  return static_cast<unsigned>(
      simt::meet_warp(simt::Meeting::vote, mask, predicate != 0 ? 1 : 0, -1, where));
}
inline int __any_sync(unsigned mask, int predicate,
                      const simt::Where& where = simt::Where::current()) {
  return __ballot_sync(mask, predicate, where) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      const simt::Where& where = simt::Where::current()) {
  return __ballot_sync(mask, predicate, where) == mask ? 1 : 0;
}

// Round to nearest, as the host does it.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
