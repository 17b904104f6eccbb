// SPDX-License-Identifier: Apache-2.0
// Loading a block of the KV cache, for *_avx2.cpp and *_avx512.cpp only.
#pragma once

#include "kernels/attention/attention_vector.h"
#include "kernels/plan/simd_vector.h"

#if defined(__AVX2__) && defined(__FMA__)

namespace driftscope::simd {
namespace {

#if defined(__AVX512F__)

// Row i, column j of the 16 x 16 block becomes row j, column i.
DRIFTSCOPE_INLINE void transpose(Floats* rows) {
  Floats pairs[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  // quads[4 g + c]: in 128-bit part p, column 4 p + c of rows 4 g … 4 g + 3
  Floats quads[16];
  for (int i = 0; i < 16; i += 4) {
    const auto as_double = [&](int j) { return _mm512_castps_pd(pairs[i + j]); };
    quads[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(as_double(0), as_double(2)));
    quads[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(as_double(0), as_double(2)));
    quads[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(as_double(1), as_double(3)));
    quads[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(as_double(1), as_double(3)));
  }
  for (int c = 0; c < 4; ++c) {
    // Parts 0, 2 (low) and 1, 3 (high) of row groups 0, 1 and of 2, 3.
    const Floats low_top = _mm512_shuffle_f32x4(quads[c], quads[c + 4], 0x88);
    const Floats low_bottom = _mm512_shuffle_f32x4(quads[c + 8], quads[c + 12], 0x88);
    const Floats high_top = _mm512_shuffle_f32x4(quads[c], quads[c + 4], 0xdd);
    const Floats high_bottom = _mm512_shuffle_f32x4(quads[c + 8], quads[c + 12], 0xdd);
    rows[c] = _mm512_shuffle_f32x4(low_top, low_bottom, 0x88);
    rows[c + 8] = _mm512_shuffle_f32x4(low_top, low_bottom, 0xdd);
    rows[c + 4] = _mm512_shuffle_f32x4(high_top, high_bottom, 0x88);
    rows[c + 12] = _mm512_shuffle_f32x4(high_top, high_bottom, 0xdd);
  }
}

#else

// Row i, column j of the 8 x 8 block becomes row j, column i.
DRIFTSCOPE_INLINE void transpose(Floats* rows) {
  Floats pairs[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  // quads[4 g + c]: in 128-bit part p, column 4 p + c of rows 4 g … 4 g + 3
  Floats quads[8];
  for (int i = 0; i < 8; i += 4) {
    quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
  for (int c = 0; c < 4; ++c) {
    rows[c] = _mm256_permute2f128_ps(quads[c], quads[c + 4], 0x20);
    rows[c + 4] = _mm256_permute2f128_ps(quads[c], quads[c + 4], 0x31);
  }
}

#endif

// kWidth bytes of a coded cache, in the low half of what a register of bytes holds.
#if defined(__AVX512F__)
DRIFTSCOPE_INLINE __m128i load_bytes(const std::uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
DRIFTSCOPE_INLINE Floats int8_values(__m128i bytes) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}
// The bits of e4m3 in an f16 are 2^-8 of the value; 480 is where e4m3 has its NaN.
DRIFTSCOPE_INLINE Floats fp8_values(__m128i bytes) {
  const __m256i wide = _mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 7);
  const __m256i half = _mm256_and_si256(wide, _mm256_set1_epi16(static_cast<short>(0xbfff)));
  const Floats values = _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256.0F));
  const __mmask16 nan =
      _mm512_cmp_ps_mask(_mm512_abs_ps(values), _mm512_set1_ps(480.0F), _CMP_EQ_OQ);
  return _mm512_mask_mov_ps(values, nan, _mm512_set1_ps(__builtin_nanf("")));
}
#else
DRIFTSCOPE_INLINE __m128i load_bytes(const std::uint8_t* p) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
}
DRIFTSCOPE_INLINE Floats int8_values(__m128i bytes) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}
// The bits of e4m3 in an f16 are 2^-8 of the value; 480 is where e4m3 has its NaN.
DRIFTSCOPE_INLINE Floats fp8_values(__m128i bytes) {
  const __m128i wide = _mm_slli_epi16(_mm_cvtepi8_epi16(bytes), 7);
  const __m128i half = _mm_and_si128(wide, _mm_set1_epi16(static_cast<short>(0xbfff)));
  const Floats values = _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0F));
  const Floats size = _mm256_and_ps(values, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)));
  const Floats nan = _mm256_cmp_ps(size, _mm256_set1_ps(480.0F), _CMP_EQ_OQ);
  return _mm256_blendv_ps(values, _mm256_set1_ps(__builtin_nanf("")), nan);
}
#endif

