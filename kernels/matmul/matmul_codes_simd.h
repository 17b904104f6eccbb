// SPDX-License-Identifier: Apache-2.0
// Internal: few rows against quantised weights, straight from the codes. Included after
// matmul_simd.h by the file of each instruction set. Each code becomes its f32 value (quantise.h),
// then follows the plan like any other weight.
#pragma once

#include <cstdint>

#include "kernels/matmul/matmul_kernels.h"

namespace driftscope::matmul_detail {
namespace {

// e4m3 bits in the exponent and fraction of an f16 stand for 2^-8 of their value, subnormals too,
// and there is no NaN among weights. Scaling by a power of two is exact, so 256 · scale is used.
constexpr float kFp8Scale = 256.0F;

#if defined(__AVX512F__)

struct Codes {
  using Words = __m512i;  // one block of int4: 16 words
  static constexpr int words_vectors = 8;

  static V from_int8(__m128i bytes) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)); }
  static V from_fp8(__m128i bytes) {
    const __m256i wide = _mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 7);
    return _mm512_cvtph_ps(_mm256_and_si256(wide, _mm256_set1_epi16(static_cast<short>(0xbfff))));
  }
  static __m128i load(const std::uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static __m128i load_part(const std::uint8_t* p, int count) {
    return _mm_maskz_loadu_epi8(Vec::first(count), p);
  }
  static V multiply(V a, V b) { return _mm512_mul_ps(a, b); }
  static V all(float value) { return _mm512_set1_ps(value); }
  static V keep_first(V value, int count) { return _mm512_maskz_mov_ps(Vec::first(count), value); }

  // The sixteen values of a group.
  struct Table {
    V values;
  };
  static Table table(float scale, float zero) {
    const V codes = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return {_mm512_mul_ps(_mm512_sub_ps(codes, _mm512_set1_ps(zero)), _mm512_set1_ps(scale))};
  }
  static Words load_block(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
  // Vector `v` of the block; the permutation looks at the lowest four bits of each word.
  static V value(const Table& table, const Words& words, int v) {
    return _mm512_permutexvar_ps(_mm512_srli_epi32(words, static_cast<unsigned>(4 * v)),
                                 table.values);
  }
};

#else

struct Codes {
  struct Words {
    __m256i half[2];  // words 0 … 7 and 8 … 15 of a block
  };
  static constexpr int words_vectors = 16;

  static V from_int8(__m128i bytes) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)); }
  static V from_fp8(__m128i bytes) {
    const __m128i wide = _mm_slli_epi16(_mm_cvtepi8_epi16(bytes), 7);
    return _mm256_cvtph_ps(_mm_and_si128(wide, _mm_set1_epi16(static_cast<short>(0xbfff))));
  }
  static __m128i load(const std::uint8_t* p) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  }
  static __m128i load_part(const std::uint8_t* p, int count) {
    alignas(16) std::uint8_t part[16] = {};
    for (int i = 0; i < count; ++i) part[i] = p[i];
    return load(part);
  }
  static V multiply(V a, V b) { return _mm256_mul_ps(a, b); }
  static V all(float value) { return _mm256_set1_ps(value); }
  static V keep_first(V value, int count) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), index);
    return _mm256_and_ps(value, _mm256_castsi256_ps(mask));
  }

  struct Table {
    V low;
    V high;
  };
  static Table table(float scale, float zero) {
    const V low = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
    const V high = _mm256_setr_ps(8, 9, 10, 11, 12, 13, 14, 15);
    const V at_zero = _mm256_set1_ps(zero);
    const V factor = _mm256_set1_ps(scale);
    return {_mm256_mul_ps(_mm256_sub_ps(low, at_zero), factor),
            _mm256_mul_ps(_mm256_sub_ps(high, at_zero), factor)};
  }
  static Words load_block(const std::uint8_t* p) {
    const auto* words = reinterpret_cast<const __m256i*>(p);
    return {{_mm256_loadu_si256(words), _mm256_loadu_si256(words + 1)}};
  }
  // The permutation looks at three bits of each word; the fourth, moved to the sign, chooses.
  static V value(const Table& table, const Words& words, int v) {
    const __m256i index = _mm256_srli_epi32(words.half[v % 2], 4 * (v / 2));
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(table.low, index),
                            _mm256_permutevar8x32_ps(table.high, index),
                            _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
  }
};

#endif

enum class CodeKind { int8, fp8 };

