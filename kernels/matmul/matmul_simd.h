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

DRIFTSCOPE_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

template <Dtype D>
DRIFTSCOPE_INLINE V load_weights(const void* data, std::int64_t index) {
  if constexpr (D == Dtype::f32) {
    return Vec::load(static_cast<const float*>(data) + index);
  } else if constexpr (D == Dtype::f16) {
    return Vec::load_f16(static_cast<const std::uint16_t*>(data) + index);
  } else {
    return Vec::load_bf16(static_cast<const std::uint16_t*>(data) + index);
  }
}

// The first `count` elements (may be <= 0 or >= W), the others +0.
template <Dtype D>
DRIFTSCOPE_INLINE V load_weights_part(const void* data, std::int64_t index, std::int64_t count) {
  if (count <= 0) return Vec::zero();
  if (count >= kWidth) return load_weights<D>(data, index);
  const int part = static_cast<int>(count);
  if constexpr (D == Dtype::f32) {
    return Vec::load_part(static_cast<const float*>(data) + index, part);
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

// ---- few rows: the weights are read once, from memory, and widened in registers ----

template <Dtype D, int Q, int MR, int NR>
[[gnu::noinline]] void direct_tile(const DirectJob& job, std::int64_t i0, std::int64_t j0) {
  constexpr std::int64_t kLanes = std::int64_t{Q} * kWidth;
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
  const std::int64_t ahead = NR * job.w_stride * kElement;  // the next tile's rows
  std::int64_t k = 0;
  for (; k + kLanes <= job.length; k += kLanes) {
#pragma GCC unroll 8
    for (int j = 0; j < NR; ++j) {
#pragma GCC unroll 2
      for (std::int64_t line = 0; line < kLanes * kElement; line += 64) {
        __builtin_prefetch(w[j] + k * kElement + ahead + line);
      }
    }
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      V weights[NR];
#pragma GCC unroll 8
      for (int j = 0; j < NR; ++j) weights[j] = load_weights<D>(w[j], k + q * kWidth);
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

// ---- many rows: packed panels, a register tile of one vector an output, k innermost ----

template <Dtype D>
void pack_row(const PackJob& job, std::int64_t r) {
  const std::int64_t lanes = job.layout.lanes;
  const std::int64_t steps = job.layout.steps;
  const std::int64_t panel_step = job.panel_rows * kWidth;
  const std::int64_t length = r < job.rows ? job.length : 0;
  const std::int64_t whole = length / lanes;
  for (std::int64_t q = 0; q < lanes / kWidth; ++q) {
    const std::int64_t first = r * job.stride + q * kWidth;
    float* target = job.target + q * steps * panel_step + r * kWidth;
    std::int64_t t = 0;
    for (; t < whole; ++t) {
      Vec::store(target + t * panel_step, load_weights<D>(job.source, first + t * lanes));
    }
    for (; t < steps; ++t) {
      const std::int64_t left = length - t * lanes - q * kWidth;
      Vec::store(target + t * panel_step,
                 load_weights_part<D>(job.source, first + t * lanes, left));
    }
  }
}

template <Dtype D>
void pack_dtype(const PackJob& job) {
  for (std::int64_t r = 0; r < job.panel_rows; ++r) pack_row<D>(job, r);
}

void run_pack(const PackJob& job) {
  switch (job.dtype) {
    case Dtype::f32:
      return pack_dtype<Dtype::f32>(job);
    case Dtype::f16:
      return pack_dtype<Dtype::f16>(job);
    case Dtype::bf16:
    case Dtype::f64:  // never a weight type
      return pack_dtype<Dtype::bf16>(job);
  }
}

constexpr int kTileRows = Vec::tile_rows;
constexpr int kTileOutputs = Vec::tile_outputs;
constexpr int kTile = kTileRows * kTileOutputs;

// sums[i][j] += over the steps of one sweep. x: [steps][rows][W], w: [steps][outputs][W].
DRIFTSCOPE_INLINE void sweep(const float* x, const float* w, std::int64_t steps, V* sums) {
  for (std::int64_t t = 0; t < steps; ++t) {
    V weights[kTileOutputs];
#pragma GCC unroll 8
    for (int j = 0; j < kTileOutputs; ++j) weights[j] = Vec::load(w + j * kWidth);
#pragma GCC unroll 8
    for (int i = 0; i < kTileRows; ++i) {
      const V row = pinned(Vec::load(x + i * kWidth));
#pragma GCC unroll 8
      for (int j = 0; j < kTileOutputs; ++j) {
        sums[i * kTileOutputs + j] = Vec::fma(row, weights[j], sums[i * kTileOutputs + j]);
      }
    }
    x += kTileRows * kWidth;
    w += kTileOutputs * kWidth;
  }
}

DRIFTSCOPE_INLINE void load_tile(V* sums, const V* memory) {
#pragma GCC unroll 32
  for (int i = 0; i < kTile; ++i) sums[i] = memory[i];
}

DRIFTSCOPE_INLINE void clear_tile(V* sums) {
#pragma GCC unroll 32
  for (int i = 0; i < kTile; ++i) sums[i] = Vec::zero();
}

void store_tile(const GemmJob& job, const float* result, int row_stride, std::int64_t i0,
                std::int64_t j0) {
  const std::int64_t rows = smaller(kTileRows, job.m - i0);
  const std::int64_t columns = smaller(kTileOutputs, job.n - j0);
  for (std::int64_t i = 0; i < rows; ++i) {
    float* out = job.out + (i0 + i) * job.out_stride + j0;
    for (std::int64_t j = 0; j < columns; ++j) out[j] = result[i * row_stride + j];
  }
}

// Part of a panel: sweeps q0 … q0 + count, steps t0 … t0 + steps of each.
struct Block {
  std::int64_t q0;
  std::int64_t count;
  std::int64_t t0;
  std::int64_t steps;
};

// One tile over one block. x, w: its panels; memory: [Q][tile], the sums of the blocks so far.
template <int Q>
DRIFTSCOPE_INLINE void tile_block(const GemmJob& job, const float* x, const float* w,
                                  const Block& block, V* memory, std::int64_t i0, std::int64_t j0) {
  const bool last = block.t0 + block.steps == job.layout.steps && block.q0 + block.count == Q;
  V sums[kTile];
  std::int64_t q = block.q0;
  do {
    const std::int64_t offset = (q * job.layout.steps + block.t0) * kWidth;
    if (block.t0 == 0) {
      clear_tile(sums);
    } else {
      load_tile(sums, memory + q * kTile);
    }
    sweep(x + offset * kTileRows, w + offset * kTileOutputs, block.steps, sums);
    if (q + 1 < Q || !last) load_tile(memory + q * kTile, sums);
  } while (++q < block.q0 + block.count);
  if (!last) return;
  V all[Q * kTile];
#pragma GCC unroll 256
  for (int i = 0; i < (Q - 1) * kTile; ++i) all[i] = memory[i];
  load_tile(all + (Q - 1) * kTile, sums);
  float result[kTile];
  combine<kTile, Q>(job.combine, all, result);
  store_tile(job, result, kTileOutputs, i0, j0);
}

// All tiles over one block before the next block; a tile keeps its sums in memory in between.
template <int Q>
void gemm_lanes(const GemmJob& job) {
  const PanelLayout& layout = job.layout;
  const std::int64_t panel = layout.steps * layout.lanes;
  const bool single = layout.sweeps == Q && layout.block_steps == layout.steps;
  for (std::int64_t q0 = 0; q0 < Q; q0 += layout.sweeps) {
    for (std::int64_t t0 = 0; t0 < layout.steps; t0 += layout.block_steps) {
      const Block block{q0, layout.sweeps, t0, smaller(layout.block_steps, layout.steps - t0)};
      V* saved = reinterpret_cast<V*>(job.accumulators);
      for (std::int64_t j0 = 0; j0 < job.n; j0 += kTileOutputs) {
        for (std::int64_t i0 = 0; i0 < job.m; i0 += kTileRows) {
          V local[Q * kTile];
          tile_block<Q>(job, job.x + i0 * panel, job.w + j0 * panel, block, single ? local : saved,
                        i0, j0);
          saved += Q * kTile;
        }
      }
    }
  }
}

void run_gemm(const GemmJob& job) {
  switch (job.layout.lanes / kWidth) {
    case 1:
      return gemm_lanes<1>(job);
    case 2:
      return gemm_lanes<2>(job);
    case 4:
      return gemm_lanes<4>(job);
    default:
      if constexpr (kWidth == 8) return gemm_lanes<8>(job);
  }
}

}  // namespace
}  // namespace driftscope::matmul_detail

#undef DRIFTSCOPE_INLINE
