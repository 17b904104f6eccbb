// SPDX-License-Identifier: Apache-2.0
// A group of min(lanes, 32) threads an output, or a tile of outputs: thread t is lane t, t + 32, …,
// exclusive-or shuffles are the butterfly. Every operation that rounds is written as the intrinsic
// that rounds to nearest, so nothing is contracted or reordered.
#include "kernels/matmul/matmul_portable.cuh"

#include "kernels/plan/device_reduction.cuh"

namespace driftscope::cuda {

namespace {

constexpr int kThreads = 128;

__device__ float finished(const DeviceMatmul& a, float sum, std::int64_t column) {
  float value = exact::with_canonical_nan(sum);
  if (a.bias != nullptr) {
    const Global<const float> bias(a.bias);
    value = exact::with_canonical_nan(__fadd_rn(value, bias[column]));
  }
  return exact::rounded(a.output_dtype, value);
}

// Any plan, one output a group. Grid: ceil(m · n / groups of a block).
__global__ void matmul_any_plan(DeviceMatmul a) {
  const Group group = group_of(a.plan.lanes);
  const std::int64_t groups = static_cast<std::int64_t>(blockDim.x) / group.width;
  const std::int64_t output = static_cast<std::int64_t>(blockIdx.x) * groups + group_number(group);
  if (output >= a.m * a.n) return;  // the whole group
  const std::int64_t row = output % a.m;
  const std::int64_t column = output / a.m;
  const auto weight_bytes = static_cast<std::int64_t>(dtype_size(a.weight_dtype));
  const Global<const char> weight(static_cast<const char*>(a.weight));
  const ProductTerms terms{Global<const float>(a.x) + row * a.k,
                           weight + column * a.k * weight_bytes, a.weight_dtype};
  const float sum = reduce_products(a.plan, a.k, terms, group);
  if (group.lane == 0) Global<float>(a.y)[row * a.n + column] = finished(a, sum, column);
}

// Rows x Columns outputs a group, so that each value of x and of the weight is read once for
// several products; lanes at most 32 · Slots, f32 inside a chunk.
template <Dtype Type, int Slots, int Rows, int Columns>
struct Tile {
  Global<const float> x[Rows];
  Global<const void> weight;
  std::int64_t weight_begin[Columns];

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
        const float w = inside ? load(weight, Type, weight_begin[c] + begin + i) : 0.0F;
        DRIFTSCOPE_UNROLL
        for (int r = 0; r < Rows; ++r) sums[r][c][s].add_product(values[r], w);
      }
    }
  }
};

// One chunk for all outputs of the tile.
template <Dtype Type, int Slots, int Rows, int Columns>
__device__ void sum_tile_chunk(const DeviceMatmul& a, const Tile<Type, Slots, Rows, Columns>& tile,
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
template <Dtype Type, int Slots, int Rows, int Columns>
__global__ void matmul_tile(DeviceMatmul a) {
  const Group group = group_of(a.plan.lanes);
  const std::int64_t groups = static_cast<std::int64_t>(blockDim.x) / group.width;
  const std::int64_t row_tiles = (a.m + Rows - 1) / Rows;
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t first_row = block % row_tiles * Rows;
  const std::int64_t first_column = (block / row_tiles * groups + group_number(group)) * Columns;
  if (first_column >= a.n) return;  // the whole group
  const Global<const float> x(a.x);
  Tile<Type, Slots, Rows, Columns> tile;
  tile.weight = Global<const char>(static_cast<const char*>(a.weight));
  DRIFTSCOPE_UNROLL
  for (int r = 0; r < Rows; ++r) {  // beyond the end: the last row once more
    const std::int64_t row = first_row + r < a.m ? first_row + r : a.m - 1;
    tile.x[r] = x + row * a.k;
  }
  DRIFTSCOPE_UNROLL
  for (int c = 0; c < Columns; ++c) {
    const std::int64_t column = first_column + c < a.n ? first_column + c : a.n - 1;
    tile.weight_begin[c] = column * a.k;
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
        y[row * a.n + column] = finished(a, total[r][c].sum, column);
      }
    }
  }
}

std::int64_t groups_of_block(const DevicePlan& plan) {
  return kThreads / (plan.lanes < kWarpWidth ? plan.lanes : kWarpWidth);
}

cudaError_t launch_blocks(void (*kernel)(DeviceMatmul), const char* name, std::int64_t blocks,
                          const DeviceMatmul& a, cudaStream_t stream) {
  constexpr std::int64_t kMostBlocks = 0x7fffffff;
  if (blocks > kMostBlocks) return cudaErrorInvalidValue;
  return launch(kernel, name, {dim3(static_cast<unsigned>(blocks)), dim3(kThreads), 0}, stream, a);
}

template <Dtype Type, int Slots, int Rows, int Columns>
cudaError_t launch_tile(const DeviceMatmul& a, cudaStream_t stream) {
  const std::int64_t row_tiles = (a.m + Rows - 1) / Rows;
  const std::int64_t outputs = groups_of_block(a.plan) * Columns;
  return launch_blocks(matmul_tile<Type, Slots, Rows, Columns>, "matmul_tile",
                       row_tiles * ((a.n + outputs - 1) / outputs), a, stream);
}

template <Dtype Type>
cudaError_t launch_type(const DeviceMatmul& a, cudaStream_t stream) {
  if (a.plan.lanes <= kWarpWidth) {
    return a.m == 1 ? launch_tile<Type, 1, 1, 4>(a, stream) : launch_tile<Type, 1, 4, 4>(a, stream);
  }
  return a.m == 1 ? launch_tile<Type, 2, 1, 2>(a, stream) : launch_tile<Type, 2, 4, 2>(a, stream);
}

// Sums in f32 and few lanes a thread fit the registers as tiles.
bool has_tile(const DevicePlan& plan) {
  return plan.lanes <= 2 * kWarpWidth && plan.accumulator != Accumulator::f64 &&
         plan.accumulator != Accumulator::kahan &&
         (plan.split_combine != SplitCombine::tree || plan.split_k <= 2);
}

}  // namespace

cudaError_t launch_matmul(const DeviceMatmul& a, cudaStream_t stream) {
  if (a.m < 1 || a.n < 0 || a.k < 0 || !valid(a.plan) || a.weight_dtype == Dtype::f64) {
    return cudaErrorInvalidValue;
  }
  if (a.n == 0) return cudaSuccess;
  if (!has_tile(a.plan)) {
    const std::int64_t groups = groups_of_block(a.plan);
    return launch_blocks(matmul_any_plan, "matmul_any_plan", (a.m * a.n + groups - 1) / groups, a,
                         stream);
  }
  switch (a.weight_dtype) {
    case Dtype::f32:
      return launch_type<Dtype::f32>(a, stream);
    case Dtype::f16:
      return launch_type<Dtype::f16>(a, stream);
    default:
      return launch_type<Dtype::bf16>(a, stream);
  }
}

}  // namespace driftscope::cuda
