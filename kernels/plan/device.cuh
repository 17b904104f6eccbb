// SPDX-License-Identifier: Apache-2.0
// What a .cu source is written in. With nvcc these are CUDA's own words; in the SIMT harness
// (tests/simt, DRIFTSCOPE_SIMT) pointers are checked and threads are fibers.
//
// Blocks are one-dimensional and whole warps. A kernel takes a struct of plain pointers and makes
// Global<T> of those that it reads or writes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/plan/dtype_bits.h"

#if defined(DRIFTSCOPE_SIMT)

#include <simt/device.h>

#else

namespace driftscope::cuda {

template <class T>
using Global = T*;
template <class T>
using Shared = T*;

template <class T>
__device__ __forceinline__ T* global_cast(const void* pointer) {
  return static_cast<T*>(const_cast<void*>(pointer));
}

struct LaunchShape {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
};

template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), const char*, const LaunchShape& shape,
                   cudaStream_t stream, Arguments... arguments) {
  // clang-format off
  kernel<<<shape.grid, shape.block, shape.shared_bytes, stream>>>(arguments...);
  // clang-format on
  return cudaGetLastError();
}

extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];

}  // namespace driftscope::cuda

#define DRIFTSCOPE_UNROLL _Pragma("unroll")
#define DRIFTSCOPE_NOINLINE __noinline__
#define DRIFTSCOPE_SHARED(Type, name, count) __shared__ Type name[count]
#define DRIFTSCOPE_DYNAMIC_SHARED(Type, name, byte_offset, count) \
  Type* const name =                                              \
      reinterpret_cast<Type*>(::driftscope::cuda::dynamic_shared_bytes + (byte_offset))

#endif

namespace driftscope::cuda {

constexpr int kWarpWidth = 32;

// The number of the thread in all of a grid of one dimension.
__device__ inline std::int64_t thread_number() {
  return static_cast<std::int64_t>(blockIdx.x) * static_cast<std::int64_t>(blockDim.x) +
         static_cast<std::int64_t>(threadIdx.x);
}
__device__ inline std::int64_t threads_in_grid() {
  return static_cast<std::int64_t>(gridDim.x) * static_cast<std::int64_t>(blockDim.x);
}

// Element `index` of an array of `dtype`, as f32.
__device__ inline float load(const Global<const void>& data, Dtype dtype, std::int64_t index) {
  if (dtype == Dtype::f32) return global_cast<const float>(data)[index];
  const std::uint16_t bits = global_cast<const std::uint16_t>(data)[index];
  return dtype == Dtype::bf16 ? exact::bf16_widened(bits) : exact::f16_widened(bits);
}

// For kernels that handle one element a thread in a loop over the grid.
constexpr int kElementThreads = 256;
inline LaunchShape element_shape(std::int64_t elements) {
  constexpr std::int64_t kMostBlocks = 65535;
  const std::int64_t blocks = (elements + kElementThreads - 1) / kElementThreads;
  return {dim3(static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks)),
          dim3(kElementThreads), 0};
}

}  // namespace driftscope::cuda
