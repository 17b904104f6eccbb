// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/matmul_driver.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "kernels/matmul/matmul_call.h"
#include "kernels/matmul/matmul_int8.h"
#include "kernels/matmul/matmul_scratch.h"
#include "kernels/quant/quantise.h"

namespace driftscope::matmul_detail {

namespace {

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
constexpr std::int64_t kTasksPerWorker = 4;
constexpr std::int64_t kTileOutputs = 8;  // the most of any kernel for one row
// Between two passes over the chunks of K, so many outputs' weights stay in the cache.
constexpr std::int64_t kSplitOutputs = 24;

void run_direct(const Call& call, Parallel& parallel) {
  const std::int64_t row_bytes = std::max<std::int64_t>(1, weight_row_bytes(call.arguments.weight));
  std::int64_t wanted = std::max<std::int64_t>(1, kBytesPerTask / row_bytes);
  std::int64_t unit = kSplitOutputs;
  if (parallel.workers() > 1 && call.arguments.m == 1) {  // small matrices have work for all, too
    wanted = std::min(wanted, ceil_divide(call.n, kTasksPerWorker * parallel.workers()));
    unit = kTileOutputs;
  }
  const std::int64_t per_task = std::min(call.n, round_up(wanted, unit));
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
    run_many_rows(call, parallel);
  }
}

}  // namespace driftscope::matmul_detail