template <CodeKind Kind>
DRIFTSCOPE_INLINE V byte_values(__m128i bytes) {
  if constexpr (Kind == CodeKind::int8) return Codes::from_int8(bytes);
  return Codes::from_fp8(bytes);
}

// The first `count` terms (may be <= 0 or >= W), the others +0: code 0 stands for +0.
template <CodeKind Kind>
DRIFTSCOPE_INLINE V byte_values_part(const std::uint8_t* p, std::int64_t count) {
  if (count <= 0) return Vec::zero();
  if (count >= kWidth) return byte_values<Kind>(Codes::load(p));
  return byte_values<Kind>(Codes::load_part(p, static_cast<int>(count)));
}

// Stores MR x NR results.
template <int Q, int MR, int NR>
DRIFTSCOPE_INLINE void finish_codes_tile(const CodesJob& job, V* sums, std::int64_t i0,
                                         std::int64_t j0) {
  float result[MR * NR];
  combine<MR * NR, Q>(job.combine, sums, result);
  for (int i = 0; i < MR; ++i) {
    for (int j = 0; j < NR; ++j) job.out[(i0 + i) * job.out_stride + j0 + j] = result[i * NR + j];
  }
}

// ---- one byte a term, one scale a row ----

template <CodeKind Kind, int Q, int MR, int NR>
[[gnu::noinline]] void bytes_tile(const CodesJob& job, std::int64_t i0, std::int64_t j0) {
  constexpr std::int64_t kLanes = std::int64_t{Q} * kWidth;
  const float* x[MR];
  const std::uint8_t* w[NR];
  V scale[NR];
  for (int i = 0; i < MR; ++i) x[i] = job.x + (i0 + i) * job.x_stride;
  for (int j = 0; j < NR; ++j) {
    const float stored = job.codes.scales[(j0 + j) * job.codes.scale_stride];
    w[j] = job.codes.codes + (j0 + j) * job.codes.code_stride + job.begin;
    scale[j] = Codes::all(Kind == CodeKind::fp8 ? stored * kFp8Scale : stored);
  }
  V sums[Q][MR * NR];
#pragma GCC unroll 4
  for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 32
    for (int t = 0; t < MR * NR; ++t) sums[q][t] = Vec::zero();
  }
  const std::int64_t ahead = NR * job.codes.code_stride;  // the next tile's rows
  std::int64_t k = 0;
  for (; k + kLanes <= job.length; k += kLanes) {
    if (k % 64 == 0) {
#pragma GCC unroll 8
      for (int j = 0; j < NR; ++j) __builtin_prefetch(w[j] + k + ahead);
    }
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      V weights[NR];
#pragma GCC unroll 8
      for (int j = 0; j < NR; ++j) {
        weights[j] =
            Codes::multiply(byte_values<Kind>(Codes::load(w[j] + k + q * kWidth)), scale[j]);
      }
#pragma GCC unroll 8
      for (int i = 0; i < MR; ++i) {
        const V row = pinned(Vec::load(x[i] + k + q * kWidth));
#pragma GCC unroll 8
        for (int j = 0; j < NR; ++j) {
          sums[q][i * NR + j] = Vec::fma(row, weights[j], sums[q][i * NR + j]);
        }
      }
    }
  }
  if (k < job.length) {  // the last step: some terms, then padding
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      const std::int64_t index = k + q * kWidth;
      const std::int64_t count = job.length - index;
#pragma GCC unroll 8
      for (int j = 0; j < NR; ++j) {
        const V weights = Codes::multiply(byte_values_part<Kind>(w[j] + index, count), scale[j]);
#pragma GCC unroll 8
        for (int i = 0; i < MR; ++i) {
          const V row = load_weights_part<Dtype::f32>(x[i], index, count);
          sums[q][i * NR + j] = Vec::fma(row, weights, sums[q][i * NR + j]);
        }
      }
    }
  }
  finish_codes_tile<Q, MR, NR>(job, &sums[0][0], i0, j0);
}

// ---- blocks of int4, a scale for each group ----

// The values of row `row`'s group that holds term `k` (counted from the row's start).
DRIFTSCOPE_INLINE Codes::Table group_table(const QuantisedView& view, std::int64_t row,
                                           std::int64_t k) {
  const std::int64_t at = row * view.scale_stride + k / view.group;
  return Codes::table(view.scales[at],
                      view.zeros == nullptr ? 8.0F : static_cast<float>(view.zeros[at]));
}

