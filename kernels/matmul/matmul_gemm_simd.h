// SPDX-License-Identifier: Apache-2.0
// Internal: the kernels of many rows: packed panels, a register tile of one vector an output, k
// innermost. Included after matmul_simd.h by the file of each instruction set.
#pragma once

#include <cstdint>

#include "kernels/matmul/matmul_kernels.h"

namespace driftscope::matmul_detail {
namespace {

constexpr int kTileRows = Vec::tile_rows;
constexpr int kTileOutputs = Vec::tile_outputs;
constexpr int kTile = kTileRows * kTileOutputs;

// Part of every panel: sweeps q0 … q0 + count, steps t0 … t0 + steps of each.
struct Block {
  std::int64_t q0;
  std::int64_t count;
  std::int64_t t0;
  std::int64_t steps;
};

// Calls body(block) for the blocks of a layout in the order in which they lie in memory.
template <class Body>
DRIFTSCOPE_INLINE void for_each_block(const PanelLayout& layout, const Body& body) {
  for (std::int64_t q0 = 0; q0 < layout.lanes / kWidth; q0 += layout.sweeps) {
    for (std::int64_t t0 = 0; t0 < layout.steps; t0 += layout.block_steps) {
      body(Block{q0, layout.sweeps, t0, smaller(layout.block_steps, layout.steps - t0)});
    }
  }
}

// Where panel `panel` of a set of `panels` has its part of a block.
DRIFTSCOPE_INLINE std::int64_t block_offset(const PanelLayout& layout, const Block& block,
                                            std::int64_t panels, std::int64_t panel,
                                            std::int64_t panel_rows) {
  const std::int64_t before = panels * (block.q0 * layout.steps + block.t0);
  return (before + panel * block.count * block.steps) * panel_rows * kWidth;
}

// Vectors of one step, rows 0 … panel_rows - 1; `left`: terms of each row from `index` on.
template <Dtype D>
DRIFTSCOPE_INLINE void pack_step(const PackJob& job, std::int64_t index, std::int64_t left,
                                 float* target) {
  std::int64_t r = 0;
  if (left >= kVectorTerms) {
    for (; r < job.rows; ++r) {
      Vec::store(target + r * kWidth, load_weights<D>(job.source, r * job.stride + index));
    }
  } else {
    for (; r < job.rows; ++r) {
      Vec::store(target + r * kWidth,
                 load_weights_part<D>(job.source, r * job.stride + index, left));
    }
  }
  for (; r < job.panel_rows; ++r) Vec::store(target + r * kWidth, Vec::zero());
}

template <Dtype D>
void pack_dtype(const PackJob& job) {
  const PanelLayout& layout = job.layout;
  for_each_block(layout, [&](const Block& block) {
    float* target = job.target + block_offset(layout, block, job.panels, job.panel, job.panel_rows);
    for (std::int64_t q = block.q0; q < block.q0 + block.count; ++q) {
      for (std::int64_t t = block.t0; t < block.t0 + block.steps; ++t) {
        const std::int64_t index = (t * layout.lanes + q * kWidth) * kPlaceTerms;
        pack_step<D>(job, index, job.length - index, target);
        target += job.panel_rows * kWidth;
      }
    }
  });
}

void run_pack(const PackJob& job) {
  switch (job.dtype) {
    case Dtype::f32:
      return pack_dtype<Dtype::f32>(job);
    case Dtype::f16:
      if constexpr (kPlaceTerms == 1) pack_dtype<Dtype::f16>(job);
      return;
    case Dtype::bf16:
    case Dtype::f64:  // never a weight type
      return pack_dtype<Dtype::bf16>(job);
  }
}

// What tiles to come will read and only the third-level cache or memory holds: fetched into the
// second level, a line of each a step.
struct Ahead {
  const char* x;
  const char* w;
};

// sums[i][j] += over the steps of one sweep. x: [steps][rows][W], w: [steps][outputs][W].
DRIFTSCOPE_INLINE void sweep(const float* x, const float* w, std::int64_t steps, const Ahead& ahead,
                             V* sums) {
  for (std::int64_t t = 0; t < steps; ++t) {
    __builtin_prefetch(ahead.x + 64 * t, 0, 2);
    __builtin_prefetch(ahead.w + 64 * t, 0, 2);
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

DRIFTSCOPE_INLINE void copy_tile(V* to, const V* from) {
#pragma GCC unroll 32
  for (int i = 0; i < kTile; ++i) to[i] = from[i];
}

DRIFTSCOPE_INLINE void clear_tile(V* sums) {
#pragma GCC unroll 32
  for (int i = 0; i < kTile; ++i) sums[i] = Vec::zero();
}

// Stores commit in order: one that had to wait for its line would hold up those of the sums.
DRIFTSCOPE_INLINE void expect_stores(const GemmJob& job, std::int64_t i0, std::int64_t j0) {
  const float* out = job.out + i0 * job.out_stride + j0 + kTileOutputs - 1;
#pragma GCC unroll 8
  for (int i = 0; i < kTileRows; ++i) __builtin_prefetch(out + i * job.out_stride, 1, 3);
}

DRIFTSCOPE_INLINE void store_tile(const GemmJob& job, const float* result, std::int64_t i0,
                                  std::int64_t j0) {
  float* out = job.out + i0 * job.out_stride + j0;
  if (i0 + kTileRows <= job.m && j0 + kTileOutputs <= job.n) {
#pragma GCC unroll 8
    for (int i = 0; i < kTileRows; ++i) {
      __builtin_memcpy(out + i * job.out_stride, result + i * kTileOutputs,
                       kTileOutputs * sizeof(float));
    }
    return;
  }
  const std::int64_t rows = smaller(kTileRows, job.m - i0);
  const std::int64_t columns = smaller(kTileOutputs, job.n - j0);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      out[i * job.out_stride + j] = result[i * kTileOutputs + j];
    }
  }
}

// Sums of sweeps 0 … Q - 2 of a tile lie in memory, `stride` vectors apart; the last are at hand.
struct SavedSums {
  V* memory;
  std::int64_t stride;
};

// The butterfly's distances that are whole vectors, for element i: D / 2 … 1 onto sweep q.
template <int Q, int D>
DRIFTSCOPE_INLINE V join_sweeps(const SavedSums& saved, V last, int q, int i) {
  if constexpr (D == Q) {
    return q == Q - 1 ? last : saved.memory[q * saved.stride + i];
  } else {
    return Vec::add(join_sweeps<Q, 2 * D>(saved, last, q, i),
                    join_sweeps<Q, 2 * D>(saved, last, q + D, i));
  }
}

template <int Q>
[[gnu::noinline]] void combine_tile_sequential(const SavedSums& saved, float* result) {
  V all[Q * kTile];
  for (int q = 0; q < Q; ++q) copy_tile(all + q * kTile, saved.memory + q * saved.stride);
  combine_sequential<kTile, Q>(all, result);
}

// One tile over one block. x, w: its panels.
template <int Q>
DRIFTSCOPE_INLINE void tile_block(const GemmJob& job, const float* x, const float* w,
                                  const Block& block, const Ahead& ahead, const SavedSums& saved,
                                  std::int64_t i0, std::int64_t j0) {
  const bool last = block.t0 + block.steps == job.layout.steps && block.q0 + block.count == Q;
  const bool butterfly = job.combine == LaneCombine::butterfly;
  if (last) expect_stores(job, i0, j0);
  V sums[kTile];
  std::int64_t q = 0;
  do {  // at least one
    V* memory = saved.memory + (block.q0 + q) * saved.stride;
    if (block.t0 == 0) {
      clear_tile(sums);
    } else {
      copy_tile(sums, memory);
    }
    sweep(x + q * block.steps * kTileRows * kWidth, w + q * block.steps * kTileOutputs * kWidth,
          block.steps, {ahead.x + 64 * q * block.steps, ahead.w + 64 * q * block.steps}, sums);
    if (q + 1 < block.count || !last || !butterfly) copy_tile(memory, sums);
  } while (++q < block.count);
  if (!last) return;
  float result[kTile];
  if (butterfly) {
#pragma GCC unroll 32
    for (int i = 0; i < kTile; ++i) sums[i] = join_sweeps<Q, 1>(saved, sums[i], 0, i);
    combine_butterfly<kTile, 1>(sums, result);
  } else {
    combine_tile_sequential<Q>(saved, result);
  }
  store_tile(job, result, i0, j0);
}

DRIFTSCOPE_INLINE const char* part_of(const float* data, std::int64_t floats, std::int64_t part,
                                      std::int64_t parts) {
  return reinterpret_cast<const char*>(data + floats * part / parts);
}

// All tiles over one block before the next block; a tile keeps its sums in memory in between. A row
// panel stays in the first-level cache while all outputs pass by, from the second level.
template <int Q>
void gemm_lanes(const GemmJob& job) {
  const PanelLayout& layout = job.layout;
  const std::int64_t row_panels = (job.m + kTileRows - 1) / kTileRows;
  const std::int64_t output_panels = (job.n + kTileOutputs - 1) / kTileOutputs;
  const bool single = layout.sweeps == Q && layout.block_steps == layout.steps;
  const std::int64_t stride = single ? kTile : row_panels * output_panels * kTile;
  for_each_block(layout, [&](const Block& block) {
    const bool last = block.t0 + block.steps == layout.steps && block.q0 + block.count == Q;
    const std::int64_t steps = block.count * block.steps;
    const std::int64_t x_floats = steps * kTileRows * kWidth;
    const std::int64_t w_floats = steps * kTileOutputs * kWidth;
    const float* x = job.x + block_offset(layout, block, job.x_panels, job.x_first, kTileRows);
    const float* w = job.w + block_offset(layout, block, output_panels, 0, kTileOutputs);
    const float* next_w = last ? job.w : w + output_panels * w_floats;
    V* memory = reinterpret_cast<V*>(job.accumulators);
    for (std::int64_t i = 0; i < row_panels; ++i) {
      for (std::int64_t j = 0; j < output_panels; ++j) {
        const Ahead ahead = {part_of(x + (i + 1) * x_floats, x_floats, j, output_panels),
                             part_of(next_w + i * w_floats, w_floats, j, output_panels)};
        V local[Q * kTile];
        tile_block<Q>(job, x + i * x_floats, w + j * w_floats, block, ahead,
                      {single ? local : memory, stride}, i * kTileRows, j * kTileOutputs);
        memory += kTile;
      }
    }
  });
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
