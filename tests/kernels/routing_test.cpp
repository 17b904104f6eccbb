// SPDX-License-Identifier: Apache-2.0
#include "kernels/routing/routing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/softmax/softmax.h"
#include "operation_support.h"

namespace driftscope::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

struct Routes {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  std::vector<float> margins;
};

struct Rules {
  std::int64_t chosen = 2;
  bool renormalise = false;
  Dtype compute = Dtype::f32;
  Dtype weight = Dtype::f32;
  bool softmax_of_chosen = false;
};

Routes run(const std::vector<float>& logits, std::int64_t experts, const Rules& rules,
           Isa isa = Isa::scalar) {
  const auto rows = static_cast<std::int64_t>(logits.size()) / experts;
  const auto count = static_cast<std::size_t>(rows * rules.chosen);
  Routes routes{std::vector<std::int32_t>(count), std::vector<float>(count),
                std::vector<float>(static_cast<std::size_t>(rows))};
  route({.logits = logits.data(),
         .rows = rows,
         .experts = experts,
         .chosen = rules.chosen,
         .renormalise = rules.renormalise,
         .softmax_of_chosen = rules.softmax_of_chosen,
         .compute_dtype = rules.compute,
         .weight_dtype = rules.weight,
         .ids = routes.ids.data(),
         .weights = routes.weights.data(),
         .margins = routes.margins.data()},
        isa);
  return routes;
}

using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;

TEST(Routing, ByHand) {
  // Two equal logits, the others -inf: probabilities 1/2, 1/2, 0.
  const Routes pair = run({-kInfinity, 3.0F, 3.0F}, 3, {.chosen = 2});
  EXPECT_EQ(pair.ids, (Ids{1, 2}));
  EXPECT_EQ(pair.weights, (Floats{0.5F, 0.5F}));
  EXPECT_EQ(pair.margins, (Floats{kInfinity}));
  // Four equal ones: 1/4 each; renormalised over two, 1/2.
  const Floats equal(4, -1.5F);
  EXPECT_EQ(run(equal, 4, {.chosen = 2}).weights, (Floats{0.25F, 0.25F}));
  EXPECT_EQ(run(equal, 4, {.chosen = 2, .renormalise = true}).weights, (Floats{0.5F, 0.5F}));
  // The margin is that of the logits: second largest minus third largest.
  const Routes three = run({0.5F, 2.0F, -1.0F, 1.25F}, 4, {.chosen = 2});
  EXPECT_EQ(three.ids, (Ids{1, 3}));
  EXPECT_EQ(three.margins, (Floats{0.75F}));
}

TEST(Routing, TiesGoToTheLowerExpert) {
  EXPECT_EQ(run(Floats(5, 7.0F), 5, {.chosen = 3}).ids, (Ids{0, 1, 2}));
  const Routes routes = run({1.0F, 4.0F, 1.0F, 4.0F, 1.0F}, 5, {.chosen = 3});
  EXPECT_EQ(routes.ids, (Ids{1, 3, 0}));
  EXPECT_EQ(routes.margins, (Floats{0.0F}));
}

// Logits 2^-10 apart: their probabilities differ in f32 and are one number in bf16.
TEST(Routing, ANarrowTypeMakesTiesOfUnequalLogits) {
  const Floats logits{1.0F, 1.0F + 0x1p-10F, -20.0F};
  EXPECT_EQ(run(logits, 3, {.chosen = 1}).ids, (Ids{1}));
  EXPECT_EQ(run(logits, 3, {.chosen = 1}).margins, (Floats{0x1p-10F}));
  const Routes rounded = run(logits, 3, {.chosen = 1, .compute = Dtype::bf16});
  EXPECT_EQ(rounded.ids, (Ids{0}));
  EXPECT_EQ(rounded.margins, (Floats{-0x1p-10F}));
}

TEST(Routing, RoundsWhereItSays) {
  // A third in bf16 is 0.333984375; two of them over their sum are a half, three a third.
  const Floats three(3, 0.0F);
  EXPECT_EQ(run(three, 3, {.chosen = 2}).weights, Floats(2, 1.0F / 3.0F));
  EXPECT_EQ(run(three, 3, {.chosen = 2, .weight = Dtype::bf16}).weights, Floats(2, 0.333984375F));
  EXPECT_EQ(run(three, 3, {.chosen = 2, .compute = Dtype::bf16}).weights, Floats(2, 0.333984375F));
  EXPECT_EQ(run(three, 3, {.chosen = 3, .renormalise = true, .compute = Dtype::bf16}).weights,
            Floats(3, 0.333984375F));
}

TEST(Routing, AllExpertsChosenHaveNoMargin) {
  const Routes routes = run({0.0F, 1.0F}, 2, {.chosen = 2});
  EXPECT_EQ(routes.ids, (Ids{1, 0}));
  EXPECT_TRUE(std::isnan(routes.margins[0]));
}

