// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "kernels/matmul/matmul.h"
#include "tests/device/parity.h"

namespace driftscope::parity {

Tally::Tally(std::string operation, const Device& device) {
  m_line.operation = std::move(operation);
  for (const Isa isa : host_isas()) m_line.variants += std::string(isa_name(isa)) + " = ";
  m_line.variants += device.name;
}

std::vector<Isa> host_isas() {
  std::vector<Isa> isas{Isa::scalar};
  for (const Isa isa : {Isa::avx2, Isa::avx512}) {
    if (isa_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

std::vector<float> draw(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::uint64_t state = seed * 0x2545f4914f6cdd1dU;
  for (float& value : values) {
    state += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    z ^= z >> 31U;
    value = static_cast<float>(static_cast<std::int32_t>(z >> 40U) - (1 << 23)) * 0x1p-22F;
    switch (z % 32) {
      case 0:
        value = 0.0F;
        break;
      case 1:
        value = -0.0F;
        break;
      case 2:
        value *= 0x1p+7F;
        break;
      case 3:
        value *= 0x1p-12F;
        break;
      default:
        break;
    }
  }
  return values;
}

std::vector<char> stored(Dtype dtype, const std::vector<float>& values) {
  std::vector<char> bytes(values.size() * dtype_size(dtype));
  narrow(dtype, values.data(), bytes.data(), values.size());
  return bytes;
}

namespace {

struct Shape {
  std::int64_t m, n, k;
};

void add_case(Tally& tally, const Device& device, const Shape& shape, Dtype dtype,
              const ReductionPlan& plan, Dtype output, bool with_bias) {
  const std::vector<float> x = draw(shape.m * shape.k, 1);
  const std::vector<char> weight = stored(dtype, draw(shape.n * shape.k, 2));
  const std::vector<float> bias = draw(shape.n, 3);
  const auto outputs = static_cast<std::size_t>(shape.m * shape.n);
  std::vector<std::vector<float>> results;
  SerialParallel serial;
  for (const Isa isa : host_isas()) {
    std::vector<float> y(outputs, -1.0F);
    matmul({.x = x.data(),
            .m = shape.m,
            .weight = {weight.data(), dtype, shape.n, shape.k},
            .bias = with_bias ? bias.data() : nullptr,
            .y = y.data(),
            .plan = plan,
            .output_dtype = output},
           isa, serial);
    results.push_back(std::move(y));
  }
  Case on_device(device);
  float* y = on_device.room<float>(outputs);
  on_device.run(&CudaTable::matmul, DeviceMatmul{.x = on_device.put(x),
                                                 .weight = on_device.put(weight),
                                                 .bias = with_bias ? on_device.put(bias) : nullptr,
                                                 .y = y,
                                                 .m = shape.m,
                                                 .n = shape.n,
                                                 .k = shape.k,
                                                 .weight_dtype = dtype,
                                                 .output_dtype = output,
                                                 .plan = on_device.plan(plan)});
  results.push_back(on_device.get(y, outputs));
  tally.add(results, fmt::format("m={} n={} k={} {} {}", shape.m, shape.n, shape.k,
                                 dtype_name(dtype), to_string(plan)));
}

constexpr std::array kAccumulators{Accumulator::f32, Accumulator::f64, Accumulator::kahan,
                                   Accumulator::bf16, Accumulator::f16};
constexpr std::array kSplitCombines{SplitCombine::sequential, SplitCombine::tree,
                                    SplitCombine::arrival};

// Every field of a plan against every other; splits of 64 and more leave empty chunks.
Line every_plan(const Device& device) {
  Tally tally("matmul, every plan", device);
  const Shape shape{.m = 2, .n = 3, .k = 101};
  for (const int lanes : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}) {
    for (const int split : {1, 2, 3, 7, 64}) {
      for (const LaneCombine lane : {LaneCombine::butterfly, LaneCombine::sequential}) {
        for (const SplitCombine combine : kSplitCombines) {
          if (split == 1 && combine != SplitCombine::sequential) continue;
          if (split == 64 && lanes > 64) continue;
          // Thousands of shuffles each: a few plans stand for the rest.
          if (lane == LaneCombine::sequential && lanes > 64 && (split > 3 || lanes == 512))
            continue;
          for (const Accumulator accumulator : kAccumulators) {
            add_case(tally, device, shape, Dtype::bf16,
                     {.lanes = lanes,
                      .split_k = split,
                      .lane_combine = lane,
                      .split_combine = combine,
                      .accumulator = accumulator,
                      .arrival_seed = 7},
                     Dtype::f32, false);
          }
        }
      }
    }
  }
  return tally.line();
}

// Odd sizes, K no multiple of the lanes, one row and many, no terms at all.
Line every_shape(const Device& device) {
  Tally tally("matmul, every shape", device);
  const std::array plans{
      ReductionPlan{}, ReductionPlan{.lanes = 16, .split_k = 3},
      ReductionPlan{.lanes = 64,
                    .split_k = 5,
                    .split_combine = SplitCombine::tree,
                    .accumulator = Accumulator::kahan},
      ReductionPlan{
          .lanes = 8, .split_k = 4, .split_combine = SplitCombine::arrival, .arrival_seed = 3}};
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    for (const std::int64_t m : {1, 2, 5, 9}) {
      for (const std::int64_t n : {1, 7, 33}) {
        for (const std::int64_t k : {0, 1, 31, 64, 100, 257}) {
          for (const ReductionPlan& plan : plans) {
            const Dtype output = k % 2 == 0 ? Dtype::bf16 : Dtype::f16;
            add_case(tally, device, {.m = m, .n = n, .k = k}, dtype, plan,
                     n == 7 ? Dtype::f32 : output, m != 2);
          }
        }
      }
    }
  }
  return tally.line();
}

// The packed paths of the host begin at 48 rows.
Line many_rows(const Device& device) {
  Tally tally("matmul, many rows", device);
  for (const std::int64_t m : {50, 131}) {
    for (const int lanes : {16, 32, 64}) {
      for (const int split : {1, 3}) {
        add_case(tally, device, {.m = m, .n = 13, .k = 2100}, Dtype::bf16,
                 {.lanes = lanes, .split_k = split}, Dtype::bf16, true);
      }
    }
  }
  return tally.line();
}

}  // namespace

void matmul_lines(const Device& device, const OnLine& on_line) {
  for (const auto& line : {every_plan, every_shape, many_rows}) on_line(line(device));
}

std::vector<Line> run_all(const Device& device, const OnLine& on_line) {
  std::vector<Line> lines;
  const OnLine keep = [&](const Line& line) {
    lines.push_back(line);
    on_line(line);
  };
  matmul_lines(device, keep);
  quantised_lines(device, keep);
  row_lines(device, keep);
  expert_and_rank_lines(device, keep);
  attention_lines(device, keep);
  return lines;
}

}  // namespace driftscope::parity
