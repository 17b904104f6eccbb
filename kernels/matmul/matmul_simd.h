// SPDX-License-Identifier: Apache-2.0
// Internal: the fast kernels, written over a `Vec` that the including file defines (AVX2: 8 floats,
// AVX-512: 16). Everything is internal to the file that includes it.
//
// L lanes are Q = L / W vectors. Lanes are independent, so they may be swept one vector after
// another or side by side: the same additions in the same order either way.
#pragma once

#include <cstdint>

#include "kernels/matmul/matmul_kernels.h"

#define DRIFTSCOPE_INLINE [[gnu::always_inline]] inline

namespace driftscope::matmul_detail {
namespace {

using V = Vec::Type;
constexpr int kWidth = Vec::width;
// Terms of K in one of a vector's W places: 1, or 2 where a place holds a pair of bf16.
constexpr int kPlaceTerms = Vec::terms;
constexpr int kVectorTerms = kWidth * kPlaceTerms;

DRIFTSCOPE_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// A vector of terms from element `index` on. Pairs: f32 is rounded to bf16 here, bf16 taken as is.
template <Dtype D>
DRIFTSCOPE_INLINE V load_weights(const void* data, std::int64_t index) {
  if constexpr (D == Dtype::f32) {
    return Vec::load_terms(static_cast<const float*>(data) + index);
  } else if constexpr (D == Dtype::f16) {
    return Vec::load_f16(static_cast<const std::uint16_t*>(data) + index);
  } else {
    return Vec::load_bf16(static_cast<const std::uint16_t*>(data) + index);
  }
}

// The first `count` elements (may be <= 0 or beyond the vector), the others +0.
template <Dtype D>
DRIFTSCOPE_INLINE V load_weights_part(const void* data, std::int64_t index, std::int64_t count) {
  if (count <= 0) return Vec::zero();
  if (count >= kVectorTerms) return load_weights<D>(data, index);
  const int part = static_cast<int>(count);
  if constexpr (D == Dtype::f32) {
    return Vec::load_terms_part(static_cast<const float*>(data) + index, part);
  } else if constexpr (D == Dtype::f16) {
    return Vec::load_f16_part(static_cast<const std::uint16_t*>(data) + index, part);
  } else {
    return Vec::load_bf16_part(static_cast<const std::uint16_t*>(data) + index, part);
  }
}

// Keeps a value that several multiply-adds use in a register: GCC would load it once for each.
DRIFTSCOPE_INLINE V pinned(V value) {
  asm("" : "+v"(value));
  return value;
}

// Step 3 for N outputs at once. sums: [Q][N] vectors, destroyed; result: [N]. Group outputs, at
// most W, come from one vector of sums, so that a row of a tile lies in one.
template <int N, int Q, int Group = kWidth>
DRIFTSCOPE_INLINE void combine_butterfly(V* sums, float* result) {
#pragma GCC unroll 4
  for (int d = Q / 2; d >= 1; d /= 2) {  // distances that are whole vectors
#pragma GCC unroll 128
    for (int i = 0; i < d * N; ++i) sums[i] = Vec::add(sums[i], sums[i + d * N]);
  }
#pragma GCC unroll 8
  for (int first = 0; first < N; first += Group) {  // distances inside a vector
    V group[kWidth];
#pragma GCC unroll 16
    for (int i = 0; i < kWidth; ++i) {
      group[i] = i < Group && first + i < N ? sums[first + i] : Vec::zero();
    }
    Vec::store_part(result + first, Vec::butterfly(group), N - first < Group ? N - first : Group);
  }
}

template <int N, int Q>
DRIFTSCOPE_INLINE void combine_sequential(const V* sums, float* result) {
  alignas(64) float lanes[Q][N][kWidth];
#pragma GCC unroll 128
  for (int i = 0; i < Q * N; ++i) Vec::store(&lanes[0][0][0] + i * kWidth, sums[i]);
  for (int i = 0; i < N; ++i) result[i] = lanes[0][i][0];
  for (int lane = 1; lane < Q * kWidth; ++lane) {
    for (int i = 0; i < N; ++i) result[i] += lanes[lane / kWidth][i][lane % kWidth];
  }
}

template <int N, int Q>
DRIFTSCOPE_INLINE void combine(LaneCombine how, V* sums, float* result) {
  if (how == LaneCombine::butterfly) {
    combine_butterfly<N, Q>(sums, result);
  } else {
    combine_sequential<N, Q>(sums, result);
  }
}

void run_finish(float* y, const float* bias, std::int64_t count) {
  for (std::int64_t j = 0; j < count; j += kWidth) {
    const int part = static_cast<int>(smaller(kWidth, count - j));
    V value = Vec::load_part(y + j, part);
    if (bias != nullptr) value = Vec::add(value, Vec::load_part(bias + j, part));
    Vec::store_part(y + j, Vec::canonical(value), part);
  }
}

// ---- few rows: the weights are read once, from memory, and widened in registers ----

// Where a row fetches ahead, in bytes from its place `at`: a little further along it and at its end
// the begin of its like in the next tile; or for short rows the same place of the next tile. (Long
// rows of a next tile would be gone from the cache again, and eight rows of 4 KiB with the eight
// after them would all want one set of it.)
struct FetchAhead {
  std::int64_t distance;
  std::int64_t row_end;
  std::int64_t jump;  // from a row's end to the next tile
  [[nodiscard, gnu::always_inline]] std::int64_t from(std::int64_t at) const {
    const std::int64_t ahead = at + distance;
    return ahead < row_end ? ahead : ahead + jump;
  }
};

DRIFTSCOPE_INLINE FetchAhead fetch_ahead(std::int64_t row_bytes, std::int64_t length_bytes,
                                         std::int64_t rows) {
  if (row_bytes < 4096) return {rows * row_bytes, length_bytes, 0};
  return {1024, length_bytes, rows * row_bytes - length_bytes};
}

// Two lines of a row at a time: memory gives more so than line by line from row to row.
constexpr std::int64_t kFetchBytes = 128;

// One step of MR rows of x and NR of w, from term k on.
template <Dtype D, int Q, int MR, int NR>
DRIFTSCOPE_INLINE void direct_step(const float* const* x, const char* const* w, std::int64_t k,
                                   V (&sums)[Q][MR * NR]) {
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q) {
    V weights[NR];
#pragma GCC unroll 8
    for (int j = 0; j < NR; ++j) weights[j] = load_weights<D>(w[j], k + q * kVectorTerms);
#pragma GCC unroll 8
    for (int i = 0; i < MR; ++i) {
      const V row = pinned(load_weights<Dtype::f32>(x[i], k + q * kVectorTerms));
#pragma GCC unroll 8
      for (int j = 0; j < NR; ++j) {
        sums[q][i * NR + j] = Vec::fma(row, weights[j], sums[q][i * NR + j]);
      }
    }
  }
}

template <Dtype D, int Q, int MR, int NR>
[[gnu::noinline]] void direct_tile(const DirectJob& job, std::int64_t i0, std::int64_t j0) {
  constexpr std::int64_t kStep = std::int64_t{Q} * kVectorTerms;
  constexpr std::int64_t kElement = D == Dtype::f32 ? 4 : 2;
  const float* x[MR];
  const char* w[NR];
  for (int i = 0; i < MR; ++i) x[i] = job.x + (i0 + i) * job.x_stride;
  for (int j = 0; j < NR; ++j) {
    w[j] = static_cast<const char*>(job.w) + (j0 + j) * job.w_stride * kElement;
  }
  V sums[Q][MR * NR];
#pragma GCC unroll 32
  for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 32
    for (int t = 0; t < MR * NR; ++t) sums[q][t] = Vec::zero();
  }
  const FetchAhead fetch = fetch_ahead(job.w_stride * kElement, job.length * kElement, NR);
  constexpr std::int64_t kStepBytes = kStep * kElement;
  constexpr std::int64_t kSteps = kStepBytes < kFetchBytes ? kFetchBytes / kStepBytes : 1;
  std::int64_t k = 0;
  for (; k + kSteps * kStep <= job.length; k += kSteps * kStep) {
    const std::int64_t ahead = fetch.from(k * kElement);
#pragma GCC unroll 8
    for (int j = 0; j < NR; ++j) {
#pragma GCC unroll 8
      for (std::int64_t line = 0; line < kSteps * kStepBytes; line += 64) {
        __builtin_prefetch(w[j] + ahead + line);
      }
    }
#pragma GCC unroll 4
    for (std::int64_t s = 0; s < kSteps; ++s) {
      direct_step<D, Q, MR, NR>(x, w, k + s * kStep, sums);
    }
  }
  if constexpr (kSteps > 1) {
    for (; k + kStep <= job.length; k += kStep) direct_step<D, Q, MR, NR>(x, w, k, sums);
  }
  if (k < job.length) {  // the last step: some terms, then padding
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      const std::int64_t index = k + q * kVectorTerms;
      const std::int64_t count = job.length - index;
#pragma GCC unroll 8
      for (int j = 0; j < NR; ++j) {
        const V weights = load_weights_part<D>(w[j], index, count);
#pragma GCC unroll 8
        for (int i = 0; i < MR; ++i) {
          const V row = load_weights_part<Dtype::f32>(x[i], index, count);
          sums[q][i * NR + j] = Vec::fma(row, weights, sums[q][i * NR + j]);
        }
      }
    }
  }
  float result[MR * NR];
  combine<MR * NR, Q>(job.combine, &sums[0][0], result);
  for (int i = 0; i < MR; ++i) {
    for (int j = 0; j < NR; ++j) job.out[(i0 + i) * job.out_stride + j0 + j] = result[i * NR + j];
  }
}