TEST(Routing, NanGivesTheLowestIdsAndNanWeights) {
  const Routes routes = run({kNan, 5.0F, 1.0F}, 3, {.chosen = 2, .renormalise = true});
  EXPECT_EQ(routes.ids, (Ids{0, 1}));
  for (const float weight : routes.weights) EXPECT_TRUE(std::isnan(weight));
}

TEST(Routing, ARowDependsOnItselfOnly) {
  const Floats logits = Values(5).uniform(7 * 60, 4.0F);
  const Rules rules{.chosen = 4, .renormalise = true};
  const Routes all = run(logits, 60, rules);
  for (std::size_t row = 0; row < 7; ++row) {
    const auto first = logits.begin() + static_cast<std::ptrdiff_t>(60 * row);
    const Routes alone = run(Floats(first, first + 60), 60, rules);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(all.ids[4 * row + i], alone.ids[i]);
      EXPECT_EQ(all.weights[4 * row + i], alone.weights[i]);
    }
    EXPECT_EQ(all.margins[row], alone.margins[0]);
  }
}

class RoutingSweep : public ::testing::TestWithParam<std::tuple<int, int, bool>> {};

TEST_P(RoutingSweep, AgreesWithF64AndAcrossInstructionSets) {
  const auto [experts, chosen, renormalise] = GetParam();
  const std::int64_t rows = 50;
  const Floats logits =
      Values(static_cast<std::uint64_t>(experts * 100 + chosen)).uniform(rows * experts, 3.0F);
  Ids exact_ids(static_cast<std::size_t>(rows * chosen));
  std::vector<double> exact(exact_ids.size());
  route_reference({.logits = logits.data(),
                   .rows = rows,
                   .experts = experts,
                   .chosen = chosen,
                   .renormalise = renormalise},
                  exact_ids.data(), exact.data());
  const Rules rules{.chosen = chosen, .renormalise = renormalise};
  const Routes ours = run(logits, experts, rules);
  // Distinct logits are multiples of 3 * 2^-23, so f32 probabilities may still tie: compare values.
  // exp and quotient 1 ulp each, the sum a chain of at most experts / 32 + 5 roundings, the second
  // sum and quotient `chosen` more.
  const double roundings = 2.0 * (experts / 32 + 1 + 5 + 3 + chosen);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(ours.weights[i], exact[i], exact[i] * roundings * unit_roundoff(Dtype::f32));
  }
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    if (!(ours.margins[row] > 1e-5F) && chosen < experts) continue;
    const auto first = static_cast<std::ptrdiff_t>(row * static_cast<std::size_t>(chosen));
    Ids a(ours.ids.begin() + first, ours.ids.begin() + first + chosen);
    Ids b(exact_ids.begin() + first, exact_ids.begin() + first + chosen);
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    EXPECT_EQ(a, b);
  }
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    Rules narrow = rules;
    narrow.compute = dtype;
    narrow.weight = dtype;
    const Routes scalar = run(logits, experts, narrow);
    for (const RoutingVariant& variant : routing_variants()) {
      if (!isa_supported(variant.isa)) continue;
      EXPECT_TRUE(variant.portable);
      const Routes other = run(logits, experts, narrow, variant.isa);
      EXPECT_EQ(other.ids, scalar.ids) << variant.name;
      EXPECT_EQ(bit_difference(other.weights, scalar.weights), "") << variant.name;
      EXPECT_EQ(bit_difference(other.margins, scalar.margins), "") << variant.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RoutingSweep,
                         ::testing::Values(std::tuple{1, 1, true}, std::tuple{5, 2, true},
                                           std::tuple{8, 3, false}, std::tuple{60, 4, false},
                                           std::tuple{128, 8, true}, std::tuple{33, 33, true}));

TEST(ExpertSum, AddsProductsInTheOrderOfCalls) {
  // 2^24 + 1 rounds to 2^24: a fused multiply-add, or another order, would give another number.
  Floats totals{0x1p24F, 1.0F, 0.0F, 0.0F};
  const Floats outputs{2.0F, 4.0F, 0.5F, -3.0F};
  const std::array<std::int64_t, 2> rows{1, 0};
  const Floats weights{0.25F, 2.0F};
  SerialParallel serial;
  add_expert_outputs({.outputs = outputs.data(),
                      .rows = rows.data(),
                      .weights = weights.data(),
                      .count = 2,
                      .width = 2,
                      .totals = totals.data()},
                     serial);
  EXPECT_EQ(totals, (Floats{0x1p24F, -5.0F, 0.5F, 1.0F}));
}

