// SPDX-License-Identifier: Apache-2.0
// The matmul kernels over any way in which a row of weights lies in memory. A Row is one output's
// weights: at(i) is the f32 value of term i, Row(arguments, column) finds it.
//
// A group of min(lanes, 32) threads an output, or a tile of outputs: thread t is lane t, t + 32, …,
// exclusive-or shuffles are the butterfly. Every operation that rounds is written as the intrinsic
// that rounds to nearest, so nothing is contracted or reordered.
#pragma once

#include "kernels/matmul/matmul_device.h"
#include "kernels/plan/device_reduction.cuh"

namespace driftscope::cuda {

constexpr int kMatmulThreads = 128;

__device__ inline float finished(const DeviceMatmul& a, float sum, std::int64_t column) {
  float value = exact::with_canonical_nan(sum);
  if (a.bias != nullptr) {
    const Global<const float> bias(a.bias);
    value = exact::with_canonical_nan(__fadd_rn(value, bias[column]));
  }
  return exact::rounded(a.output_dtype, value);
}

template <class Row>
struct RowTerms {
  Global<const float> x;
  Row row;
  template <class State>
  __device__ void operator()(State& state, std::int64_t i, bool inside) const {
    state.add_product(inside ? x[i] : 0.0F, inside ? row.at(i) : 0.0F);
  }
};

// Any plan, one output a group. Grid: ceil(m · n / groups of a block).
template <class Row>
__global__ void matmul_any_plan(DeviceMatmul a) {
  const Group group = group_of(a.plan.lanes);
  const std::int64_t groups = static_cast<std::int64_t>(blockDim.x) / group.width;
  const std::int64_t output = static_cast<std::int64_t>(blockIdx.x) * groups + group_number(group);
  if (output >= a.m * a.n) return;  // the whole group
  const std::int64_t row = output % a.m;
  const std::int64_t column = output / a.m;
  const RowTerms<Row> terms{Global<const float>(a.x) + row * a.x_stride, Row(a, column)};
  const float sum = reduce_terms(a.plan, a.k, terms, group);
  if (group.lane == 0) Global<float>(a.y)[row * a.y_stride + column] = finished(a, sum, column);
}

// Rows x Columns outputs a group, so that each value of x and of the weight is read once for
// several products; lanes at most 32 · Slots, f32 inside a chunk.
template <class Row, int Slots, int Rows, int Columns>
struct Tile {
  Global<const float> x[Rows];
  Row weights[Columns];

  __device__ void add_step(PlainState (&sums)[Rows][Columns][Slots], std::int64_t begin,
                           std::int64_t step, std::int64_t length, int lane) const {
    DRIFTSCOPE_UNROLL
    for (int s = 0; s < Slots; ++s) {
      const std::int64_t i = step + s * kWarpWidth + lane;
      const bool inside = i < length;  // padding: +0 · +0
      float values[Rows];
      DRIFTSCOPE_UNROLL
      for (int r = 0; r < Rows; ++r) values[r] = inside ? x[r][begin + i] : 0.0F;
      DRIFTSCOPE_UNROLL
      for (int c = 0; c < Columns; ++c) {
        const float w = inside ? weights[c].at(begin + i) : 0.0F;
        DRIFTSCOPE_UNROLL
        for (int r = 0; r < Rows; ++r) sums[r][c][s].add_product(values[r], w);
      }
    }
  }
};

// One chunk for all outputs of the tile.
template <class Row, int Slots, int Rows, int Columns>
__device__ void sum_tile_chunk(const DeviceMatmul& a, const Tile<Row, Slots, Rows, Columns>& tile,
                               std::int64_t chunk, const Group& group,
                               PlainState (&result)[Rows][Columns]) {  // +0 at first
  PlainState sums[Rows][Columns][Slots] = {};
  const std::int64_t chunk_length = (a.k + a.plan.split_k - 1) / a.plan.split_k;
  const std::int64_t begin = chunk * chunk_length;
  const std::int64_t left = a.k - begin;
  const std::int64_t length = left < chunk_length ? left : chunk_length;
  for (std::int64_t step = 0; step < length; step += a.plan.lanes) {
    tile.add_step(sums, begin, step, length, group.lane);
  }
  DRIFTSCOPE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    DRIFTSCOPE_UNROLL
    for (int c = 0; c < Columns; ++c) {
      if (begin < a.k) result[r][c] = join_lanes(a.plan.lane_combine, sums[r][c], Slots, group);
      result[r][c].round_to(accumulator_rounding(a.plan.accumulator));
    }
  }
}

