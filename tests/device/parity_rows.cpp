// SPDX-License-Identifier: Apache-2.0
// Norm, softmax, rotary embedding, activation, residual sum and conversions.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "kernels/activation/activation.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/rope/rope.h"
#include "kernels/softmax/softmax.h"
#include "tests/device/parity.h"

namespace driftscope::parity {
namespace {

using Results = std::vector<std::vector<float>>;

constexpr std::array kStored{Dtype::f32, Dtype::f16, Dtype::bf16};

const std::vector<ReductionPlan>& plans() {
  static const std::vector<ReductionPlan> all = [] {
    std::vector<ReductionPlan> made;
    for (const int lanes : {1, 4, 16, 32, 64, 256}) {
      for (const int split : {1, 3}) {
        for (const auto accumulator : {Accumulator::f32, Accumulator::f64, Accumulator::kahan,
                                       Accumulator::bf16, Accumulator::f16}) {
          made.push_back(
              {.lanes = lanes,
               .split_k = split,
               .lane_combine = lanes == 16 ? LaneCombine::sequential : LaneCombine::butterfly,
               .split_combine = lanes == 32 ? SplitCombine::arrival : SplitCombine::tree,
               .accumulator = accumulator,
               .arrival_seed = 11});
        }
      }
    }
    return made;
  }();
  return all;
}

Line rmsnorm_line(const Device& device) {
  Tally tally("rmsnorm", device);
  SerialParallel serial;
  for (const ReductionPlan& plan : plans()) {
    for (const std::int64_t rows : {1, 6}) {
      for (const std::int64_t width : {1, 64, 101}) {
        const Dtype output = kStored[static_cast<std::size_t>(width % 3)];
        RmsNormArguments arguments{.rows = rows,
                                   .width = width,
                                   .plan = plan,
                                   .normalised_dtype = rows == 1 ? output : Dtype::f32,
                                   .output_dtype = output};
        const std::vector<float> x = draw(rows * width, 4);
        const std::vector<float> weight = draw(width, 5);
        arguments.x = x.data();
        arguments.weight = weight.data();
        Results results;
        for (const Isa isa : host_isas()) {
          std::vector<float> y(x.size());
          arguments.y = y.data();
          rmsnorm(arguments, isa, serial);
          results.push_back(std::move(y));
        }
        Case on_device(device);
        float* y = on_device.put(x);  // in place
        on_device.run(&CudaTable::rmsnorm,
                      DeviceRmsNorm{.x = y,
                                    .weight = on_device.put(weight),
                                    .y = y,
                                    .rows = rows,
                                    .width = width,
                                    .epsilon = arguments.epsilon,
                                    .plan = on_device.plan(plan),
                                    .normalised_dtype = arguments.normalised_dtype,
                                    .output_dtype = output});
        results.push_back(on_device.get(y, x.size()));
        tally.add(results, fmt::format("rows={} width={} {}", rows, width, to_string(plan)));
      }
    }
  }
  return tally.line();
}

Line residual_line(const Device& device) {
  Tally tally("residual sum", device);
  SerialParallel serial;
  for (const Dtype dtype : kStored) {
    for (const std::int64_t count : {1, 31, 1000, 70000}) {
      const std::vector<float> x = draw(count, 6);
      const std::vector<float> delta = draw(count, 7);
      Results results;
      for (const Isa isa : host_isas()) {
        std::vector<float> y = x;
        add_residual(y.data(), delta.data(), count, dtype, isa, serial);
        results.push_back(std::move(y));
      }
      Case on_device(device);
      float* y = on_device.put(x);
      on_device.run(&CudaTable::add_residual,
                    DeviceAddResidual{y, on_device.put(delta), count, dtype});
      results.push_back(on_device.get(y, x.size()));
      tally.add(results, fmt::format("{} elements {}", count, dtype_name(dtype)));
    }
  }
  return tally.line();
}

std::vector<float> softmax_row_of(std::int64_t count, int kind) {
  std::vector<float> x = draw(count, 8);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::size_t middle = x.size() / 2;
  if (kind == 1) x[middle] = -infinity;
  if (kind == 2) x[middle] = std::numeric_limits<float>::quiet_NaN();
  if (kind == 3) x.assign(x.size(), -infinity);
  if (kind == 4) x[middle] = infinity;
  return x;
}

Line softmax_line(const Device& device) {
  Tally tally("softmax", device);
  for (const ReductionPlan& plan : plans()) {
    for (const Dtype compute : {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::f16}) {
      for (const std::int64_t count : {1, 33, 100}) {
        const int kind = count == 33 ? plan.lanes % 5 : 0;
        const std::vector<float> x = softmax_row_of(count, kind);
        const Dtype output = count == 33 ? Dtype::bf16 : Dtype::f32;
        Results results;
        for (const Isa isa : host_isas()) {
          std::vector<float> y(x.size());
          softmax_row(x.data(), y.data(), count, plan, compute, output, isa);
          results.push_back(std::move(y));
        }
        Case on_device(device);
        float* y = on_device.room<float>(x.size());
        on_device.run(&CudaTable::softmax, DeviceSoftmax{.x = on_device.put(x),
                                                         .y = y,
                                                         .rows = 1,
                                                         .count = count,
                                                         .plan = on_device.plan(plan),
                                                         .compute_dtype = compute,
                                                         .output_dtype = output});
        results.push_back(on_device.get(y, x.size()));
        tally.add(results, fmt::format("count={} kind={} {} {}", count, kind, dtype_name(compute),
                                       to_string(plan)));
      }
    }
  }
  return tally.line();
}

Line rope_line(const Device& device) {
  Tally tally("rope", device);
  SerialParallel serial;
  for (const std::int64_t half : {1, 8, 33}) {
    std::vector<double> frequencies;
    for (std::int64_t i = 0; i < half; ++i) {
      frequencies.push_back(1.0 / static_cast<double>(1 + 3 * i));
    }
    const RopeTable table = make_rope_table(frequencies, 40, Dtype::f32, 1.0);
    for (const Dtype dtype : kStored) {
      for (const bool interleaved : {false, true}) {
        for (const bool products : {false, true}) {
          for (const std::int64_t heads : {1, 3}) {
            const std::vector<std::int32_t> positions{0, 39, 7};
            const std::vector<float> x = draw(3 * heads * 2 * half, 9);
            Results results;
            for (const Isa isa : host_isas()) {
              std::vector<float> y = x;
              apply_rope({.x = y.data(),
                          .positions = positions.data(),
                          .rows = 3,
                          .heads = heads,
                          .head_dim = 2 * half,
                          .table = &table,
                          .layout = interleaved ? RopeLayout::interleaved : RopeLayout::rotate_half,
                          .round_products = products,
                          .output_dtype = dtype},
                         isa, serial);
              results.push_back(std::move(y));
            }
            Case on_device(device);
            float* y = on_device.put(x);
            on_device.run(&CudaTable::rope, DeviceRope{.x = y,
                                                       .positions = on_device.put(positions),
                                                       .cosine = on_device.put(table.cosine),
                                                       .sine = on_device.put(table.sine),
                                                       .rows = 3,
                                                       .heads = heads,
                                                       .half = half,
                                                       .interleaved = interleaved,
                                                       .round_products = products,
                                                       .output_dtype = dtype});
            results.push_back(on_device.get(y, x.size()));
            tally.add(results, fmt::format("half={} heads={} {}", half, heads, dtype_name(dtype)));
          }
        }
      }
    }
  }
  return tally.line();
}

Line swiglu_line(const Device& device) {
  Tally tally("swiglu", device);
  SerialParallel serial;
  for (const Dtype silu : kStored) {
    for (const Dtype output : kStored) {
      for (const std::int64_t width : {1, 37, 300}) {
        for (const std::int64_t rows : {1, 4}) {
          const std::int64_t stride = 2 * width;  // gate and up side by side
          std::vector<float> both = draw(rows * stride, 10);
          both[0] = -100.0F;  // exp overflows
          const auto count = static_cast<std::size_t>(rows * width);
          Results results;
          for (const Isa isa : host_isas()) {
            std::vector<float> y(count);
            swiglu({.gate = both.data(),
                    .up = both.data() + width,
                    .y = y.data(),
                    .rows = rows,
                    .width = width,
                    .gate_stride = stride,
                    .up_stride = stride,
                    .silu_dtype = silu,
                    .output_dtype = output},
                   isa, serial);
            results.push_back(std::move(y));
          }
          Case on_device(device);
          const float* gate = on_device.put(both);
          float* y = on_device.room<float>(count);
          on_device.run(&CudaTable::swiglu, DeviceSwiglu{.gate = gate,
                                                         .up = gate + width,
                                                         .y = y,
                                                         .rows = rows,
                                                         .width = width,
                                                         .gate_stride = stride,
                                                         .up_stride = stride,
                                                         .silu_dtype = silu,
                                                         .output_dtype = output});
          results.push_back(on_device.get(y, count));
          tally.add(results, fmt::format("rows={} width={}", rows, width));
        }
      }
    }
  }
  return tally.line();
}

// Every 16-bit value, and f32 values at the edges of rounding.
Line conversion_line(const Device& device) {
  Tally tally("widening and rounding", device);
  constexpr std::size_t kAll = 65536;
  std::vector<std::uint16_t> bits(kAll);
  for (std::size_t i = 0; i < kAll; ++i) bits[i] = static_cast<std::uint16_t>(i);
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    Case on_device(device);
    std::vector<float> host(kAll);
    widen(dtype, bits.data(), host.data(), kAll);
    float* y = on_device.room<float>(kAll);
    on_device.run(&CudaTable::embed,
                  DeviceEmbed{.table = on_device.put(bits),
                              .ids = on_device.put(std::vector<std::int32_t>{1, 0}),
                              .y = y,
                              .rows = 2,
                              .width = kAll / 2,
                              .table_dtype = dtype});
    std::vector<float> swapped(host.begin() + kAll / 2, host.end());
    swapped.insert(swapped.end(), host.begin(), host.begin() + kAll / 2);
    tally.add(Results{swapped, on_device.get(y, kAll)}, fmt::format("widen {}", dtype_name(dtype)));

    std::vector<float> near = host;  // between two values, exactly and nearly
    for (float& value : near) value *= 1.0F + 0x1p-9F;
    for (std::size_t i = 0; i < kAll; i += 3) near[i] = std::nextafter(near[i], 1.0F);
    std::vector<float> rounded = near;
    round_span(dtype, rounded.data(), kAll);
    float* values = on_device.put(near);
    on_device.run(&CudaTable::round, DeviceRound{values, kAll, dtype});
    tally.add(Results{rounded, on_device.get(values, kAll)},
              fmt::format("round {}", dtype_name(dtype)));
    std::vector<std::uint16_t> narrowed(kAll);
    narrow(dtype, near.data(), narrowed.data(), kAll);
    auto* target = on_device.room<std::uint16_t>(kAll);
    on_device.run(&CudaTable::narrow, DeviceNarrow{on_device.put(near), target, kAll, dtype});
    tally.add(std::vector<std::vector<std::uint16_t>>{narrowed, on_device.get(target, kAll)},
              fmt::format("narrow {}", dtype_name(dtype)));
  }
  return tally.line();
}

}  // namespace

void row_lines(const Device& device, const OnLine& on_line) {
  for (const auto& line :
       {rmsnorm_line, residual_line, softmax_line, rope_line, swiglu_line, conversion_line}) {
    on_line(line(device));
  }
}

}  // namespace driftscope::parity