// Elements dim … dim + kWidth - 1 of one key's head in a type of two or four bytes.
template <Dtype D>
DRIFTSCOPE_INLINE Floats load_plain(const CacheBlock& block, std::int64_t key, std::int64_t dim) {
  constexpr std::int64_t kElement = D == Dtype::f32 ? 4 : 2;
  const char* source = static_cast<const char*>(block.data) + (key * block.stride + dim) * kElement;
  const std::int64_t left = block.head_dim - dim;
  return left >= kWidth ? load_as(D, source) : load_first_as(D, source, left);
}

// The same where an element is one byte.
DRIFTSCOPE_INLINE Floats load_coded(const CacheBlock& block, std::int64_t key, std::int64_t dim) {
  const auto* source = static_cast<const std::uint8_t*>(block.data) + (key * block.stride + dim);
  const std::int64_t left = block.head_dim - dim;
  std::uint8_t part[16] = {};
  if (left < kWidth) {
    for (std::int64_t i = 0; i < left; ++i) part[i] = source[i];
    source = part;
  }
  const __m128i bytes = load_bytes(source);
  if (block.dtype == KvDtype::fp8_e4m3) return fp8_values(bytes);
  const Floats values = mul(int8_values(bytes), all(block.scales[key * block.scale_stride]));
  if (left >= kWidth) return values;
  float dims[kWidth];
  store(dims, values);
  return load_first(dims, left, all(0.0F));
}

// Zero behind head_dim.
DRIFTSCOPE_INLINE Floats load_dims(const CacheBlock& block, std::int64_t key, std::int64_t dim) {
  switch (block.dtype) {
    case KvDtype::f32:
      return load_plain<Dtype::f32>(block, key, dim);
    case KvDtype::f16:
      return load_plain<Dtype::f16>(block, key, dim);
    case KvDtype::bf16:
      return load_plain<Dtype::bf16>(block, key, dim);
    case KvDtype::fp8_e4m3:
    case KvDtype::int8:
      break;
  }
  return load_coded(block, key, dim);
}

void transpose_keys(const CacheBlock& block, float* target) {
  for (std::int64_t key = 0; key < kKeyChunk; key += kWidth) {
    for (std::int64_t dim = 0; dim < block.head_dim; dim += kWidth) {
      Floats rows[kWidth];
      for (std::int64_t i = 0; i < kWidth; ++i) {
        rows[i] = key + i < block.count ? load_dims(block, key + i, dim) : all(0.0F);
      }
      transpose(rows);
      const std::int64_t left = block.head_dim - dim;
      for (std::int64_t i = 0; i < kWidth && i < left; ++i) {
        store(target + (dim + i) * kKeyChunk + key, rows[i]);
      }
    }
  }
}

void widen_values(const CacheBlock& block, std::int64_t columns, float* target) {
  for (std::int64_t key = 0; key < block.count; ++key) {
    float* row = target + key * columns;
    for (std::int64_t dim = 0; dim + kWidth < columns; dim += kWidth) {
      store(row + dim, dim < block.head_dim ? load_dims(block, key, dim) : all(0.0F));
    }
    store(row + columns - kWidth, all(1.0F));
  }
}

}  // namespace
}  // namespace driftscope::simd

#endif