// Grid: row tiles run fastest, so that blocks at work at the same time read the same weights.
template <class Row, int Slots, int Rows, int Columns>
__global__ void matmul_tile(DeviceMatmul a) {
  const Group group = group_of(a.plan.lanes);
  const std::int64_t groups = static_cast<std::int64_t>(blockDim.x) / group.width;
  const std::int64_t row_tiles = (a.m + Rows - 1) / Rows;
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t first_row = block % row_tiles * Rows;
  const std::int64_t first_column = (block / row_tiles * groups + group_number(group)) * Columns;
  if (first_column >= a.n) return;  // the whole group
  const Global<const float> x(a.x);
  Tile<Row, Slots, Rows, Columns> tile;
  DRIFTSCOPE_UNROLL
  for (int r = 0; r < Rows; ++r) {  // beyond the end: the last row once more
    const std::int64_t row = first_row + r < a.m ? first_row + r : a.m - 1;
    tile.x[r] = x + row * a.x_stride;
  }
  DRIFTSCOPE_UNROLL
  for (int c = 0; c < Columns; ++c) {
    tile.weights[c] = Row(a, first_column + c < a.n ? first_column + c : a.n - 1);
  }
  const bool listed = a.plan.split_combine == SplitCombine::arrival && a.plan.split_k > 1;
  const Global<const int> order(a.plan.order);
  const Dtype rounding = accumulator_rounding(a.plan.accumulator);
  PlainState total[Rows][Columns];
  for (int i = 0; i < a.plan.split_k; ++i) {
    PlainState sums[Rows][Columns];
    sum_tile_chunk(a, tile, listed ? order[i] : i, group, sums);
    DRIFTSCOPE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      DRIFTSCOPE_UNROLL
      for (int c = 0; c < Columns; ++c) {
        if (i == 0) {
          total[r][c] = sums[r][c];
        } else {
          total[r][c].join(sums[r][c]);
          total[r][c].round_to(rounding);
        }
      }
    }
  }
  if (group.lane != 0) return;
  const Global<float> y(a.y);
  DRIFTSCOPE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    DRIFTSCOPE_UNROLL
    for (int c = 0; c < Columns; ++c) {
      const std::int64_t row = first_row + r;
      const std::int64_t column = first_column + c;
      if (row < a.m && column < a.n) {
        y[row * a.y_stride + column] = finished(a, total[r][c].sum, column);
      }
    }
  }
}

inline std::int64_t groups_of_block(const DevicePlan& plan) {
  return kMatmulThreads / (plan.lanes < kWarpWidth ? plan.lanes : kWarpWidth);
}

inline cudaError_t launch_blocks(void (*kernel)(DeviceMatmul), const char* name,
                                 std::int64_t blocks, const DeviceMatmul& a, cudaStream_t stream) {
  constexpr std::int64_t kMostBlocks = 0x7fffffff;
  if (blocks > kMostBlocks) return cudaErrorInvalidValue;
  return launch(kernel, name, {dim3(static_cast<unsigned>(blocks)), dim3(kMatmulThreads), 0},
                stream, a);
}

template <class Row>
cudaError_t launch_any_plan(const DeviceMatmul& a, cudaStream_t stream) {
  const std::int64_t groups = groups_of_block(a.plan);
  return launch_blocks(matmul_any_plan<Row>, "matmul_any_plan", (a.m * a.n + groups - 1) / groups,
                       a, stream);
}

template <class Row, int Slots, int Rows, int Columns>
cudaError_t launch_tile(const DeviceMatmul& a, cudaStream_t stream) {
  const std::int64_t row_tiles = (a.m + Rows - 1) / Rows;
  const std::int64_t outputs = groups_of_block(a.plan) * Columns;
  return launch_blocks(matmul_tile<Row, Slots, Rows, Columns>, "matmul_tile",
                       row_tiles * ((a.n + outputs - 1) / outputs), a, stream);
}

template <class Row>
cudaError_t launch_tiles(const DeviceMatmul& a, cudaStream_t stream) {
  if (a.plan.lanes <= kWarpWidth) {
    return a.m == 1 ? launch_tile<Row, 1, 1, 4>(a, stream) : launch_tile<Row, 1, 4, 4>(a, stream);
  }
  return a.m == 1 ? launch_tile<Row, 2, 1, 2>(a, stream) : launch_tile<Row, 2, 4, 2>(a, stream);
}

// Sums in f32 and few lanes a thread fit the registers as tiles.
inline bool has_tile(const DevicePlan& plan) {
  return plan.lanes <= 2 * kWarpWidth && plan.accumulator != Accumulator::f64 &&
         plan.accumulator != Accumulator::kahan &&
         (plan.split_combine != SplitCombine::tree || plan.split_k <= 2);
}

}  // namespace driftscope::cuda
