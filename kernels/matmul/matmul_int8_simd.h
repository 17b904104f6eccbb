// SPDX-License-Identifier: Apache-2.0
// Internal: exact int8 products, for the files of each instruction set. Pairs of 16-bit products
// are added in 32 bits, which cannot overflow below kMostInt8Terms terms; integer sums do not
// depend on their order.
#pragma once

#include <cstdint>

#include "kernels/matmul/matmul_kernels.h"

namespace driftscope::matmul_detail {
namespace {

#if defined(__AVX512BW__)

struct Ints {
  using Type = __m512i;
  static constexpr std::int64_t width = 32;  // terms of a vector
  static constexpr int rows = 4;
  static constexpr int outputs = 4;
  static Type zero() { return _mm512_setzero_si512(); }
  static Type load_x(const std::int16_t* p) { return _mm512_loadu_si512(p); }
  static Type load_w(const std::int8_t* p) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static __mmask32 first(std::int64_t count) {
    return static_cast<__mmask32>((std::uint64_t{1} << static_cast<unsigned>(count)) - 1U);
  }
  static Type load_x_part(const std::int16_t* p, std::int64_t count) {
    return _mm512_maskz_loadu_epi16(first(count), p);
  }
  static Type load_w_part(const std::int8_t* p, std::int64_t count) {
    return _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(first(count), p));
  }
  static Type add_products(Type sum, Type x, Type w) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(x, w));
  }
  static std::int32_t total(Type sum) { return _mm512_reduce_add_epi32(sum); }
};

#else

struct Ints {
  using Type = __m256i;
  static constexpr std::int64_t width = 16;
  static constexpr int rows = 2;
  static constexpr int outputs = 4;
  static Type zero() { return _mm256_setzero_si256(); }
  static Type load_x(const std::int16_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Type load_w(const std::int8_t* p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Type load_x_part(const std::int16_t* p, std::int64_t count) {
    alignas(32) std::int16_t part[16] = {};
    for (std::int64_t i = 0; i < count; ++i) part[i] = p[i];
    return load_x(part);
  }
  static Type load_w_part(const std::int8_t* p, std::int64_t count) {
    alignas(16) std::int8_t part[16] = {};
    for (std::int64_t i = 0; i < count; ++i) part[i] = p[i];
    return load_w(part);
  }
  static Type add_products(Type sum, Type x, Type w) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w));
  }
  static std::int32_t total(Type sum) {
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
    return _mm_cvtsi128_si32(half);
  }
};

#endif

template <int MR, int NR>
[[gnu::noinline]] void int8_tile(const Int8Job& job, std::int64_t i0, std::int64_t j0) {
  const std::int16_t* x = job.x + i0 * job.x_stride;
  const std::int8_t* w = job.w + j0 * job.w_stride;
  Ints::Type sums[MR][NR];
#pragma GCC unroll 16
  for (int t = 0; t < MR * NR; ++t) sums[t / NR][t % NR] = Ints::zero();
  const std::int64_t ahead = NR * job.w_stride;  // the next tile's rows
  std::int64_t k = 0;
  for (; k + Ints::width <= job.length; k += Ints::width) {
    Ints::Type weights[NR];
#pragma GCC unroll 8
    for (int j = 0; j < NR; ++j) {
      weights[j] = Ints::load_w(w + j * job.w_stride + k);
      if (MR == 1) __builtin_prefetch(w + j * job.w_stride + k + ahead);
    }
#pragma GCC unroll 8
    for (int i = 0; i < MR; ++i) {
      const Ints::Type row = Ints::load_x(x + i * job.x_stride + k);
#pragma GCC unroll 8
      for (int j = 0; j < NR; ++j) sums[i][j] = Ints::add_products(sums[i][j], row, weights[j]);
    }
  }
  if (k < job.length) {
    const std::int64_t count = job.length - k;
    for (int i = 0; i < MR; ++i) {
      const Ints::Type row = Ints::load_x_part(x + i * job.x_stride + k, count);
      for (int j = 0; j < NR; ++j) {
        const Ints::Type weights = Ints::load_w_part(w + j * job.w_stride + k, count);
        sums[i][j] = Ints::add_products(sums[i][j], row, weights);
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < MR * NR; ++t) {
    job.out[(i0 + t / NR) * job.n + j0 + t % NR] = Ints::total(sums[t / NR][t % NR]);
  }
}

template <int MR>
void int8_rows(const Int8Job& job, std::int64_t i) {
  std::int64_t j = 0;
  for (; j + Ints::outputs <= job.n; j += Ints::outputs) int8_tile<MR, Ints::outputs>(job, i, j);
  for (; j < job.n; ++j) int8_tile<MR, 1>(job, i, j);
}

void run_int8_tile(const Int8Job& job) {
  std::int64_t i = 0;
  for (; i + Ints::rows <= job.m; i += Ints::rows) int8_rows<Ints::rows>(job, i);
  for (; i < job.m; ++i) int8_rows<1>(job, i);
}

}  // namespace
}  // namespace driftscope::matmul_detail
