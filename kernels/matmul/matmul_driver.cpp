// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/matmul_driver.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "kernels/matmul/matmul_int8.h"
#include "kernels/matmul/matmul_scratch.h"
#include "kernels/quant/quantise.h"

namespace driftscope::matmul_detail {

namespace {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}
constexpr std::int64_t ceil_divide(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step;
}

Dtype accumulator_rounding(Accumulator accumulator) {
  switch (accumulator) {
    case Accumulator::bf16:
      return Dtype::bf16;
    case Accumulator::f16:
      return Dtype::f16;
    case Accumulator::f32:
    case Accumulator::f64:
    case Accumulator::kahan:
      return Dtype::f32;
  }
  return Dtype::f32;
}

// What all tasks of one call share.
struct Call {
  const MatmulArguments& arguments;
  const MatmulKernels& kernels;
  std::vector<int> order;  // of arrival, where the plan asks for one
  std::int64_t k;
  std::int64_t n;
  std::int64_t x_stride;
  std::int64_t y_stride;
  std::int64_t chunk;   // terms of every chunk but the last
  std::int64_t chunks;  // chunks that are not empty
};

const void* weight_at(const WeightView& weight, std::int64_t row, std::int64_t column) {
  return static_cast<const char*>(weight.data) +
         (row * weight.stride() + column) * static_cast<std::int64_t>(dtype_size(weight.dtype));
}

// Bytes from one output's weights to the next's.
std::int64_t weight_row_bytes(const WeightView& weight) {
  if (weight.quantised.present()) return weight.quantised.code_stride;
  return weight.columns * static_cast<std::int64_t>(dtype_size(weight.dtype));
}

// Weights of a chunk as a kernel for plain elements reads them.
struct PlainWeights {
  const void* data;  // [rows, length]
  std::int64_t stride;
  Dtype dtype;
};

// Quantised weights as f32, in `scratch`; others where they lie.
PlainWeights plain_weights(const Call& call, std::int64_t n0, std::int64_t rows, std::int64_t begin,
                           std::int64_t length, Scratch& scratch) {
  const WeightView& weight = call.arguments.weight;
  if (!weight.quantised.present()) {
    return {.data = weight_at(weight, n0, begin), .stride = weight.stride(), .dtype = weight.dtype};
  }
  begin += weight.quantised.first_term;
  // int4 is read from a whole block on.
  const std::int64_t first = weight.quantised.is_int4() ? begin / kInt4Block * kInt4Block : begin;
  const std::int64_t stride = round_up(begin + length - first, 16);
  float* target = scratch.floats(rows * stride);
  call.kernels.dequantise({.codes = weight.quantised.from_row(n0),
                           .rows = rows,
                           .begin = first,
                           .length = begin + length - first,
                           .target = target,
                           .target_stride = stride});
  return {.data = target + (begin - first), .stride = stride, .dtype = Dtype::f32};
}

std::int64_t length_of(const Call& call, std::int64_t chunk) {
  return std::min(call.chunk, call.k - chunk * call.chunk);
}

// y[i, n0 … n0 + count) for rows [m0, m0 + rows): bias, canonical NaN, the one rounding.
void finish(const Call& call, std::int64_t m0, std::int64_t rows, std::int64_t n0,
            std::int64_t count) {
  for (std::int64_t i = m0; i < m0 + rows; ++i) {
    float* y = call.arguments.y + i * call.y_stride + n0;
    const float* bias = call.arguments.bias == nullptr ? nullptr : call.arguments.bias + n0;
    call.kernels.finish(y, bias, count);
    round_span(call.arguments.output_dtype, y, static_cast<std::size_t>(count));
  }
}

// into[i] = round(into[i] + from[i])
void add_rounded(Dtype rounding, float* into, const float* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) into[i] += from[i];
  round_span(rounding, into, static_cast<std::size_t>(count));
}

