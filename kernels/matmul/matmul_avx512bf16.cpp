// SPDX-License-Identifier: Apache-2.0
// bf16_dot: the processor's dot product of bf16 pairs, in the frame of the other fast kernels.
#if defined(__AVX512BF16__)
// GCC 12 takes _mm512_undefined_ps() in its own header for a mistake (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include "kernels/matmul/matmul_vec_avx512.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")
#endif

namespace driftscope::matmul_detail {
namespace {

// 16 f32 sums, or 16 pairs of bf16 in the same bits.
struct Vec : Avx512Vec {
  static constexpr int terms = 2;

  static Type pairs(__m512i bits) { return _mm512_castsi512_ps(bits); }
  static Type load_bf16(const std::uint16_t* p) { return pairs(_mm512_loadu_si512(p)); }
  static Type load_bf16_part(const std::uint16_t* p, int count) {
    return pairs(_mm512_maskz_loadu_epi16(static_cast<__mmask32>((1ULL << count) - 1U), p));
  }
  // Rounded to nearest even; subnormals become zero.
  static Type round_pairs(Type low, Type high) {
    return reinterpret_cast<Type>(_mm512_cvtne2ps_pbh(high, low));
  }
  static Type load_terms(const float* p) { return round_pairs(load(p), load(p + width)); }
  static Type load_terms_part(const float* p, int count) {
    if (count <= width) return round_pairs(load_part(p, count), zero());
    return round_pairs(load(p), load_part(p + width, count - width));
  }
  static Type fma(Type a, Type b, Type c) {
    return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

}  // namespace
}  // namespace driftscope::matmul_detail

#include "kernels/matmul/matmul_simd.h"
// After it: uses its Vec and combine().
#include "kernels/matmul/matmul_gemm_simd.h"

namespace driftscope::matmul_detail {

const MatmulKernels kAvx512Bf16Kernels = {
    .vector_width = kWidth,
    .place_terms = kPlaceTerms,
    .tile_rows = kTileRows,
    .tile_outputs = kTileOutputs,
    .direct = run_direct,
    .pack = run_pack,
    .gemm = run_gemm,
    .finish = run_finish,
    .generic = nullptr,  // bf16 weights and the plans of the vectors only
    .codes = nullptr,
    .dequantise = nullptr,
    .int8_tile = nullptr,
};

}  // namespace driftscope::matmul_detail
#endif
