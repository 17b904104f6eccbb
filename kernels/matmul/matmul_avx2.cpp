// SPDX-License-Identifier: Apache-2.0
#if defined(__AVX2__)
#include <immintrin.h>

#include <cstdint>

#include "kernels/matmul/matmul_generic.h"

// GCC's vectoriser finds nothing to do in what is vectors already, and disturbs the register
// allocation of the tiles: sums spill into memory. (Ignored by other compilers.)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")
#endif

namespace driftscope::matmul_detail {
namespace {

struct Vec {
  using Type = __m256;
  static constexpr int width = 8;
  static constexpr int terms = 1;
  static constexpr int registers = 16;
  static constexpr int tile_rows = 4;
  static constexpr int tile_outputs = 3;

  static Type zero() { return _mm256_setzero_ps(); }
  static Type load(const float* p) { return _mm256_loadu_ps(p); }
  static Type load_part(const float* p, int count) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(count), index));
  }
  static __m128i halves(const std::uint16_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static __m128i halves_part(const std::uint16_t* p, int count) {
    alignas(16) std::uint16_t part[8] = {};
    for (int i = 0; i < count; ++i) part[i] = p[i];
    return halves(part);
  }
  static Type from_bf16(__m128i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static Type load_bf16(const std::uint16_t* p) { return from_bf16(halves(p)); }
  static Type load_bf16_part(const std::uint16_t* p, int count) {
    return from_bf16(halves_part(p, count));
  }
  static Type load_f16(const std::uint16_t* p) { return _mm256_cvtph_ps(halves(p)); }
  static Type load_f16_part(const std::uint16_t* p, int count) {
    return _mm256_cvtph_ps(halves_part(p, count));
  }
  static Type load_terms(const float* p) { return load(p); }
  static Type load_terms_part(const float* p, int count) { return load_part(p, count); }
  static void store(float* p, Type v) { _mm256_storeu_ps(p, v); }
  static void store_part(float* p, Type v, int count) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(count), index), v);
  }
  static Type add(Type a, Type b) { return _mm256_add_ps(a, b); }
  static Type fma(Type a, Type b, Type c) { return _mm256_fmadd_ps(a, b, c); }
  // A NaN becomes the quiet NaN 0x7fc00000.
  static Type canonical(Type v) {
    const Type nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    return _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  }

  // Lane i + d onto lane i for d = 4, 2, 1, for 8 vectors at once: each level adds two halves of
  // two vectors and packs them into one. Element r of the result is the sum of v[r].
  static Type butterfly(const Type* v) {
    Type a[4];
    for (int i = 0; i < 4; ++i) {
      a[i] = add(_mm256_permute2f128_ps(v[2 * i], v[2 * i + 1], 0x20),
                 _mm256_permute2f128_ps(v[2 * i], v[2 * i + 1], 0x31));
    }
    Type b[2];
    for (int i = 0; i < 2; ++i) {
      b[i] = add(_mm256_shuffle_ps(a[2 * i], a[2 * i + 1], 0x44),
                 _mm256_shuffle_ps(a[2 * i], a[2 * i + 1], 0xee));
    }
    const Type c = add(_mm256_shuffle_ps(b[0], b[1], 0x88), _mm256_shuffle_ps(b[0], b[1], 0xdd));
    return _mm256_permutevar8x32_ps(c, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }
};

}  // namespace
}  // namespace driftscope::matmul_detail

#include "kernels/matmul/matmul_simd.h"
// After it: uses its Vec and combine().
#include "kernels/matmul/matmul_codes_simd.h"
#include "kernels/matmul/matmul_gemm_simd.h"
#include "kernels/matmul/matmul_int8_simd.h"

namespace driftscope::matmul_detail {

const MatmulKernels kAvx2Kernels = {
    .vector_width = kWidth,
    .place_terms = kPlaceTerms,
    .tile_rows = kTileRows,
    .tile_outputs = kTileOutputs,
    .direct = run_direct,
    .pack = run_pack,
    .gemm = run_gemm,
    .finish = run_finish,
    .generic = run_generic,
    .codes = run_codes,
    .dequantise = run_dequantise,
    .int8_tile = run_int8_tile,
};

}  // namespace driftscope::matmul_detail
#endif