// Step 4 for `count` outputs at once; sums: [split_k, count], overwritten. Returns the row that
// holds the result. Empty chunks are rows of +0 like any other.
float* combine_chunk_rows(const Call& call, float* sums, std::int64_t count) {
  const ReductionPlan& plan = call.arguments.plan;
  const Dtype rounding = accumulator_rounding(plan.accumulator);
  const std::int64_t splits = plan.split_k;
  round_span(rounding, sums, static_cast<std::size_t>(splits * count));
  const auto row = [&](std::int64_t i) { return sums + i * count; };
  switch (plan.split_combine) {
    case SplitCombine::sequential:
      for (std::int64_t i = 1; i < splits; ++i) add_rounded(rounding, row(0), row(i), count);
      return row(0);
    case SplitCombine::tree:
      for (std::int64_t d = 1; d < splits; d *= 2) {
        for (std::int64_t i = 0; i + d < splits; i += 2 * d) {
          add_rounded(rounding, row(i), row(i + d), count);
        }
      }
      return row(0);
    case SplitCombine::arrival: {
      float* first = row(call.order[0]);
      for (std::size_t i = 1; i < call.order.size(); ++i) {
        add_rounded(rounding, first, row(call.order[i]), count);
      }
      return first;
    }
  }
  return sums;
}

bool single_plain_chunk(const Call& call) {
  return call.arguments.plan.split_k == 1 &&
         accumulator_rounding(call.arguments.plan.accumulator) == Dtype::f32;
}

// Combines [split_k, rows, columns] and writes y[m0 …, n0 …].
void store_chunks(const Call& call, float* sums, std::int64_t m0, std::int64_t rows,
                  std::int64_t n0, std::int64_t columns) {
  const std::int64_t count = rows * columns;
  std::fill(sums + call.chunks * count, sums + call.arguments.plan.split_k * count, 0.0F);
  const float* result = combine_chunk_rows(call, sums, count);
  for (std::int64_t i = 0; i < rows; ++i) {
    std::copy_n(result + i * columns, columns, call.arguments.y + (m0 + i) * call.y_stride + n0);
  }
}

// ---- few rows ----

// Beyond so many rows, weights widened once serve all of them better than codes read again.
constexpr std::int64_t kMostCodesRows = 6;

bool runs_on_codes(const Call& call) {
  const QuantisedView& codes = call.arguments.weight.quantised;
  if (!codes.present() || call.arguments.m > kMostCodesRows) return false;
  const std::int64_t lanes = call.arguments.plan.lanes;
  return !codes.is_int4() ||
         (codes.first_term % lanes == 0 && (call.chunks == 1 || call.chunk % lanes == 0));
}

// Outputs [n0, n0 + count) of every row.
void direct_block(const Call& call, std::int64_t n0, std::int64_t count) {
  static thread_local Scratch scratch;
  static thread_local Scratch weights_scratch;
  const MatmulArguments& arguments = call.arguments;
  const std::int64_t m = arguments.m;
  const bool plain = single_plain_chunk(call);
  const bool codes = runs_on_codes(call);
  float* sums = plain ? arguments.y + n0 : scratch.floats(arguments.plan.split_k * m * count);
  for (std::int64_t chunk = 0; chunk < call.chunks; ++chunk) {
    const std::int64_t begin = chunk * call.chunk;
    if (codes) {
      call.kernels.codes({.x = arguments.x + begin,
                          .x_stride = call.x_stride,
                          .m = m,
                          .codes = arguments.weight.quantised.from_row(n0),
                          .begin = arguments.weight.quantised.first_term + begin,
                          .n = count,
                          .length = length_of(call, chunk),
                          .lanes = arguments.plan.lanes,
                          .combine = arguments.plan.lane_combine,
                          .out = sums + chunk * m * count,
                          .out_stride = plain ? call.y_stride : count});
      continue;
    }
    const PlainWeights weights =
        plain_weights(call, n0, count, begin, length_of(call, chunk), weights_scratch);
    call.kernels.direct({.x = arguments.x + begin,
                         .x_stride = call.x_stride,
                         .m = m,
                         .w = weights.data,
                         .w_stride = weights.stride,
                         .dtype = weights.dtype,
                         .n = count,
                         .length = length_of(call, chunk),
                         .lanes = arguments.plan.lanes,
                         .combine = arguments.plan.lane_combine,
                         .out = sums + chunk * m * count,
                         .out_stride = plain ? call.y_stride : count});
  }
  if (!plain) store_chunks(call, sums, 0, m, n0, count);
}

