// SPDX-License-Identifier: Apache-2.0
#include "kernels/routing/routing.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/plan/portable_math.h"
#include "kernels/softmax/softmax.h"

namespace driftscope {
namespace {

// True where expert i is chosen before expert j: larger value first, then the lower id; NaN last.
template <class Number>
bool before(const Number* values, std::int32_t i, std::int32_t j) {
  const Number x = values[i];
  const Number y = values[j];
  if (x > y) return true;
  if (x < y) return false;
  const bool x_nan = !(x == x);
  const bool y_nan = !(y == y);
  if (x_nan != y_nan) return y_nan;
  return i < j;
}

// The first `chosen` ids in the order of before(). That is a strict total order, so the result is
// one, whatever the algorithm.
template <class Number>
void choose(const Number* values, std::vector<std::int32_t>& order, std::int64_t chosen,
            std::int32_t* ids) {
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + chosen, order.end(),
                    [values](std::int32_t i, std::int32_t j) { return before(values, i, j); });
  std::copy_n(order.begin(), chosen, ids);
}

// `order`: the chosen ids first.
float margin_of(const float* logits, const std::vector<std::int32_t>& order, std::int64_t chosen) {
  const auto last = static_cast<std::size_t>(chosen);
  if (last == order.size()) return std::numeric_limits<float>::quiet_NaN();
  float rejected = -std::numeric_limits<float>::infinity();
  for (std::size_t i = last; i < order.size(); ++i) {
    const float logit = logits[order[i]];
    rejected = rejected < logit ? logit : rejected;
  }
  // + 0: the difference of two zeros is +0, whichever of several equal logits was met first.
  return canonical_nan(logits[order[last - 1]] - rejected + 0.0F);
}

void weigh(const RoutingArguments& arguments, const float* probabilities, const std::int32_t* ids,
           float* weights) {
  const std::int64_t chosen = arguments.chosen;
  for (std::int64_t i = 0; i < chosen; ++i) weights[i] = probabilities[ids[i]];
  if (arguments.renormalise) {
    float sum = weights[0];
    for (std::int64_t i = 1; i < chosen; ++i) {
      sum = round_to(arguments.compute_dtype, sum + weights[i]);
    }
    for (std::int64_t i = 0; i < chosen; ++i) {
      weights[i] = round_to(arguments.compute_dtype, weights[i] / sum);
    }
  }
  for (std::int64_t i = 0; i < chosen; ++i) {
    weights[i] = canonical_nan(round_to(arguments.weight_dtype, weights[i]));
  }
}

// Weights of the chosen logits, in their order.
void weigh_chosen(const RoutingArguments& arguments, const float* logits, const std::int32_t* ids,
                  float* weights, Isa isa) {
  for (std::int64_t i = 0; i < arguments.chosen; ++i) weights[i] = logits[ids[i]];
  softmax_row(weights, weights, arguments.chosen, arguments.plan, arguments.compute_dtype,
              arguments.weight_dtype, isa);
}

template <Isa isa>
void run(const RoutingArguments& arguments) {
  assert(arguments.chosen >= 1 && arguments.chosen <= arguments.experts);
  const auto experts = static_cast<std::size_t>(arguments.experts);
  std::vector<float> probabilities(experts);
  std::vector<std::int32_t> order(experts);
  for (std::int64_t row = 0; row < arguments.rows; ++row) {
    const float* logits = arguments.logits + row * arguments.experts;
    std::int32_t* ids = arguments.ids + row * arguments.chosen;
    float* weights = arguments.weights + row * arguments.chosen;
    if (arguments.softmax_of_chosen) {
      choose(logits, order, arguments.chosen, ids);
      weigh_chosen(arguments, logits, ids, weights, isa);
    } else {
      softmax_row(logits, probabilities.data(), arguments.experts, arguments.plan,
                  arguments.compute_dtype, arguments.compute_dtype, isa);
      choose(probabilities.data(), order, arguments.chosen, ids);
      weigh(arguments, probabilities.data(), ids, weights);
    }
    arguments.margins[row] = margin_of(logits, order, arguments.chosen);
  }
}

void add_row(const ExpertSumArguments& arguments, std::int64_t index) {
  const float weight = arguments.weights[index];
  const float* output = arguments.outputs + index * arguments.width;
  float* total = arguments.totals + arguments.rows[index] * arguments.width;
  if (arguments.product_dtype == Dtype::f32 && arguments.sum_dtype == Dtype::f32) {
    for (std::int64_t j = 0; j < arguments.width; ++j) {
      total[j] = canonical_nan(total[j] + weight * output[j]);
    }
    return;
  }
  for (std::int64_t j = 0; j < arguments.width; ++j) {
    const float product = round_to(arguments.product_dtype, weight * output[j]);
    total[j] = canonical_nan(round_to(arguments.sum_dtype, total[j] + product));
  }
}

constexpr std::array kVariants = {
    RoutingVariant{"scalar", Isa::scalar, Determinism::device_to_device, true, run<Isa::scalar>},
#if defined(__x86_64__)
    RoutingVariant{"avx2", Isa::avx2, Determinism::device_to_device, true, run<Isa::avx2>},
    RoutingVariant{"avx512", Isa::avx512, Determinism::device_to_device, true, run<Isa::avx512>},
#endif
};

}  // namespace

std::span<const RoutingVariant> routing_variants() { return kVariants; }

void route(const RoutingArguments& arguments, Isa isa) {
  for (const RoutingVariant& variant : kVariants) {
    if (variant.isa == isa) return variant.run(arguments);
  }
  kVariants[0].run(arguments);
}

void route_reference(const RoutingArguments& arguments, std::int32_t* ids, double* weights) {
  std::vector<double> probabilities(static_cast<std::size_t>(arguments.experts));
  std::vector<std::int32_t> order(probabilities.size());
  for (std::int64_t row = 0; row < arguments.rows; ++row) {
    softmax_reference(arguments.logits + row * arguments.experts, probabilities.data(),
                      arguments.experts);
    choose(probabilities.data(), order, arguments.chosen, ids);
    double sum = 0.0;
    for (std::int64_t i = 0; i < arguments.chosen; ++i) {
      sum += weights[i] = probabilities[static_cast<std::size_t>(ids[i])];
    }
    // A softmax over the chosen is their share of the softmax over all.
    const bool divide = arguments.renormalise || arguments.softmax_of_chosen;
    for (std::int64_t i = 0; divide && i < arguments.chosen; ++i) weights[i] /= sum;
    ids += arguments.chosen;
    weights += arguments.chosen;
  }
}

void add_expert_outputs(const ExpertSumArguments& arguments, Parallel& parallel) {
  // About as many elements as pay for handing a task to a thread.
  constexpr std::int64_t kElementsPerTask = 16384;
  const std::int64_t width = arguments.width;
  const std::int64_t per_task = std::max<std::int64_t>(1, kElementsPerTask / width);
  const auto task = [&](std::size_t index, int) {
    const std::int64_t first = static_cast<std::int64_t>(index) * per_task;
    for (std::int64_t i = first; i < std::min(arguments.count, first + per_task); ++i) {
      add_row(arguments, i);
    }
  };
  parallel.run(static_cast<std::size_t>((arguments.count + per_task - 1) / per_task), task);
}

void sigmoid_gates(float* gates, std::int64_t count, Dtype dtype) {
  for (std::int64_t i = 0; i < count; ++i) {
    gates[i] = canonical_nan(round_to(dtype, 1.0F / (1.0F + portable::exp(-gates[i]))));
  }
}

}  // namespace driftscope
