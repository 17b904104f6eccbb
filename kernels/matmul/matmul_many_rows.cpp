// SPDX-License-Identifier: Apache-2.0
// Many rows: panels of both operands are packed, tiles of outputs stay in registers.
#include <algorithm>

#include "kernels/matmul/matmul_call.h"

namespace driftscope::matmul_detail {
namespace {

// Two panels of one block stay in the first-level cache, a block of rows in the second.
constexpr std::int64_t kBlockTerms = 1024;
constexpr std::int64_t kMostTaskOutputs = 60;
constexpr std::int64_t kTailOutputs = 20;
constexpr std::int64_t kBlockTiles = 12;
constexpr std::int64_t kSlabRows = 640;
constexpr std::int64_t kPartialFloats = std::int64_t{1} << 20U;

// Rows [m0, m0 + rows) with x packed chunk after chunk, panel after panel.
struct Slab {
  std::int64_t m0;
  std::int64_t rows;
  std::int64_t panels;
  std::int64_t chunk_floats;  // of one packed chunk of all panels
  float* x;
};

// Floats of one row of a packed chunk.
std::int64_t packed_floats(const Call& call) {
  const std::int64_t terms = call.kernels.place_terms;
  return round_up(call.chunk, call.arguments.plan.lanes * terms) / terms;
}

PanelLayout layout_of(const Call& call, std::int64_t chunk) {
  const int lanes = call.arguments.plan.lanes;
  const int width = call.kernels.vector_width;
  const std::int64_t steps =
      ceil_divide(length_of(call, chunk), std::int64_t{lanes} * call.kernels.place_terms);
  const std::int64_t blocks = ceil_divide(steps * width, kBlockTerms);
  PanelLayout layout{
      .lanes = lanes, .steps = steps, .sweeps = 1, .block_steps = ceil_divide(steps, blocks)};
  while (layout.sweeps * width < lanes && 2 * layout.sweeps * steps * width <= kBlockTerms) {
    layout.sweeps *= 2;
  }
  return layout;
}

void pack_rows(const Call& call, const Slab& slab, std::int64_t panel) {
  const std::int64_t tile = call.kernels.tile_rows;
  const std::int64_t first = panel * tile;
  for (std::int64_t chunk = 0; chunk < call.chunks; ++chunk) {
    const PanelLayout layout = layout_of(call, chunk);
    call.kernels.pack(
        {.source = call.arguments.x + (slab.m0 + first) * call.x_stride + chunk * call.chunk,
         .stride = call.x_stride,
         .dtype = Dtype::f32,
         .rows = std::min(tile, slab.rows - first),
         .panel_rows = tile,
         .length = length_of(call, chunk),
         .layout = layout,
         .panels = slab.panels,
         .panel = panel,
         .target = slab.x + chunk * slab.chunk_floats});
  }
}

// Where the sums of a chunk go: [rows of the slab, stride].
struct Target {
  float* sums;
  std::int64_t stride;
  bool final;  // they are y itself, and no other chunk follows
};

// One chunk of outputs [n0, n0 + count) for all rows of the slab.
void gemm_chunk(const Call& call, const Slab& slab, std::int64_t chunk, std::int64_t n0,
                std::int64_t count, float* packed, float* accumulators, const Target& target) {
  const PanelLayout layout = layout_of(call, chunk);
  const std::int64_t outputs = call.kernels.tile_outputs;
  static thread_local Scratch weights_scratch;
  for (std::int64_t j = 0; j < count; j += outputs) {
    const std::int64_t rows = std::min(outputs, count - j);
    const PlainWeights weights = plain_weights(call, n0 + j, rows, chunk * call.chunk,
                                               length_of(call, chunk), weights_scratch);
    call.kernels.pack({.source = weights.data,
                       .stride = weights.stride,
                       .dtype = weights.dtype,
                       .rows = rows,
                       .panel_rows = outputs,
                       .length = length_of(call, chunk),
                       .layout = layout,
                       .panels = ceil_divide(count, outputs),
                       .panel = j / outputs,
                       .target = packed});
  }
  const std::int64_t rows_step = kBlockTiles * call.kernels.tile_rows;
  for (std::int64_t i = 0; i < slab.rows; i += rows_step) {
    call.kernels.gemm({.x = slab.x + chunk * slab.chunk_floats,
                       .x_panels = slab.panels,
                       .x_first = i / call.kernels.tile_rows,
                       .m = std::min(rows_step, slab.rows - i),
                       .w = packed,
                       .n = count,
                       .layout = layout,
                       .combine = call.arguments.plan.lane_combine,
                       .accumulators = accumulators,
                       .out = target.sums + i * target.stride,
                       .out_stride = target.stride});
    // While these outputs are in the first-level cache.
    if (target.final) finish(call, slab.m0 + i, std::min(rows_step, slab.rows - i), n0, count);
  }
}

void gemm_block(const Call& call, const Slab& slab, std::int64_t n0, std::int64_t count) {
  static thread_local Scratch packed_scratch;
  static thread_local Scratch accumulator_scratch;
  static thread_local Scratch sums_scratch;
  const std::int64_t lanes = call.arguments.plan.lanes;
  const std::int64_t columns = round_up(count, call.kernels.tile_outputs);
  float* packed = packed_scratch.floats(columns * packed_floats(call));
  float* accumulators =
      accumulator_scratch.floats(kBlockTiles * call.kernels.tile_rows * columns * lanes);
  const bool plain = single_plain_chunk(call);
  const std::int64_t area = slab.rows * count;
  float* sums = plain ? call.arguments.y + slab.m0 * call.y_stride + n0
                      : sums_scratch.floats(call.arguments.plan.split_k * area);
  for (std::int64_t chunk = 0; chunk < call.chunks; ++chunk) {
    gemm_chunk(
        call, slab, chunk, n0, count, packed, accumulators,
        {.sums = sums + chunk * area, .stride = plain ? call.y_stride : count, .final = plain});
  }
  if (plain) return;
  store_chunks(call, sums, slab.m0, slab.rows, n0, count);
  finish(call, slab.m0, slab.rows, n0, count);
}

// How a matmul's outputs are cut into tasks: large ones, which serve each packed weight best, and
// for several workers a tail of small ones, so that none waits long for the slowest.
struct TaskCut {
  std::int64_t large = 0;  // tasks of kMostTaskOutputs
  std::int64_t small = 0;  // tasks of `small_outputs` after them
  std::int64_t small_outputs = 1;
  [[nodiscard]] std::int64_t first_of(std::int64_t task) const {
    return std::min(task, large) * kMostTaskOutputs +
           std::max<std::int64_t>(0, task - large) * small_outputs;
  }
};

TaskCut cut_outputs(const Call& call, std::int64_t workers) {
  TaskCut cut;
  if (workers == 1) return {.large = ceil_divide(call.n, kMostTaskOutputs)};
  cut.large = std::max<std::int64_t>(0, call.n / kMostTaskOutputs - workers);
  cut.small_outputs = round_up(kTailOutputs, call.kernels.tile_outputs);
  cut.small = ceil_divide(call.n - cut.large * kMostTaskOutputs, cut.small_outputs);
  return cut;
}

}  // namespace

void run_many_rows(const Call& call, Parallel& parallel) {
  static thread_local Scratch x_scratch;
  const std::int64_t tile = call.kernels.tile_rows;
  const std::int64_t most_rows = std::clamp<std::int64_t>(
      kPartialFloats / (call.arguments.plan.split_k * kMostTaskOutputs), tile, kSlabRows);
  const TaskCut cut = cut_outputs(call, parallel.workers());
  const std::int64_t slabs = ceil_divide(call.arguments.m, most_rows);
  const std::int64_t slab_rows = ceil_divide(call.arguments.m, slabs);
  for (std::int64_t m0 = 0; m0 < call.arguments.m; m0 += slab_rows) {
    Slab slab{.m0 = m0,
              .rows = std::min(slab_rows, call.arguments.m - m0),
              .panels = 0,
              .chunk_floats = 0,
              .x = nullptr};
    slab.panels = ceil_divide(slab.rows, tile);
    slab.chunk_floats = slab.panels * tile * packed_floats(call);
    slab.x = x_scratch.floats(call.chunks * slab.chunk_floats);
    parallel.run(static_cast<std::size_t>(slab.panels), [&](std::size_t panel, int) {
      pack_rows(call, slab, static_cast<std::int64_t>(panel));
    });
    parallel.run(static_cast<std::size_t>(cut.large + cut.small), [&](std::size_t index, int) {
      const auto task = static_cast<std::int64_t>(index);
      const std::int64_t n0 = cut.first_of(task);
      gemm_block(call, slab, n0, std::min(cut.first_of(task + 1), call.n) - n0);
    });
  }
}

}  // namespace driftscope::matmul_detail
