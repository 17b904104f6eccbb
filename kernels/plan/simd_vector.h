// SPDX-License-Identifier: Apache-2.0
// One register of f32 values under one set of names, so that a vector kernel is written once and
// compiled for AVX2 (8 floats) and AVX-512 (16 floats). Include it from *_avx2.cpp and
// *_avx512.cpp only: everything here is internal to the file and always inlined, because what is
// compiled with those flags must not be merged by the linker into baseline code.
#pragma once

#if defined(__AVX2__) && defined(__FMA__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/plan/dtype.h"
#include "kernels/plan/portable_exp_simd.h"

// gcc 12 reports the deliberately undefined operand inside many AVX-512 intrinsics (PR105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define DRIFTSCOPE_INLINE [[gnu::always_inline]] inline

namespace driftscope::simd {
namespace {

#if defined(__AVX512F__)

using Floats = __m512;
constexpr std::int64_t kWidth = 16;

// The lowest `count` (0 … kWidth) lanes.
DRIFTSCOPE_INLINE __mmask16 first(std::int64_t count) {
  return static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U);
}
DRIFTSCOPE_INLINE Floats load(const float* p) { return _mm512_loadu_ps(p); }
DRIFTSCOPE_INLINE void store(float* p, Floats x) { _mm512_storeu_ps(p, x); }
// Lanes from `count` on are `rest`, and memory behind them is not touched.
DRIFTSCOPE_INLINE Floats load_first(const float* p, std::int64_t count, Floats rest) {
  return _mm512_mask_loadu_ps(rest, first(count), p);
}
DRIFTSCOPE_INLINE void store_first(float* p, std::int64_t count, Floats x) {
  _mm512_mask_storeu_ps(p, first(count), x);
}
DRIFTSCOPE_INLINE Floats all(float x) { return _mm512_set1_ps(x); }
DRIFTSCOPE_INLINE Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
DRIFTSCOPE_INLINE Floats sub(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
DRIFTSCOPE_INLINE Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
DRIFTSCOPE_INLINE Floats div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
DRIFTSCOPE_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
// b where either is NaN.
DRIFTSCOPE_INLINE Floats max(Floats a, Floats b) {
  return _mm512_mask_mov_ps(b, _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), a);
}
DRIFTSCOPE_INLINE Floats canonical_nan(Floats x) {
  return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
                            _mm512_set1_ps(__builtin_nanf("")));
}
DRIFTSCOPE_INLINE Floats negate(Floats x) {
  return _mm512_castsi512_ps(
      _mm512_xor_si512(_mm512_castps_si512(x), _mm512_set1_epi32(static_cast<int>(0x80000000U))));
}
DRIFTSCOPE_INLINE Floats round_bf16(Floats x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i lowest_kept = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), lowest_kept);
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x00400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i kept = _mm512_mask_mov_epi32(rounded, nan, quiet);
  return _mm512_castsi512_ps(
      _mm512_and_si512(kept, _mm512_set1_epi32(static_cast<int>(0xffff0000U))));
}
DRIFTSCOPE_INLINE Floats round_f16(Floats x) {
  return _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
DRIFTSCOPE_INLINE Floats load_bf16(const std::uint16_t* p) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
DRIFTSCOPE_INLINE Floats load_f16(const std::uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

#else

using Floats = __m256;
constexpr std::int64_t kWidth = 8;

// All bits set in the lowest `count` (0 … kWidth) lanes.
DRIFTSCOPE_INLINE __m256i first(std::int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
DRIFTSCOPE_INLINE Floats load(const float* p) { return _mm256_loadu_ps(p); }
DRIFTSCOPE_INLINE void store(float* p, Floats x) { _mm256_storeu_ps(p, x); }
DRIFTSCOPE_INLINE Floats load_first(const float* p, std::int64_t count, Floats rest) {
  const __m256i mask = first(count);
  return _mm256_blendv_ps(rest, _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
}
DRIFTSCOPE_INLINE void store_first(float* p, std::int64_t count, Floats x) {
  _mm256_maskstore_ps(p, first(count), x);
}
DRIFTSCOPE_INLINE Floats all(float x) { return _mm256_set1_ps(x); }
DRIFTSCOPE_INLINE Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
DRIFTSCOPE_INLINE Floats sub(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
DRIFTSCOPE_INLINE Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
DRIFTSCOPE_INLINE Floats div(Floats a, Floats b) { return _mm256_div_ps(a, b); }
DRIFTSCOPE_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
DRIFTSCOPE_INLINE Floats max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
DRIFTSCOPE_INLINE Floats canonical_nan(Floats x) {
  return _mm256_blendv_ps(x, _mm256_set1_ps(__builtin_nanf("")), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}
DRIFTSCOPE_INLINE Floats negate(Floats x) {
  return _mm256_xor_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0x80000000U))));
}
DRIFTSCOPE_INLINE Floats round_bf16(Floats x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i lowest_kept = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), lowest_kept);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
  const __m256 kept = _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet),
                                       _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_and_ps(kept, _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xffff0000U))));
}
DRIFTSCOPE_INLINE Floats round_f16(Floats x) {
  return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
DRIFTSCOPE_INLINE Floats load_bf16(const std::uint16_t* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
DRIFTSCOPE_INLINE Floats load_f16(const std::uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

#endif

DRIFTSCOPE_INLINE Floats exp(Floats x) { return portable::simd::exp(x); }

// The same values as round_to(dtype, x) on each lane.
DRIFTSCOPE_INLINE Floats round(Dtype dtype, Floats x) {
  if (dtype == Dtype::bf16) return round_bf16(x);
  if (dtype == Dtype::f16) return round_f16(x);
  return x;
}

// The last rounding of a result, with one bit pattern for every NaN.
DRIFTSCOPE_INLINE Floats round_result(Dtype dtype, Floats x) {
  return canonical_nan(round(dtype, x));
}

// One register of elements stored as `dtype` (f32, f16, bf16), widened exactly.
DRIFTSCOPE_INLINE Floats load_as(Dtype dtype, const void* p) {
  if (dtype == Dtype::bf16) return load_bf16(static_cast<const std::uint16_t*>(p));
  if (dtype == Dtype::f16) return load_f16(static_cast<const std::uint16_t*>(p));
  return load(static_cast<const float*>(p));
}
// The first `count` elements; the other lanes are +0.
DRIFTSCOPE_INLINE Floats load_first_as(Dtype dtype, const void* p, std::int64_t count) {
  if (dtype == Dtype::f32) return load_first(static_cast<const float*>(p), count, all(0.0F));
  std::uint16_t padded[kWidth] = {};
  for (std::int64_t i = 0; i < count; ++i) padded[i] = static_cast<const std::uint16_t*>(p)[i];
  return dtype == Dtype::bf16 ? load_bf16(padded) : load_f16(padded);
}

}  // namespace
}  // namespace driftscope::simd

#endif