TEST(ExpertSum, RoundsProductAndSumApart) {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: the product drops 2^-24 before the sum with -1 - 2^-11.
  Floats totals{-1.0F - 0x1p-11F};
  const Floats outputs{1.0F + 0x1p-12F};
  const Floats weights{1.0F + 0x1p-12F};
  const std::int64_t row = 0;
  ExpertSumArguments arguments{.outputs = outputs.data(),
                               .rows = &row,
                               .weights = weights.data(),
                               .count = 1,
                               .width = 1,
                               .totals = totals.data()};
  SerialParallel serial;
  add_expert_outputs(arguments, serial);
  EXPECT_EQ(totals[0], 0.0F);
  // bf16: 1 + 2^-12 squared is 1; 256 + 1 is 256 (steps of 2, tie to even).
  totals[0] = 256.0F;
  arguments.product_dtype = Dtype::bf16;
  arguments.sum_dtype = Dtype::bf16;
  add_expert_outputs(arguments, serial);
  EXPECT_EQ(totals[0], 256.0F);
}

TEST(ExpertSum, ThreadsChangeNothing) {
  const std::int64_t width = 700;
  const Floats outputs = Values(1).uniform(90 * width, 2.0F);
  const Floats weights = Values(2).uniform(90, 1.0F);
  std::vector<std::int64_t> rows(90);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i * 7 % 90);
  const auto sum = [&](Parallel& parallel) {
    Floats totals = Values(3).uniform(90 * width, 2.0F);
    add_expert_outputs({.outputs = outputs.data(),
                        .rows = rows.data(),
                        .weights = weights.data(),
                        .count = 90,
                        .width = width,
                        .totals = totals.data(),
                        .product_dtype = Dtype::f32,
                        .sum_dtype = Dtype::f16},
                       parallel);
    return totals;
  };
  SerialParallel serial;
  BackwardParallel backward(3);
  ThreadedParallel threads(2);
  EXPECT_EQ(bit_difference(sum(backward), sum(serial)), "");
  EXPECT_EQ(bit_difference(sum(threads), sum(serial)), "");
}

TEST(SigmoidGates, KnownValues) {
  Floats gates{0.0F, kInfinity, -kInfinity, 1.0F};
  sigmoid_gates(gates.data(), 4, Dtype::f32);
  EXPECT_EQ(gates[0], 0.5F);
  EXPECT_EQ(gates[1], 1.0F);
  EXPECT_EQ(gates[2], 0.0F);
  // 0.73105857863…; exp, sum and quotient: at most three roundings.
  EXPECT_NEAR(gates[3], 0.7310585786300049, 0.7310585786300049 * 3 * 0x1p-23);
  Floats rounded{1.0F};
  sigmoid_gates(rounded.data(), 1, Dtype::bf16);
  EXPECT_EQ(rounded[0], 0.73046875F);  // the bf16 nearest to it: steps of 2^-8
}

TEST(Routing, SoftmaxOfTheChosenIgnoresTheOthers) {
  // 0 and log 3: 1/4 and 3/4, whatever the third is, as long as it is not chosen.
  const auto third = static_cast<float>(std::log(3.0));
  for (const float other : {-100.0F, -0.5F}) {
    const Routes routes = run({other, 0.0F, third}, 3, {.chosen = 2, .softmax_of_chosen = true});
    EXPECT_EQ(routes.ids, (Ids{2, 1}));
    EXPECT_NEAR(routes.weights[0], 0.75, 3e-7);
    EXPECT_NEAR(routes.weights[1], 0.25, 3e-7);
    EXPECT_EQ(routes.margins, (Floats{0.0F - other}));
  }
  // Ties by the logits, lower id first. bf16 makes no ties of its own: the choice comes first.
  EXPECT_EQ(run({1.0F, 1.0F + 0x1p-10F, -20.0F}, 3,
                {.chosen = 1, .compute = Dtype::bf16, .softmax_of_chosen = true})
                .ids,
            (Ids{1}));
  EXPECT_EQ(run(Floats(5, 7.0F), 5, {.chosen = 3, .softmax_of_chosen = true}).ids, (Ids{0, 1, 2}));
}

TEST(Routing, SoftmaxOfTheChosenIsTheRenormalisedSoftmax) {
  const Floats logits = Values(5).uniform(40 * 8, 4.0F);
  Ids ids(40 * 3);
  std::vector<double> weights(40 * 3);
  route_reference(
      {.logits = logits.data(), .rows = 40, .experts = 8, .chosen = 3, .renormalise = true},
      ids.data(), weights.data());
  const Rules rules{.chosen = 3, .softmax_of_chosen = true};
  const Routes scalar = run(logits, 8, rules);
  EXPECT_EQ(scalar.ids, ids);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    // exp within 2 u of terms below 1, two additions and a division: 8 u.
    EXPECT_NEAR(scalar.weights[i], weights[i], 8 * 0x1p-24);
  }
  for (const Isa isa : {Isa::avx2, Isa::avx512}) {
    if (!isa_supported(isa)) continue;
    const Routes vector = run(logits, 8, rules, isa);
    EXPECT_EQ(bit_difference(vector.weights, scalar.weights), "");
    EXPECT_EQ(vector.ids, scalar.ids);
  }
}

}  // namespace
}  // namespace driftscope::testing
