// SPDX-License-Identifier: Apache-2.0
// Routing, the sum of experts, gates, and the all-reduce of ranks.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/allreduce/all_reduce.h"
#include "kernels/routing/routing.h"
#include "tests/device/parity.h"

namespace driftscope::parity {
namespace {

using Results = std::vector<std::vector<float>>;
constexpr std::array kStored{Dtype::f32, Dtype::f16, Dtype::bf16};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Rows of all kinds: drawn, with ties of two and of all, zeros of both signs, infinities and NaN.
std::vector<float> router_logits(std::int64_t rows, std::int64_t experts) {
  std::vector<float> logits = draw(rows * experts, 31);
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const at = logits.data() + row * experts;
    const auto last = static_cast<std::size_t>(experts - 1);
    switch (row % 7) {
      case 1:
        at[last] = at[0];
        break;
      case 2:
        for (std::int64_t i = 0; i < experts; ++i) at[i] = i % 2 == 0 ? -0.0F : 0.0F;
        break;
      case 3:
        at[last] = kInfinity;
        break;
      case 4:
        at[last / 2] = kNan;
        break;
      case 5:
        for (std::int64_t i = 0; i < experts; ++i) at[i] = -kInfinity;
        break;
      case 6:
        for (std::int64_t i = 0; i < experts; ++i) at[i] = std::round(at[i]);
        break;
      default:
        break;
    }
  }
  return logits;
}

// ids, weights and margins as one list.
std::vector<float> joined(const std::vector<std::int32_t>& ids, const std::vector<float>& weights,
                          const std::vector<float>& margins) {
  std::vector<float> all;
  for (const std::int32_t id : ids) all.push_back(std::bit_cast<float>(id));
  all.insert(all.end(), weights.begin(), weights.end());
  all.insert(all.end(), margins.begin(), margins.end());
  return all;
}

std::vector<float> route_on_device(const Device& device, const RoutingArguments& arguments) {
  Case call(device);
  const auto logits = static_cast<std::size_t>(arguments.rows * arguments.experts);
  const auto choices = static_cast<std::size_t>(arguments.rows * arguments.chosen);
  const auto rows = static_cast<std::size_t>(arguments.rows);
  const DeviceRouting request{.logits = call.put(arguments.logits, logits),
                              .probabilities = call.room<float>(logits),
                              .rows = arguments.rows,
                              .experts = arguments.experts,
                              .chosen = arguments.chosen,
                              .renormalise = arguments.renormalise,
                              .plan = call.plan(arguments.plan),
                              .compute_dtype = arguments.compute_dtype,
                              .weight_dtype = arguments.weight_dtype,
                              .ids = call.room<std::int32_t>(choices),
                              .weights = call.room<float>(choices),
                              .margins = call.room<float>(rows)};
  call.run(&CudaTable::route, request);
  return joined(call.get(request.ids, choices), call.get(request.weights, choices),
                call.get(request.margins, rows));
}

void add_route(Tally& tally, const Device& device, RoutingArguments arguments) {
  const std::vector<float> logits = router_logits(arguments.rows, arguments.experts);
  arguments.logits = logits.data();
  const auto choices = static_cast<std::size_t>(arguments.rows * arguments.chosen);
  std::vector<std::int32_t> ids(choices);
  std::vector<float> weights(choices);
  std::vector<float> margins(static_cast<std::size_t>(arguments.rows));
  Results results;
  for (const Isa isa : host_isas()) {
    arguments.ids = ids.data();
    arguments.weights = weights.data();
    arguments.margins = margins.data();
    route(arguments, isa);
    results.push_back(joined(ids, weights, margins));
  }
  results.push_back(route_on_device(device, arguments));
  tally.add(results,
            fmt::format("rows={} experts={} chosen={} {}", arguments.rows, arguments.experts,
                        arguments.chosen, dtype_name(arguments.compute_dtype)));
}

Line routing_line(const Device& device) {
  Tally tally("routing", device);
  for (const auto& [experts, chosen] : {std::pair{1, 1}, std::pair{4, 2}, std::pair{5, 5},
                                        std::pair{8, 2}, std::pair{60, 4}, std::pair{128, 8}}) {
    for (const std::int64_t rows : {1, 9, 14}) {
      for (const Dtype compute : kStored) {
        for (const Dtype weight : kStored) {
          for (const bool renormalise : {false, true}) {
            add_route(tally, device,
                      {.rows = rows,
                       .experts = experts,
                       .chosen = chosen,
                       .renormalise = renormalise,
                       .plan = {.lanes = experts == 60 ? 16 : 32},
                       .compute_dtype = compute,
                       .weight_dtype = weight});
          }
        }
      }
    }
  }
  return tally.line();
}

Line expert_sum_line(const Device& device) {
  Tally tally("sum of experts", device);
  SerialParallel serial;
  const std::vector<std::int64_t> rows{0, 2, 5};
  for (const std::int64_t width : {1, 32, 101}) {
    for (const Dtype product : kStored) {
      for (const Dtype sum : kStored) {
        const std::vector<float> outputs = draw(3 * width, 7);
        const std::vector<float> weights = draw(3, 8);
        std::vector<float> totals = draw(6 * width, 9);
        totals[0] = kNan;
        Case call(device);
        float* on_device = call.put(totals);
        call.run(&CudaTable::expert_sum, DeviceExpertSum{.outputs = call.put(outputs),
                                                         .rows = call.put(rows),
                                                         .weights = call.put(weights),
                                                         .count = 3,
                                                         .width = width,
                                                         .totals = on_device,
                                                         .product_dtype = product,
                                                         .sum_dtype = sum});
        add_expert_outputs({.outputs = outputs.data(),
                            .rows = rows.data(),
                            .weights = weights.data(),
                            .count = 3,
                            .width = width,
                            .totals = totals.data(),
                            .product_dtype = product,
                            .sum_dtype = sum},
                           serial);
        tally.add<float>(
            {totals, call.get(on_device, totals.size())},
            fmt::format("width={} {} {}", width, dtype_name(product), dtype_name(sum)));
      }
    }
  }
  return tally.line();
}

Line gate_line(const Device& device) {
  Tally tally("gates", device);
  for (const Dtype dtype : kStored) {
    std::vector<float> gates = draw(300, 12);
    gates.insert(gates.end(), {kNan, kInfinity, -kInfinity, 200.0F, -200.0F});
    Case call(device);
    float* on_device = call.put(gates);
    call.run(&CudaTable::sigmoid,
             DeviceSigmoid{on_device, static_cast<std::int64_t>(gates.size()), dtype});
    sigmoid_gates(gates.data(), static_cast<std::int64_t>(gates.size()), dtype);
    tally.add<float>({gates, call.get(on_device, gates.size())}, std::string(dtype_name(dtype)));
  }
  return tally.line();
}

struct Message {
  std::int64_t ranks, rows, width;
  Dtype dtype;
  bool with_bias;
};

// The host adds, then ends the projection as Projector does: bias, canonical NaN, one rounding.
void add_message(Tally& tally, const Device& device, const AllReduceVariant& variant,
                 const Message& message) {
  SerialParallel serial;
  const std::int64_t elements = message.rows * message.width;
  std::vector<float> parts = draw(message.ranks * elements, 17);
  parts[static_cast<std::size_t>(elements / 2)] = kNan;
  const std::vector<float> bias = draw(message.width, 18);
  Case call(device);
  const DeviceAllReduce request{.parts = call.put(parts),
                                .bias = message.with_bias ? call.put(bias) : nullptr,
                                .y = call.room<float>(static_cast<std::size_t>(elements)),
                                .ranks = message.ranks,
                                .rows = message.rows,
                                .width = message.width,
                                .order = variant.order,
                                .dtype = message.dtype,
                                .output_dtype = message.dtype};
  call.run(&CudaTable::all_reduce, request);
  std::vector<float*> ranks;
  for (std::int64_t rank = 0; rank < message.ranks; ++rank) {
    ranks.push_back(parts.data() + rank * elements);
  }
  variant.run({.ranks = ranks, .elements = elements, .dtype = message.dtype}, serial);
  std::vector<float> expected(parts.begin(), parts.begin() + elements);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const float added = bias[i % static_cast<std::size_t>(message.width)];
    expected[i] = canonical_nan(message.with_bias ? expected[i] + added : expected[i]);
  }
  round_span(message.dtype, expected.data(), expected.size());
  tally.add<float>({expected, call.get(request.y, expected.size())},
                   fmt::format("ranks={} rows={} width={} {}", message.ranks, message.rows,
                               message.width, dtype_name(message.dtype)));
}

Line all_reduce_line(const Device& device, const AllReduceVariant& variant) {
  Tally tally(fmt::format("all-reduce, {}", variant.name), device);
  for (const std::int64_t ranks : {1, 2, 3, 4, 7, 8, 16}) {
    for (const std::int64_t rows : {1, 3}) {
      for (const std::int64_t width : {1, 5, 64, 101}) {
        for (const Dtype dtype : kStored) {
          add_message(tally, device, variant, {ranks, rows, width, dtype, rows == 3});
        }
      }
    }
  }
  return tally.line();
}

}  // namespace

void expert_and_rank_lines(const Device& device, const OnLine& on_line) {
  for (const auto& line : {routing_line, expert_sum_line, gate_line}) on_line(line(device));
  for (const AllReduceVariant& variant : all_reduce_variants()) {
    on_line(all_reduce_line(device, variant));
  }
}

}  // namespace driftscope::parity
