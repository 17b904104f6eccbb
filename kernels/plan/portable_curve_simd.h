// SPDX-License-Identifier: Apache-2.0
// tanh, erf and the soft cap on vectors: the bits of portable::tanh(float), portable::erf(float)
// and soft_capped() in every lane. For *_avx2.cpp and *_avx512.cpp only.
#pragma once

#include "kernels/plan/portable_curve_constants.h"
#include "kernels/plan/simd_vector.h"

#if defined(__AVX2__) && defined(__FMA__)

namespace driftscope::simd {
namespace {

#if defined(__AVX512F__)
DRIFTSCOPE_INLINE Floats magnitude_of(Floats x) { return _mm512_abs_ps(x); }
// The magnitude of `magnitude`, the sign of `sign`.
DRIFTSCOPE_INLINE Floats with_sign_of(Floats magnitude, Floats sign) {
  const __m512i bit = _mm512_set1_epi32(static_cast<int>(0x80000000U));
  const __m512i kept = _mm512_andnot_si512(bit, _mm512_castps_si512(magnitude));
  return _mm512_castsi512_ps(
      _mm512_or_si512(kept, _mm512_and_si512(bit, _mm512_castps_si512(sign))));
}
// a < b ? yes : no
DRIFTSCOPE_INLINE Floats where_less(Floats a, Floats b, Floats yes, Floats no) {
  return _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), yes);
}
#else
DRIFTSCOPE_INLINE Floats magnitude_of(Floats x) {
  return _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)));
}
// The magnitude of `magnitude`, the sign of `sign`.
DRIFTSCOPE_INLINE Floats with_sign_of(Floats magnitude, Floats sign) {
  const __m256 bit = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0x80000000U)));
  return _mm256_or_ps(_mm256_andnot_ps(bit, magnitude), _mm256_and_ps(bit, sign));
}
// a < b ? yes : no
DRIFTSCOPE_INLINE Floats where_less(Floats a, Floats b, Floats yes, Floats no) {
  return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
#endif

// x > limit ? limit : x; NaN stays.
DRIFTSCOPE_INLINE Floats at_most(Floats x, Floats limit) { return where_less(limit, x, limit, x); }
// x < limit ? limit : x; NaN stays.
DRIFTSCOPE_INLINE Floats at_least(Floats x, Floats limit) { return where_less(x, limit, limit, x); }

// Horner, the highest coefficient last.
template <std::size_t Count>
DRIFTSCOPE_INLINE Floats polynomial(const float (&coefficients)[Count], Floats x) {
  Floats sum = all(coefficients[Count - 1]);
  for (std::size_t i = Count - 1; i-- > 0;) sum = fma(sum, x, all(coefficients[i]));
  return sum;
}

DRIFTSCOPE_INLINE Floats tanh(Floats x) {
  const Floats a = magnitude_of(x);
  const Floats z = mul(x, x);
  const Floats near = fma(mul(polynomial(portable::kTanhP, z), z), a, a);
  const Floats far = sub(all(1.0F), div(all(2.0F), add(exp(add(a, a)), all(1.0F))));
  return with_sign_of(where_less(a, all(portable::kTanhSplit), near, far), x);
}

DRIFTSCOPE_INLINE Floats erf(Floats x) {
  const Floats a = magnitude_of(x);
  const Floats near = fma(polynomial(portable::kErfP, mul(x, x)), a, a);
  const Floats t = at_most(a, all(portable::kErfHighest));
  const Floats far = sub(all(1.0F), exp(mul(polynomial(portable::kErfQ, t), t)));
  return with_sign_of(where_less(a, all(portable::kErfSplit), near, far), x);
}

DRIFTSCOPE_INLINE Floats soft_capped(Floats x, float cap, Dtype step, Dtype last) {
  const Floats limit = all(cap);
  return round(last, mul(round(step, tanh(round(step, div(x, limit)))), limit));
}

}  // namespace
}  // namespace driftscope::simd

#endif
