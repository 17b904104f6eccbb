// SPDX-License-Identifier: Apache-2.0
// Which experts of a mixture a row goes to, and how their outputs are added.
//
// The order follows the reference implementation (transformers: Mixtral, Qwen2-MoE, Qwen3-MoE):
//  1. probabilities = softmax over all experts (kernels/softmax, under a plan);
//  2. the `chosen` largest of them, ties to the lower expert id, NaN below every number;
//  3. where `renormalise`: their sum in falling order of probability, one addition each, and each
//     divided by it;
//  4. each expert runs on the rows that chose it, and its output, times the weight, is added to the
//     row's total, experts in rising id, beginning at +0.
// softmax_of_chosen (transformers: gpt-oss) puts the choice first: the `chosen` largest logits,
// ties as above; their softmax, in falling order, is the weights.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

struct RoutingArguments {
  const float* logits = nullptr;  // [rows, experts], row-major
  std::int64_t rows = 0;
  std::int64_t experts = 0;
  std::int64_t chosen = 0;  // 1 … experts
  bool renormalise = false;
  bool softmax_of_chosen = false;
  ReductionPlan plan = {};  // of the softmax's sum
  // f32, f16, bf16: see softmax_row(); the sum and the quotients of step 3 are rounded to it too.
  Dtype compute_dtype = Dtype::f32;
  Dtype weight_dtype = Dtype::f32;  // what the weights are rounded to at last
  std::int32_t* ids = nullptr;      // [rows, chosen], falling probability
  float* weights = nullptr;         // [rows, chosen], in the same order
  // [rows]: logit of the last chosen minus the largest logit of the others, in f32. How close the
  // route came to another; negative only where rounding made a tie of unequal logits. NaN where
  // all experts are chosen.
  float* margins = nullptr;
};

// One way to compute it. All portable variants give the same bits.
struct RoutingVariant {
  std::string_view name;  // "scalar", "avx2", "avx512": the softmax's
  Isa isa;
  Determinism determinism;  // what the variant promises
  bool portable;            // same bits as the scalar definition
  void (*run)(const RoutingArguments& arguments);
};
[[nodiscard]] std::span<const RoutingVariant> routing_variants();

// A row's result depends on its own logits only.
void route(const RoutingArguments& arguments, Isa isa);
// The same in f64 throughout, without rounding points. ids: [rows, chosen]; weights: the same.
void route_reference(const RoutingArguments& arguments, std::int32_t* ids, double* weights);

struct ExpertSumArguments {
  const float* outputs = nullptr;      // [count, width], row-major: one expert's
  const std::int64_t* rows = nullptr;  // [count]: the row of `totals` of each; all different
  const float* weights = nullptr;      // [count]
  std::int64_t count = 0;
  std::int64_t width = 0;
  float* totals = nullptr;           // [rows, width]
  Dtype product_dtype = Dtype::f32;  // weight * output is rounded to this
  Dtype sum_dtype = Dtype::f32;      // and the new total to this
};
// totals[rows[i]] += weights[i] * outputs[i], a product and a sum, no fused multiply-add.
void add_expert_outputs(const ExpertSumArguments& arguments, Parallel& parallel);

// gates[i] = 1 / (1 + exp(-gates[i])) with portable::exp, rounded to `dtype`; [count], in place.
void sigmoid_gates(float* gates, std::int64_t count, Dtype dtype);

}  // namespace driftscope