// Vectors first … last - 1 of a block that is not taken whole. x: [MR] rows at the block's start;
// `terms` of the block belong to the chunk, what follows up to `last` is padding.
template <int Q, int MR, int NR>
DRIFTSCOPE_INLINE void int4_edge(const CodesJob& job, const float* const* x,
                                 const std::uint8_t* const* w, std::int64_t j0, std::int64_t k,
                                 std::int64_t first, std::int64_t last, std::int64_t terms,
                                 V (*sums)[MR * NR]) {
  Codes::Words words[NR];
  for (int j = 0; j < NR; ++j) words[j] = Codes::load_block(w[j] + k / 2);
#pragma GCC unroll 16
  for (int v = 0; v < Codes::words_vectors; ++v) {
    if (v < first || v >= last) continue;
    const std::int64_t left = terms - v * kWidth;
    const int count = static_cast<int>(left < 0 ? 0 : smaller(left, kWidth));
#pragma GCC unroll 8
    for (int j = 0; j < NR; ++j) {
      V weights = Vec::zero();
      if (count > 0) {
        const auto table = group_table(job.codes, j0 + j, k + v * kWidth);
        weights = Codes::keep_first(Codes::value(table, words[j], v), count);
      }
#pragma GCC unroll 8
      for (int i = 0; i < MR; ++i) {
        const V row = load_weights_part<Dtype::f32>(x[i], v * kWidth, count);
        sums[v % Q][i * NR + j] = Vec::fma(row, weights, sums[v % Q][i * NR + j]);
      }
    }
  }
}

// A chunk begins on a whole step of the lanes, so each vector of a block keeps its lanes.
template <int Q, int MR, int NR>
[[gnu::noinline]] void int4_tile(const CodesJob& job, std::int64_t i0, std::int64_t j0) {
  constexpr int kVectors = Codes::words_vectors;
  constexpr std::int64_t kLanes = std::int64_t{Q} * kWidth;
  const QuantisedView& view = job.codes;
  const bool small_groups = view.group < kInt4Block;
  const std::int64_t end = job.begin + job.length;
  const float* x[MR];  // where term 0 of the row would be
  const std::uint8_t* w[NR];
  for (int i = 0; i < MR; ++i) x[i] = job.x + (i0 + i) * job.x_stride - job.begin;
  for (int j = 0; j < NR; ++j) w[j] = view.codes + (j0 + j) * view.code_stride;
  V sums[Q][MR * NR];
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 32
    for (int t = 0; t < MR * NR; ++t) sums[q][t] = Vec::zero();
  }
  const std::int64_t ahead = NR * view.code_stride;  // the next tile's rows
  for (std::int64_t k = job.begin / kInt4Block * kInt4Block; k < end; k += kInt4Block) {
    if (k < job.begin || k + kInt4Block > end) {
      const float* rows[MR];
      for (int i = 0; i < MR; ++i) rows[i] = x[i] + k;
      const std::int64_t first = k < job.begin ? (job.begin - k) / kWidth : 0;
      const std::int64_t terms = smaller(end - k, kInt4Block);
      const std::int64_t last = (terms + kLanes - 1) / kLanes * Q;
      int4_edge<Q, MR, NR>(job, rows, w, j0, k, first, last, terms, sums);
      continue;
    }
    Codes::Table tables[NR];
    Codes::Words words[NR];
#pragma GCC unroll 8
    for (int j = 0; j < NR; ++j) {
      const std::uint8_t* block = w[j] + k / 2;
      __builtin_prefetch(block + ahead);
      words[j] = Codes::load_block(block);
      tables[j] = group_table(view, j0 + j, k);
    }
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      if (small_groups && v > 0 && v * kWidth % 16 == 0 && v * kWidth % view.group == 0) {
#pragma GCC unroll 8
        for (int j = 0; j < NR; ++j) tables[j] = group_table(view, j0 + j, k + v * kWidth);
      }
      V row[MR];
#pragma GCC unroll 8
      for (int i = 0; i < MR; ++i) row[i] = pinned(Vec::load(x[i] + k + v * kWidth));
#pragma GCC unroll 8
      for (int j = 0; j < NR; ++j) {
        const V weights = Codes::value(tables[j], words[j], v);
#pragma GCC unroll 8
        for (int i = 0; i < MR; ++i) {
          sums[v % Q][i * NR + j] = Vec::fma(row[i], weights, sums[v % Q][i * NR + j]);
        }
      }
    }
  }
  finish_codes_tile<Q, MR, NR>(job, &sums[0][0], i0, j0);
}

// ---- which tile ----