// A task is a contiguous range of outputs: large enough to outweigh its dispatch.
constexpr std::int64_t kBytesPerTask = 256 * 1024;
// Between two passes over the chunks of K, so many outputs' weights stay in the cache.
constexpr std::int64_t kSplitOutputs = 24;

void run_direct(const Call& call, Parallel& parallel) {
  const std::int64_t row_bytes = std::max<std::int64_t>(1, weight_row_bytes(call.arguments.weight));
  const std::int64_t wanted = std::max<std::int64_t>(1, kBytesPerTask / row_bytes);
  const std::int64_t per_task = std::min(call.n, round_up(wanted, kSplitOutputs));
  const bool whole = call.arguments.plan.split_k == 1 && !call.arguments.weight.quantised.present();
  const std::int64_t step = whole ? per_task : kSplitOutputs;
  const auto task = [&](std::size_t index, int) {
    const std::int64_t begin = static_cast<std::int64_t>(index) * per_task;
    const std::int64_t end = std::min(call.n, begin + per_task);
    for (std::int64_t n0 = begin; n0 < end; n0 += step) {
      direct_block(call, n0, std::min(step, end - n0));
    }
    finish(call, 0, call.arguments.m, begin, end - begin);
  };
  parallel.run(static_cast<std::size_t>(ceil_divide(call.n, per_task)), task);
}

// ---- many rows ----

// Two panels of one block stay in the first-level cache, a block of rows in the second.
constexpr std::int64_t kBlockTerms = 1024;
constexpr std::int64_t kMostTaskOutputs = 60;
constexpr std::int64_t kLeastTaskOutputs = 30;
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

PanelLayout layout_of(const Call& call, std::int64_t chunk) {
  const int lanes = call.arguments.plan.lanes;
  const int width = call.kernels.vector_width;
  const std::int64_t steps = ceil_divide(length_of(call, chunk), lanes);
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
  float* packed = packed_scratch.floats(columns * round_up(call.chunk, lanes));
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

// Outputs of a task: so many that all workers are busy until the end, few panels are cut short, and
// else as many as possible.
std::int64_t task_outputs(const Call& call, std::int64_t workers) {
  const std::int64_t tile = call.kernels.tile_outputs;
  std::int64_t best = 0;
  std::int64_t least = 0;
  for (std::int64_t outputs = kMostTaskOutputs; outputs >= kLeastTaskOutputs; outputs -= tile) {
    const std::int64_t longest = ceil_divide(ceil_divide(call.n, outputs), workers) * outputs;
    if (best != 0 && 32 * longest > 31 * least) continue;  // gains less than it costs
    best = outputs;
    least = longest;
  }
  return best;
}

void run_gemm(const Call& call, Parallel& parallel) {
  static thread_local Scratch x_scratch;
  const std::int64_t tile = call.kernels.tile_rows;
  const std::int64_t most_rows = std::clamp<std::int64_t>(
      kPartialFloats / (call.arguments.plan.split_k * kMostTaskOutputs), tile, kSlabRows);
  const std::int64_t outputs = task_outputs(call, parallel.workers());
  const std::int64_t slabs = ceil_divide(call.arguments.m, most_rows);
  const std::int64_t slab_rows = ceil_divide(call.arguments.m, slabs);
  for (std::int64_t m0 = 0; m0 < call.arguments.m; m0 += slab_rows) {
    Slab slab{.m0 = m0,
              .rows = std::min(slab_rows, call.arguments.m - m0),
              .panels = 0,
              .chunk_floats = 0,
              .x = nullptr};
    slab.panels = ceil_divide(slab.rows, tile);
    slab.chunk_floats = slab.panels * tile * round_up(call.chunk, call.arguments.plan.lanes);
    slab.x = x_scratch.floats(call.chunks * slab.chunk_floats);
    parallel.run(static_cast<std::size_t>(slab.panels), [&](std::size_t panel, int) {
      pack_rows(call, slab, static_cast<std::int64_t>(panel));
    });
    parallel.run(static_cast<std::size_t>(ceil_divide(call.n, outputs)),
                 [&](std::size_t index, int) {
                   const std::int64_t n0 = static_cast<std::int64_t>(index) * outputs;
                   gemm_block(call, slab, n0, std::min(outputs, call.n - n0));
                 });
  }
}

// ---- any plan ----

void general_block(const Call& call, std::int64_t n0, std::int64_t count) {
  static thread_local Scratch weights_scratch;
  static thread_local Scratch states_scratch;
  const MatmulArguments& arguments = call.arguments;
  float* w = weights_scratch.floats(call.k);
  void* states =
      states_scratch.bytes(static_cast<std::size_t>(generic_scratch_bytes(arguments.plan)));
  for (std::int64_t j = n0; j < n0 + count; ++j) {
    if (arguments.weight.quantised.present()) {
      dequantise_row(arguments.weight.quantised, j, 0, call.k, w);
    } else {
      widen(arguments.weight.dtype, weight_at(arguments.weight, j, 0), w,
            static_cast<std::size_t>(call.k));
    }
    for (std::int64_t i = 0; i < arguments.m; ++i) {
      arguments.y[i * call.y_stride + j] =
          call.kernels.generic({.x = arguments.x + i * call.x_stride,
                                .w = w,
                                .k = call.k,
                                .plan = &arguments.plan,
                                .order = call.order.data(),
                                .scratch = states});
    }
  }
  finish(call, 0, arguments.m, n0, count);
}

void run_general(const Call& call, Parallel& parallel) {
  constexpr std::int64_t kTermsPerTask = 64 * 1024;
  const std::int64_t terms = std::max<std::int64_t>(1, call.k * call.arguments.m);
  const std::int64_t per_task = std::clamp<std::int64_t>(kTermsPerTask / terms, 1, call.n);
  parallel.run(static_cast<std::size_t>(ceil_divide(call.n, per_task)),
               [&](std::size_t index, int) {
                 const std::int64_t n0 = static_cast<std::int64_t>(index) * per_task;
                 general_block(call, n0, std::min(per_task, call.n - n0));
               });
}

bool has_fast_path(const ReductionPlan& plan, int vector_width) {
  if (vector_width == 0 || plan.lanes < vector_width || plan.lanes > 64) return false;
  return plan.accumulator == Accumulator::f32 || plan.accumulator == Accumulator::bf16 ||
         plan.accumulator == Accumulator::f16;
}

// Packing pays once a weight, widened and moved, serves this many rows; sooner where long sums make
// the unpacked rows outgrow the first-level cache.
std::int64_t least_gemm_rows(std::int64_t k) { return k <= 2048 ? 128 : 48; }

}  // namespace

