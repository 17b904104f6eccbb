// SPDX-License-Identifier: Apache-2.0
// Matmuls of quantised weights: every format, under plans of every kind.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "kernels/matmul/matmul.h"
#include "kernels/quant/quantise.h"
#include "tests/device/parity.h"

namespace driftscope::parity {
namespace {

struct Shape {
  std::int64_t m, n, k;
};

// Quantised weights with their memory.
struct Weights {
  QuantLayout layout;
  std::vector<std::uint8_t> codes, zeros;
  std::vector<float> scales;
  QuantisedView view;

  Weights(const QuantSpec& spec, std::int64_t rows, std::int64_t columns)
      : layout(quant_layout(spec, rows, columns)),
        codes(layout.code_bytes),
        zeros(layout.zero_bytes),
        scales(layout.scale_count),
        view(quantised_view(spec, layout, target())) {}
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;
  [[nodiscard]] QuantTarget target() {
    return {.codes = codes.data(),
            .scales = scales.data(),
            .zeros = zeros.empty() ? nullptr : zeros.data()};
  }
  [[nodiscard]] QuantisedView on_device(Case& call) const {
    QuantisedView moved = view;
    moved.codes = call.put(codes);
    moved.scales = call.put(scales);
    if (!zeros.empty()) moved.zeros = call.put(zeros);
    return moved;
  }
};

struct Run {
  Shape shape;
  ReductionPlan plan;
  Dtype output = Dtype::f32;
  bool with_bias = false;
};

void add_case(Tally& tally, const Device& device, const Weights& weights,
              const std::vector<float>& x, const Run& run) {
  const Shape& shape = run.shape;
  const std::vector<float> bias = draw(shape.n, 3);
  const auto outputs = static_cast<std::size_t>(shape.m * shape.n);
  std::vector<std::vector<float>> results;
  SerialParallel serial;
  for (const Isa isa : host_isas()) {
    std::vector<float> y(outputs, -1.0F);
    matmul({.x = x.data(),
            .m = shape.m,
            .weight = {.data = weights.codes.data(),
                       .rows = shape.n,
                       .columns = shape.k,
                       .quantised = weights.view},
            .bias = run.with_bias ? bias.data() : nullptr,
            .y = y.data(),
            .plan = run.plan,
            .output_dtype = run.output},
           isa, serial);
    results.push_back(std::move(y));
  }
  Case call(device);
  float* y = call.room<float>(outputs);
  call.run(&CudaTable::matmul,
           DeviceMatmul{.x = call.put(x),
                        .bias = run.with_bias ? call.put(bias) : nullptr,
                        .y = y,
                        .m = shape.m,
                        .n = shape.n,
                        .k = shape.k,
                        .output_dtype = run.output,
                        .plan = call.plan(run.plan),
                        .quantised = weights.on_device(call),
                        .x_codes = call.room<std::int8_t>(x.size()),
                        .x_scales = call.room<float>(static_cast<std::size_t>(shape.m))});
  results.push_back(call.get(y, outputs));
  tally.add(results,
            fmt::format("m={} n={} k={} {}", shape.m, shape.n, shape.k, to_string(run.plan)));
}

void quantise(Weights& weights, const QuantSpec& spec, const Shape& shape) {
  SerialParallel serial;
  const std::vector<float> values = draw(shape.n * shape.k, 2);
  static_cast<void>(
      quantise_matrix(spec, Dtype::f32, values.data(), shape.n, shape.k, weights.target(), serial));
}

std::vector<QuantSpec> specs() {
  std::vector<QuantSpec> all;
  for (const QuantFormatInfo& info : quant_formats()) {
    if (info.extent != ScaleExtent::group) {
      all.push_back({.format = info.format});
      continue;
    }
    for (const std::int64_t group : {16, 128}) all.push_back({info.format, group});
  }
  return all;
}

// Odd sizes, groups and blocks cut short, one row and many; K of 257 has empty chunks under 64.
void add_shapes(Tally& tally, const Device& device, const QuantSpec& spec) {
  const std::array plans{
      ReductionPlan{}, ReductionPlan{.lanes = 16, .split_k = 3, .accumulator = Accumulator::bf16},
      ReductionPlan{.lanes = 64,
                    .split_k = 5,
                    .split_combine = SplitCombine::tree,
                    .accumulator = Accumulator::kahan},
      ReductionPlan{
          .lanes = 8, .split_k = 4, .split_combine = SplitCombine::arrival, .arrival_seed = 3}};
  for (const std::int64_t m : {1, 5}) {
    for (const std::int64_t n : {1, 7}) {
      for (const std::int64_t k : {1, 31, 64, 129, 257}) {
        const Shape shape{.m = m, .n = n, .k = k};
        Weights weights(spec, n, k);
        quantise(weights, spec, shape);
        const std::vector<float> x = draw(m * k, 1);
        for (const ReductionPlan& plan : plans) {
          add_case(tally, device, weights, x,
                   {.shape = shape,
                    .plan = plan,
                    .output = n == 7 ? Dtype::f32 : Dtype::bf16,
                    .with_bias = m == 1});
        }
      }
    }
  }
}

// Every field of a plan at least once against every accumulator.
void add_plans(Tally& tally, const Device& device, const QuantSpec& spec) {
  const Shape shape{.m = 2, .n = 3, .k = 101};
  Weights weights(spec, shape.n, shape.k);
  quantise(weights, spec, shape);
  const std::vector<float> x = draw(shape.m * shape.k, 1);
  for (const auto& [lanes, split] :
       {std::pair{1, 7}, std::pair{32, 1}, std::pair{64, 3}, std::pair{128, 64}}) {
    for (const LaneCombine lane : {LaneCombine::butterfly, LaneCombine::sequential}) {
      if (lanes == 128 && lane == LaneCombine::sequential) continue;
      for (const SplitCombine combine :
           {SplitCombine::sequential, SplitCombine::tree, SplitCombine::arrival}) {
        for (const Accumulator accumulator :
             {Accumulator::f32, Accumulator::f64, Accumulator::kahan, Accumulator::bf16,
              Accumulator::f16}) {
          add_case(tally, device, weights, x,
                   {.shape = shape,
                    .plan = {.lanes = lanes,
                             .split_k = split,
                             .lane_combine = lane,
                             .split_combine = combine,
                             .accumulator = accumulator,
                             .arrival_seed = 7}});
        }
      }
    }
  }
}

// Some terms of each row, as a tensor-parallel rank has them.
void add_slices(Tally& tally, const Device& device, const QuantSpec& spec) {
  const Shape whole{.m = 2, .n = 3, .k = 300};
  Weights weights(spec, whole.n, whole.k);
  quantise(weights, spec, whole);
  for (const std::int64_t first : {7, 64, 130}) {
    weights.view.first_term = first;
    for (const int split : {1, 3}) {
      add_case(tally, device, weights, draw(whole.m * 150, 1),
               {.shape = {.m = whole.m, .n = whole.n, .k = 150}, .plan = {.split_k = split}});
    }
  }
}

// All codes that a checkpoint can have, under scales of any size, summed and one by one. There is
// no NaN among weights, so fp8 has none of its codes.
void add_all_codes(Tally& tally, const Device& device, const QuantSpec& spec) {
  const Shape shape{.m = 2, .n = 5, .k = 256};
  Weights weights(spec, shape.n, shape.k);
  for (std::size_t i = 0; i < weights.codes.size(); ++i) {
    const auto code = static_cast<std::uint8_t>(i % 256 + i / 256 * 37);
    weights.codes[i] = weights.view.is_fp8() && (code & 0x7fU) == 0x7fU ? 0x7eU : code;
  }
  const std::vector<float> scales = draw(static_cast<std::int64_t>(weights.scales.size()), 4);
  for (std::size_t i = 0; i < scales.size(); ++i) weights.scales[i] = std::abs(scales[i]);
  for (std::size_t i = 0; i < weights.zeros.size(); ++i) {
    weights.zeros[i] = static_cast<std::uint8_t>(i * 7 % 16);
  }
  add_case(tally, device, weights, draw(shape.m * shape.k, 1), {.shape = shape, .plan = {}});
  std::vector<float> units(static_cast<std::size_t>(shape.k * shape.k), 0.0F);
  for (std::int64_t k = 0; k < shape.k; ++k) units[static_cast<std::size_t>(k * (shape.k + 1))] = 1;
  add_case(tally, device, weights, units,
           {.shape = {.m = shape.k, .n = shape.n, .k = shape.k}, .plan = {}});
}

// Rows that int8_dynamic cannot quantise, and one of zeros.
void add_special_rows(Tally& tally, const Device& device) {
  const QuantSpec spec{.format = QuantFormat::int8_dynamic};
  const Shape shape{.m = 5, .n = 3, .k = 140};
  Weights weights(spec, shape.n, shape.k);
  quantise(weights, spec, shape);
  std::vector<float> x = draw(shape.m * shape.k, 1);
  const auto k = static_cast<std::size_t>(shape.k);
  x[7] = std::numeric_limits<float>::quiet_NaN();
  x[k + 139] = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < k; ++i) x[2 * k + i] = 0.0F;
  for (std::size_t i = 0; i < k; ++i) x[3 * k + i] *= 0x1p-143F;  // subnormal; scales down to 0
  for (const Accumulator accumulator : {Accumulator::f32, Accumulator::f64}) {
    add_case(tally, device, weights, x,
             {.shape = shape, .plan = {.split_k = 3, .accumulator = accumulator}});
  }
}

}  // namespace

void quantised_lines(const Device& device, const OnLine& on_line) {
  for (const QuantFormatInfo& info : quant_formats()) {
    Tally tally(fmt::format("matmul, {}", info.name), device);
    for (const QuantSpec& spec : specs()) {
      if (spec.format != info.format) continue;
      add_shapes(tally, device, spec);
      add_plans(tally, device, spec);
      add_slices(tally, device, spec);
      add_all_codes(tally, device, spec);
    }
    if (info.integer_activations) add_special_rows(tally, device);
    on_line(tally.line());
  }
}

}  // namespace driftscope::parity
