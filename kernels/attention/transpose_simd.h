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

// Elements dim … dim + kWidth - 1 of one key's head, zero behind head_dim.
DRIFTSCOPE_INLINE Floats load_dims(const CacheBlock& block, std::int64_t key, std::int64_t dim) {
  const std::int64_t offset =
      (key * block.stride + dim) * static_cast<std::int64_t>(block.dtype == Dtype::f32 ? 4 : 2);
  const char* source = static_cast<const char*>(block.data) + offset;
  const std::int64_t left = block.head_dim - dim;
  return left >= kWidth ? load_as(block.dtype, source) : load_first_as(block.dtype, source, left);
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