void run_matmul(const MatmulArguments& arguments, const MatmulKernels& fast,
                const MatmulKernels& general, Parallel& parallel) {
  const ReductionPlan& plan = arguments.plan;
  assert(plan.lanes >= 1 && plan.lanes <= 1024 && (plan.lanes & (plan.lanes - 1)) == 0);
  assert(plan.split_k >= 1 && arguments.m >= 1);
  assert(arguments.weight.dtype != Dtype::f64);
  if (arguments.weight.quantised.present() &&
      arguments.weight.quantised.format == QuantFormat::int8_dynamic) {
    return run_int8(arguments, general.int8_tile, parallel);
  }
  const std::int64_t k = arguments.weight.columns;
  const std::int64_t chunk = chunk_length(plan, k);
  const bool use_fast = has_fast_path(plan, fast.vector_width);
  Call call{.arguments = arguments,
            .kernels = use_fast ? fast : general,
            .order = {},
            .k = k,
            .n = arguments.weight.rows,
            .x_stride = arguments.x_stride == 0 ? k : arguments.x_stride,
            .y_stride = arguments.y_stride == 0 ? arguments.weight.rows : arguments.y_stride,
            .chunk = chunk,
            .chunks = chunk == 0 ? 0 : ceil_divide(k, chunk)};
  if (plan.split_combine == SplitCombine::arrival) {
    call.order = arrival_order(plan.arrival_seed, plan.split_k);
  }
  if (call.n == 0) return;
  if (!use_fast || call.chunks == 0) {
    run_general(call, parallel);
  } else if (arguments.m < least_gemm_rows(k)) {
    run_direct(call, parallel);
  } else {
    run_gemm(call, parallel);
  }
}

}  // namespace driftscope::matmul_detail
