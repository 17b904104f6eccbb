// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/matmul_call.h"

#include <algorithm>

#include "kernels/quant/quantise.h"

namespace driftscope::matmul_detail {
namespace {

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

}  // namespace

const void* weight_at(const WeightView& weight, std::int64_t row, std::int64_t column) {
  return static_cast<const char*>(weight.data) +
         (row * weight.stride() + column) * static_cast<std::int64_t>(dtype_size(weight.dtype));
}

std::int64_t weight_row_bytes(const WeightView& weight) {
  if (weight.quantised.present()) return weight.quantised.code_stride;
  return weight.columns * static_cast<std::int64_t>(dtype_size(weight.dtype));
}

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

void finish(const Call& call, std::int64_t m0, std::int64_t rows, std::int64_t n0,
            std::int64_t count) {
  for (std::int64_t i = m0; i < m0 + rows; ++i) {
    float* y = call.arguments.y + i * call.y_stride + n0;
    const float* bias = call.arguments.bias == nullptr ? nullptr : call.arguments.bias + n0;
    call.kernels.finish(y, bias, count);
    round_span(call.arguments.output_dtype, y, static_cast<std::size_t>(count));
  }
}

bool single_plain_chunk(const Call& call) {
  return call.arguments.plan.split_k == 1 &&
         accumulator_rounding(call.arguments.plan.accumulator) == Dtype::f32;
}

void store_chunks(const Call& call, float* sums, std::int64_t m0, std::int64_t rows,
                  std::int64_t n0, std::int64_t columns) {
  const std::int64_t count = rows * columns;
  std::fill(sums + call.chunks * count, sums + call.arguments.plan.split_k * count, 0.0F);
  const float* result = combine_chunk_rows(call, sums, count);
  for (std::int64_t i = 0; i < rows; ++i) {
    std::copy_n(result + i * columns, columns, call.arguments.y + (m0 + i) * call.y_stride + n0);
  }
}

}  // namespace driftscope::matmul_detail
