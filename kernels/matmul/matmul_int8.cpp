// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/matmul_int8.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "kernels/matmul/matmul_scratch.h"
#include "kernels/quant/quantise.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

namespace driftscope::matmul_detail {
namespace {

// Outputs whose weights stay in the second-level cache while all rows pass.
constexpr std::int64_t kTaskOutputs = 24;

struct Int8Call {
  const MatmulArguments& arguments;
  void (*tile)(const Int8Job&);
  std::vector<int> order;  // of arrival, where the plan asks for one
  std::int64_t chunk;      // terms of every chunk but the last
  bool vnni;
  const std::int16_t* x;         // [m, k]
  const std::uint8_t* x_offset;  // [m, k], where vnni
  const float* x_scales;         // [m]
};

// Step 4 for one output. dots: [split_k], each exact; those of empty chunks are 0.
float combine_dots(const Int8Call& call, const std::int32_t* dots, std::int64_t stride,
                   float* sums) {
  const ReductionPlan& plan = call.arguments.plan;
  if (plan.accumulator == Accumulator::f64 || plan.accumulator == Accumulator::kahan) {
    double sum = 0.0;  // a sum of few integers is exact
    for (int i = 0; i < plan.split_k; ++i) sum += dots[i * stride];
    return static_cast<float>(sum);
  }
  for (int i = 0; i < plan.split_k; ++i) sums[i] = static_cast<float>(dots[i * stride]);
  return combine_chunks(plan, sums, call.order.data());
}

void finish_outputs(const Int8Call& call, const std::int32_t* dots, std::int64_t n0,
                    std::int64_t count) {
  const MatmulArguments& arguments = call.arguments;
  const QuantisedView& codes = arguments.weight.quantised;
  const std::int64_t y_stride =
      arguments.y_stride == 0 ? arguments.weight.rows : arguments.y_stride;
  const std::int64_t area = arguments.m * count;
  std::vector<float> sums(static_cast<std::size_t>(arguments.plan.split_k));
  for (std::int64_t i = 0; i < arguments.m; ++i) {
    float* y = arguments.y + i * y_stride + n0;
    for (std::int64_t j = 0; j < count; ++j) {
      const float scale = call.x_scales[i] * codes.scales[(n0 + j) * codes.scale_stride];
      float value = combine_dots(call, dots + i * count + j, area, sums.data()) * scale;
      if (arguments.bias != nullptr) value += arguments.bias[n0 + j];
      y[j] = canonical_nan(value);
    }
    round_span(arguments.output_dtype, y, static_cast<std::size_t>(count));
  }
}

void run_outputs(const Int8Call& call, std::int64_t n0, std::int64_t count) {
  static thread_local Scratch dots_scratch;
  const MatmulArguments& arguments = call.arguments;
  const QuantisedView& codes = arguments.weight.quantised;
  const std::int64_t k = arguments.weight.columns;
  const std::int64_t area = arguments.m * count;
  const auto total = static_cast<std::size_t>(arguments.plan.split_k * area);
  auto* dots = static_cast<std::int32_t*>(dots_scratch.bytes(total * sizeof(std::int32_t)));
  for (std::int64_t chunk = 0; chunk < arguments.plan.split_k; ++chunk) {
    const std::int64_t begin = std::min(k, chunk * call.chunk);
    const auto* w = reinterpret_cast<const std::int8_t*>(codes.codes + n0 * codes.code_stride) +
                    codes.first_term;
    call.tile({.x = call.x + begin,
               .x_offset = call.vnni ? call.x_offset + begin : nullptr,
               .x_stride = k,
               .m = arguments.m,
               .w = w + begin,
               .w_stride = codes.code_stride,
               .n = count,
               .length = std::min(call.chunk, k - begin),
               .out = dots + chunk * area});
  }
  finish_outputs(call, dots, n0, count);
}

#if defined(__x86_64__)
bool has_vnni() { return __builtin_cpu_supports("avx512vnni") != 0; }
#endif

// The kernel of wider dot products, where `tile` is the one that it stands in for.
bool use_vnni([[maybe_unused]] void (*tile)(const Int8Job&)) {
#if defined(__x86_64__)
  static const bool known = has_vnni();
  return known && tile == kAvx512Kernels.int8_tile;
#else
  return false;
#endif
}

}  // namespace

void run_int8(const MatmulArguments& arguments, void (*tile)(const Int8Job&), Parallel& parallel) {
  static thread_local Scratch x_scratch;
  const std::int64_t k = arguments.weight.columns;
  assert(k <= kMostInt8Terms);
  const std::int64_t x_stride = arguments.x_stride == 0 ? k : arguments.x_stride;
  const bool vnni = use_vnni(tile);
  const auto elements = static_cast<std::size_t>(arguments.m * k);
  const auto rows = static_cast<std::size_t>(arguments.m);
  // scales [m], then codes [m, k] of 16 bits, then of 8
  auto* scales = static_cast<float*>(x_scratch.bytes(rows * sizeof(float) + 3 * elements));
  auto* x = reinterpret_cast<std::int16_t*>(scales + arguments.m);
  auto* x_offset = reinterpret_cast<std::uint8_t*>(x + elements);
  parallel.run(rows, [&](std::size_t row, int) {
    const auto i = static_cast<std::int64_t>(row);
    const std::int64_t at = i * k;
    scales[row] = quantise_activations(arguments.x + i * x_stride, k, x + at);
    if (!vnni) return;
    std::transform(x + at, x + at + k, x_offset + at,
                   [](std::int16_t code) { return static_cast<std::uint8_t>(code + 128); });
  });
  Int8Call call{.arguments = arguments,
                .tile = tile,
                .order = {},
                .chunk = chunk_length(arguments.plan, k),
                .vnni = vnni,
                .x = x,
                .x_offset = x_offset,
                .x_scales = scales};
#if defined(__x86_64__)
  if (vnni) call.tile = run_int8_tile_vnni;
#endif
  if (arguments.plan.split_combine == SplitCombine::arrival) {
    call.order = arrival_order(arguments.plan.arrival_seed, arguments.plan.split_k);
  }
  const std::int64_t n = arguments.weight.rows;
  // A task reads about this many bytes of codes, in blocks of kTaskOutputs.
  constexpr std::int64_t kBytesPerTask = 256 * 1024;
  const std::int64_t blocks =
      std::max<std::int64_t>(1, kBytesPerTask / (kTaskOutputs * std::max<std::int64_t>(1, k)));
  const std::int64_t per_task = blocks * kTaskOutputs;
  parallel.run(static_cast<std::size_t>((n + per_task - 1) / per_task), [&](std::size_t task, int) {
    const std::int64_t begin = static_cast<std::int64_t>(task) * per_task;
    const std::int64_t end = std::min(n, begin + per_task);
    for (std::int64_t n0 = begin; n0 < end; n0 += kTaskOutputs) {
      run_outputs(call, n0, std::min(kTaskOutputs, end - n0));
    }
  });
}

}  // namespace driftscope::matmul_detail
