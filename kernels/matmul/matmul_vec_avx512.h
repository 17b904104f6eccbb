// SPDX-License-Identifier: Apache-2.0
// Internal: vectors of 16 floats, for the files compiled with AVX-512. Includes nothing but the
// intrinsics, so that nothing compiled with those flags can be merged into baseline code.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace driftscope::matmul_detail {
namespace {

// 16 floats; the tiles' sizes are those of a file that works on them.
struct Avx512Vec {
  using Type = __m512;
  static constexpr int width = 16;
  static constexpr int registers = 32;
  static constexpr int tile_rows = 6;
  static constexpr int tile_outputs = 4;

  static __mmask16 first(int count) { return static_cast<__mmask16>((1U << count) - 1U); }
  static Type zero() { return _mm512_setzero_ps(); }
  static Type load(const float* p) { return _mm512_loadu_ps(p); }
  static Type load_part(const float* p, int count) {
    return _mm512_maskz_loadu_ps(first(count), p);
  }
  static Type from_bf16(__m256i bits) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static Type load_bf16(const std::uint16_t* p) {
    return from_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Type load_bf16_part(const std::uint16_t* p, int count) {
    return from_bf16(_mm256_maskz_loadu_epi16(first(count), p));
  }
  static Type load_f16(const std::uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Type load_f16_part(const std::uint16_t* p, int count) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(count), p));
  }
  static Type load_terms(const float* p) { return load(p); }
  static Type load_terms_part(const float* p, int count) { return load_part(p, count); }
  static void store(float* p, Type v) { _mm512_storeu_ps(p, v); }
  static void store_part(float* p, Type v, int count) { _mm512_mask_storeu_ps(p, first(count), v); }
  static Type add(Type a, Type b) { return _mm512_add_ps(a, b); }
  static Type fma(Type a, Type b, Type c) { return _mm512_fmadd_ps(a, b, c); }
  // A NaN becomes the quiet NaN 0x7fc00000.
  static Type canonical(Type v) {
    const Type nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), nan);
  }

  // Lane i + d onto lane i for d = 8, 4, 2, 1, for 16 vectors at once: each level adds two halves
  // of two vectors and packs them into one. Element r of the result is the sum of v[r].
  static Type butterfly(const Type* v) {
    Type a[8];
    for (int i = 0; i < 8; ++i) {
      a[i] = add(_mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0x44),
                 _mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0xee));
    }
    Type b[4];
    for (int i = 0; i < 4; ++i) {
      b[i] = add(_mm512_shuffle_f32x4(a[2 * i], a[2 * i + 1], 0x88),
                 _mm512_shuffle_f32x4(a[2 * i], a[2 * i + 1], 0xdd));
    }
    Type c[2];
    for (int i = 0; i < 2; ++i) {
      c[i] = add(_mm512_shuffle_ps(b[2 * i], b[2 * i + 1], 0x44),
                 _mm512_shuffle_ps(b[2 * i], b[2 * i + 1], 0xee));
    }
    const Type d = add(_mm512_shuffle_ps(c[0], c[1], 0x88), _mm512_shuffle_ps(c[0], c[1], 0xdd));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_ps(order, d);
  }
};

}  // namespace
}  // namespace driftscope::matmul_detail
