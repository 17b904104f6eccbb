// SPDX-License-Identifier: Apache-2.0
// Functions that the host's kernels and the .cu sources share: plain arithmetic that rounds as IEEE
// says on both sides (the .cu files are compiled with -fmad=false and exact division and root).
// They are always inlined and internal to each file, so that code compiled for one instruction set
// is never merged into another's.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define DRIFTSCOPE_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define DRIFTSCOPE_HOST_DEVICE [[gnu::always_inline]] inline
#endif

namespace driftscope::exact {
namespace {

DRIFTSCOPE_HOST_DEVICE std::uint32_t bits_of(float x) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(x);
#else
  return __builtin_bit_cast(std::uint32_t, x);
#endif
}
DRIFTSCOPE_HOST_DEVICE float float_of(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  return __builtin_bit_cast(float, bits);
#endif
}
DRIFTSCOPE_HOST_DEVICE std::uint64_t bits_of(double x) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint64_t>(__double_as_longlong(x));
#else
  return __builtin_bit_cast(std::uint64_t, x);
#endif
}
DRIFTSCOPE_HOST_DEVICE double double_of(std::uint64_t bits) {
#if defined(__CUDA_ARCH__)
  return __longlong_as_double(static_cast<long long>(bits));
#else
  return __builtin_bit_cast(double, bits);
#endif
}
// Fused multiply-add: one instruction where there is one, else the library's exact one.
DRIFTSCOPE_HOST_DEVICE float fused(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
DRIFTSCOPE_HOST_DEVICE double fused(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return __fma_rn(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}

}  // namespace
}  // namespace driftscope::exact
