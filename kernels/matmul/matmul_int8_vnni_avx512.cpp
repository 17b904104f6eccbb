// SPDX-License-Identifier: Apache-2.0
// Exact int8 products with AVX512-VNNI, which multiplies unsigned by signed bytes: x + 128 takes
// the place of x, and 128 times the sum of the weights is taken off again. Sums wrap modulo 2^32,
// and the result fits, so it is the same integer as everywhere else.
#if defined(__AVX512F__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <cstdint>

#include "kernels/matmul/matmul_kernels.h"

#define DRIFTSCOPE_VNNI [[gnu::target("avx512vnni")]]

namespace driftscope::matmul_detail {
namespace {

constexpr std::int64_t kTerms = 64;  // of a vector
constexpr int kRows = 4;
constexpr int kOutputs = 4;

// `count` of the vector's bytes, the others 0.
DRIFTSCOPE_VNNI inline __m512i load(const void* p, std::int64_t count) {
  if (count >= kTerms) return _mm512_loadu_si512(p);
  const auto mask = static_cast<__mmask64>((std::uint64_t{1} << static_cast<unsigned>(count)) - 1U);
  return _mm512_maskz_loadu_epi8(mask, p);
}

template <int MR, int NR>
DRIFTSCOPE_VNNI [[gnu::noinline]] void tile(const Int8Job& job, std::int64_t i0, std::int64_t j0) {
  const std::uint8_t* x = job.x_offset + i0 * job.x_stride;
  const std::int8_t* w = job.w + j0 * job.w_stride;
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sums[MR][NR];
  __m512i weight_sums[NR];
#pragma GCC unroll 16
  for (int t = 0; t < MR * NR; ++t) sums[t / NR][t % NR] = _mm512_setzero_si512();
#pragma GCC unroll 4
  for (int j = 0; j < NR; ++j) weight_sums[j] = _mm512_setzero_si512();
  const std::int64_t ahead = NR * job.w_stride;  // the next tile's rows
  for (std::int64_t k = 0; k < job.length; k += kTerms) {
    const std::int64_t count = job.length - k;
    __m512i weights[NR];
#pragma GCC unroll 4
    for (int j = 0; j < NR; ++j) {
      weights[j] = load(w + j * job.w_stride + k, count);
      if (MR == 1) __builtin_prefetch(w + j * job.w_stride + k + ahead);
      weight_sums[j] = _mm512_dpbusd_epi32(weight_sums[j], ones, weights[j]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < MR; ++i) {
      const __m512i row = load(x + i * job.x_stride + k, count);
#pragma GCC unroll 4
      for (int j = 0; j < NR; ++j) {
        sums[i][j] = _mm512_dpbusd_epi32(sums[i][j], row, weights[j]);
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < MR * NR; ++t) {
    const __m512i offset = _mm512_slli_epi32(weight_sums[t % NR], 7);
    job.out[(i0 + t / NR) * job.n + j0 + t % NR] =
        _mm512_reduce_add_epi32(_mm512_sub_epi32(sums[t / NR][t % NR], offset));
  }
}

template <int MR>
void rows(const Int8Job& job, std::int64_t i) {
  std::int64_t j = 0;
  for (; j + kOutputs <= job.n; j += kOutputs) tile<MR, kOutputs>(job, i, j);
  for (; j < job.n; ++j) tile<MR, 1>(job, i, j);
}

}  // namespace

void run_int8_tile_vnni(const Int8Job& job) {
  std::int64_t i = 0;
  for (; i + kRows <= job.m; i += kRows) rows<kRows>(job, i);
  for (; i < job.m; ++i) rows<1>(job, i);
}

}  // namespace driftscope::matmul_detail
#endif