// Outputs side by side so that the sums and the words, tables or scales of each stay in registers;
// more outputs share one reading of x and one combination of lanes.
template <int Q, int MR>
constexpr int codes_outputs(bool int4) {
  if (Vec::registers == 32) {
    if (Q * MR >= 8) return 2;
    if (Q * MR >= 4) return 4;
    return MR > 1 ? 4 : (int4 ? 6 : 8);
  }
  return Q * MR >= 4 ? 1 : 2;
}

template <int Q, int MR, int NR>
DRIFTSCOPE_INLINE void codes_tile(const CodesJob& job, std::int64_t i0, std::int64_t j0) {
  if (job.codes.is_int4()) return int4_tile<Q, MR, NR>(job, i0, j0);
  if (job.codes.is_fp8()) return bytes_tile<CodeKind::fp8, Q, MR, NR>(job, i0, j0);
  return bytes_tile<CodeKind::int8, Q, MR, NR>(job, i0, j0);
}

template <int Q, int MR, int NR>
void codes_rows(const CodesJob& job, std::int64_t i0) {
  std::int64_t j = 0;
  for (; j + NR <= job.n; j += NR) codes_tile<Q, MR, NR>(job, i0, j);
  for (; j < job.n; ++j) codes_tile<Q, MR, 1>(job, i0, j);
}

template <int Q, int MR>
void codes_rows_of(const CodesJob& job, std::int64_t i0) {
  constexpr int kInt4Outputs = codes_outputs<Q, MR>(true);
  constexpr int kByteOutputs = codes_outputs<Q, MR>(false);
  if (job.codes.is_int4()) return codes_rows<Q, MR, kInt4Outputs>(job, i0);
  codes_rows<Q, MR, kByteOutputs>(job, i0);
}

template <int Q>
void codes_lanes(const CodesJob& job) {
  std::int64_t i = 0;
  for (; i + 2 <= job.m; i += 2) codes_rows_of<Q, 2>(job, i);
  if (i < job.m) codes_rows_of<Q, 1>(job, i);
}

void run_codes(const CodesJob& job) {
  switch (job.lanes / kWidth) {
    case 1:
      return codes_lanes<1>(job);
    case 2:
      return codes_lanes<2>(job);
    case 4:
      return codes_lanes<4>(job);
    default:
      if constexpr (kWidth == 8) return codes_lanes<8>(job);
  }
}

// ---- to f32, for everything else ----

// The first `count` elements; whole vectors by plain stores, which loads soon after can follow.
DRIFTSCOPE_INLINE void store_first(float* target, V values, std::int64_t count) {
  if (count >= kWidth) return Vec::store(target, values);
  Vec::store_part(target, values, static_cast<int>(count));
}

void dequantise_bytes(const DequantiseJob& job, std::int64_t row) {
  const std::uint8_t* w = job.codes.codes + row * job.codes.code_stride + job.begin;
  float* target = job.target + row * job.target_stride;
  const float scale = job.codes.scales[row * job.codes.scale_stride];
  const bool fp8 = job.codes.is_fp8();
  const V factor = Codes::all(fp8 ? scale * kFp8Scale : scale);
  for (std::int64_t k = 0; k < job.length; k += kWidth) {
    const std::int64_t count = job.length - k;
    const V values = fp8 ? byte_values_part<CodeKind::fp8>(w + k, count)
                         : byte_values_part<CodeKind::int8>(w + k, count);
    store_first(target + k, Codes::multiply(values, factor), count);
  }
}

void dequantise_int4(const DequantiseJob& job, std::int64_t row) {
  const std::uint8_t* w = job.codes.codes + row * job.codes.code_stride + job.begin / 2;
  float* target = job.target + row * job.target_stride;
  for (std::int64_t k = 0; k < job.length; k += kInt4Block) {
    const Codes::Words words = Codes::load_block(w + k / 2);
    Codes::Table table = group_table(job.codes, row, job.begin + k);
#pragma GCC unroll 16
    for (int v = 0; v < Codes::words_vectors; ++v) {
      const std::int64_t at = k + v * kWidth;
      if (at >= job.length) break;
      if (v > 0 && (job.begin + at) % job.codes.group == 0) {
        table = group_table(job.codes, row, job.begin + at);
      }
      store_first(target + at, Codes::value(table, words, v), job.length - at);
    }
  }
}

void run_dequantise(const DequantiseJob& job) {
  for (std::int64_t row = 0; row < job.rows; ++row) {
    if (job.codes.is_int4()) {
      dequantise_int4(job, row);
    } else {
      dequantise_bytes(job, row);
    }
  }
}

}  // namespace
}  // namespace driftscope::matmul_detail