// Outputs side by side for MR rows of Q vectors each, so that sums and weights stay in registers.
template <int Q, int MR>
constexpr int direct_outputs() {
  constexpr int kSums = Vec::registers == 32 ? 24 : 12;
  constexpr int kMost = MR == 1 ? (Vec::registers == 32 ? 8 : 4) : 4;
  constexpr int fitting = kSums / (Q * MR);
  return fitting < 1 ? 1 : (fitting > kMost ? kMost : fitting);
}

template <Dtype D, int Q, int MR>
void direct_rows(const DirectJob& job, std::int64_t i0, std::int64_t j0, std::int64_t count) {
  constexpr int NR = direct_outputs<Q, MR>();
  std::int64_t j = j0;
  for (; j + NR <= j0 + count; j += NR) direct_tile<D, Q, MR, NR>(job, i0, j);
  for (; j < j0 + count; ++j) direct_tile<D, Q, MR, 1>(job, i0, j);
}

// Rows taken together are at most 4 (AVX-512) or 3 (AVX2), spread evenly over the passes. A pass
// covers few outputs, so that later passes find their weights in the cache.
template <Dtype D, int Q>
void direct_lanes(const DirectJob& job) {
  constexpr std::int64_t kMost = Vec::registers == 32 ? 4 : 3;
  constexpr std::int64_t kOutputs = 24;
  for (std::int64_t j = 0; j < job.n; j += kOutputs) {
    const std::int64_t count = smaller(kOutputs, job.n - j);
    std::int64_t i = 0;
    for (std::int64_t passes = (job.m + kMost - 1) / kMost; passes > 0; --passes) {
      const std::int64_t rows = (job.m - i + passes - 1) / passes;
      switch (rows) {
        case 1:
          direct_rows<D, Q, 1>(job, i, j, count);
          break;
        case 2:
          direct_rows<D, Q, 2>(job, i, j, count);
          break;
        case 3:
          direct_rows<D, Q, 3>(job, i, j, count);
          break;
        default:
          if constexpr (kMost == 4) direct_rows<D, Q, 4>(job, i, j, count);
          break;
      }
      i += rows;
    }
  }
}

template <Dtype D>
void direct_dtype(const DirectJob& job) {
  switch (job.lanes / kWidth) {
    case 1:
      return direct_lanes<D, 1>(job);
    case 2:
      return direct_lanes<D, 2>(job);
    case 4:
      return direct_lanes<D, 4>(job);
    default:
      if constexpr (kWidth == 8) return direct_lanes<D, 8>(job);
  }
}

void run_direct(const DirectJob& job) {
  if constexpr (kPlaceTerms == 2) {
    return direct_dtype<Dtype::bf16>(job);
  } else {
    switch (job.dtype) {
      case Dtype::f32:
        return direct_dtype<Dtype::f32>(job);
      case Dtype::f16:
        return direct_dtype<Dtype::f16>(job);
      case Dtype::bf16:
      case Dtype::f64:  // never a weight type
        return direct_dtype<Dtype::bf16>(job);
    }
  }
}

}  // namespace
}  // namespace driftscope::matmul_detail
