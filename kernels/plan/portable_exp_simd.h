// SPDX-License-Identifier: Apache-2.0
// portable::exp(float) on vectors, the same bits as the scalar function in every lane.
// Include it from *_avx2.cpp and *_avx512.cpp only: what is compiled with those flags must not
// be merged by the linker into baseline code, so everything here is internal to the file and
// always inlined.
#pragma once

#if defined(__AVX2__) && defined(__FMA__)

#include <immintrin.h>

#include "kernels/plan/portable_exp_constants.h"

namespace driftscope::portable::simd {
namespace {

[[gnu::always_inline]] inline __m256 exp(__m256 x) {
  // Operand order: min and max return the second operand when one is NaN.
  __m256 c = _mm256_min_ps(_mm256_set1_ps(kExpHighest), x);
  c = _mm256_max_ps(_mm256_set1_ps(kExpLowest), c);
  const __m256 shift = _mm256_set1_ps(kExpRound);
  const __m256 t = _mm256_fmadd_ps(c, _mm256_set1_ps(kExpLog2E), shift);
  const __m256 n = _mm256_sub_ps(t, shift);
  __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kExpLn2High), c);
  r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kExpLn2Low), r);
  __m256 q = _mm256_set1_ps(kExpQ[5]);
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(kExpQ[4]));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(kExpQ[3]));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(kExpQ[2]));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(kExpQ[1]));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(kExpQ[0]));
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 p = _mm256_fmadd_ps(q, r, one);
  const __m256 y = _mm256_fmadd_ps(p, r, one);
  const __m256i k = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(shift));
  const __m256i low = _mm256_srai_epi32(k, 1);
  const __m256i high = _mm256_sub_epi32(k, low);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i scale_low = _mm256_slli_epi32(_mm256_add_epi32(low, bias), 23);
  const __m256i scale_high = _mm256_slli_epi32(_mm256_add_epi32(high, bias), 23);
  return _mm256_mul_ps(_mm256_mul_ps(y, _mm256_castsi256_ps(scale_low)),
                       _mm256_castsi256_ps(scale_high));
}

#if defined(__AVX512F__)
[[gnu::always_inline]] inline __m512 exp(__m512 x) {
  __m512 c = _mm512_min_ps(_mm512_set1_ps(kExpHighest), x);
  c = _mm512_max_ps(_mm512_set1_ps(kExpLowest), c);
  const __m512 shift = _mm512_set1_ps(kExpRound);
  const __m512 t = _mm512_fmadd_ps(c, _mm512_set1_ps(kExpLog2E), shift);
  const __m512 n = _mm512_sub_ps(t, shift);
  __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kExpLn2High), c);
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kExpLn2Low), r);
  __m512 q = _mm512_set1_ps(kExpQ[5]);
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(kExpQ[4]));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(kExpQ[3]));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(kExpQ[2]));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(kExpQ[1]));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(kExpQ[0]));
  const __m512 one = _mm512_set1_ps(1.0F);
  const __m512 p = _mm512_fmadd_ps(q, r, one);
  const __m512 y = _mm512_fmadd_ps(p, r, one);
  return _mm512_scalef_ps(y, n);  // y · 2^n, rounded once
}
#endif

}  // namespace
}  // namespace driftscope::portable::simd

#endif
