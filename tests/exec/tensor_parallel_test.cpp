// SPDX-License-Identifier: Apache-2.0
// Tensor-parallel ranks: what they compute, when their number changes bits, and when it must not.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "engine/backend/reference/reference_backend.h"
#include "engine/config/rank_plans.h"
#include "tests/exec/ranked_model.h"

namespace driftscope::test {
namespace {

std::vector<RecordedStep> run(const RunConfig& config) {
  return generate(input_of(eight_heads(), config), 5);
}

struct Drift {
  double max_abs = 0.0;     // over all steps and tokens, B fed A's tokens
  std::int64_t parts = -1;  // first step at which the texts part, -1: never
};

Drift drift_between(const RunConfig& a, const RunConfig& b) {
  RecordingSink sink;
  const auto done = run_lockstep({.a = input_of(eight_heads(), a),
                                  .b = input_of(eight_heads(), b),
                                  .steps = 40,
                                  .control = false},
                                 sink, {}, {});
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  const auto lane_a = sink.lane(Lane::a);
  const auto forced = sink.lane(Lane::b_forced);
  const auto free = sink.lane(Lane::b);
  Drift drift;
  for (std::size_t i = 0; i < lane_a.size(); ++i) {
    for (std::size_t j = 0; j < lane_a[i].logits.size(); ++j) {
      drift.max_abs = std::max(drift.max_abs, std::abs(static_cast<double>(forced[i].logits[j]) -
                                                       static_cast<double>(lane_a[i].logits[j])));
    }
    if (drift.parts < 0 && free[i].emitted != lane_a[i].emitted) {
      drift.parts = static_cast<std::int64_t>(i);
    }
  }
  return drift;
}

// One rank against two, four and eight: with a ring in bf16, and with one tree of sums.
TEST(TensorParallel, DriftOfRanksVanishesWithOneTreeOfSums) {
  for (const std::int64_t ranks : {2, 4, 8}) {
    const Drift ring = drift_between(config_of(1), config_of(ranks, AllReduce::ring, Dtype::bf16));
    const Drift tree = drift_between(invariant_config(1), invariant_config(ranks));
    fmt::print(
        "1 rank against {}: ring in bf16 max_abs {:.3e}, texts part at step {}; one tree {}\n",
        ranks, ring.max_abs, ring.parts < 0 ? "-" : std::to_string(ring.parts), tree.max_abs);
    EXPECT_GT(ring.max_abs, 0.0);
    EXPECT_EQ(tree.max_abs, 0.0);
    EXPECT_EQ(tree.parts, -1);
  }
}

TEST(TensorParallel, TheNumberOfRanksChangesBitsWithARingInBf16) {
  std::vector<std::vector<RecordedStep>> runs;
  for (const std::int64_t ranks : {1, 2, 4, 8}) {
    runs.push_back(run(config_of(ranks, AllReduce::ring, Dtype::bf16)));
    for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
      EXPECT_FALSE(same_bits(runs[i][0].logits, runs.back()[0].logits)) << ranks;
    }
  }
}

// Three orders of four terms; with two ranks there is one order only.
TEST(TensorParallel, TheOrderOfRanksChangesBitsFromThreeRanksOn) {
  const auto orders = {AllReduce::one_shot, AllReduce::ring, AllReduce::tree};
  std::vector<std::vector<RecordedStep>> of_two;
  std::vector<std::vector<RecordedStep>> of_four;
  for (const AllReduce order : orders) {
    of_two.push_back(run(config_of(2, order)));
    of_four.push_back(run(config_of(4, order)));
  }
  for (const std::size_t i : {1U, 2U}) {
    EXPECT_TRUE(same_logits(of_two[0], of_two[i]));
    EXPECT_FALSE(same_logits(of_four[0], of_four[i]));
  }
  EXPECT_FALSE(same_logits(of_four[1], of_four[2]));
}

TEST(TensorParallel, EachReduceTypeChangesBits) {
  const auto f32 = run(config_of(4, AllReduce::ring, Dtype::f32));
  const auto f16 = run(config_of(4, AllReduce::ring, Dtype::f16));
  const auto bf16 = run(config_of(4, AllReduce::ring, Dtype::bf16));
  EXPECT_FALSE(same_logits(f32, f16));
  EXPECT_FALSE(same_logits(f32, bf16));
  EXPECT_FALSE(same_logits(f16, bf16));
}

TEST(TensorParallel, NeitherThreadsNorInstructionsChangeBits) {
  for (const std::int64_t ranks : {2, 4, 8}) {
    RunConfig config = config_of(ranks, AllReduce::ring, Dtype::bf16);
    const auto first = run(config);
    for (const std::int64_t threads : {2, 3, 5}) {  // ranks beside and below the threads
      config.threads = threads;
      EXPECT_TRUE(same_logits(run(config), first)) << ranks << " ranks, threads " << threads;
    }
    config.isa = IsaChoice::scalar;
    EXPECT_TRUE(same_logits(run(config), first)) << ranks << " ranks, scalar";
  }
}

TEST(TensorParallel, AgainstItselfIsZero) {
  for (const std::int64_t ranks : {1, 2, 4, 8}) {
    for (const AllReduce order : {AllReduce::one_shot, AllReduce::ring, AllReduce::tree}) {
      for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
        const LaneInput input = input_of(eight_heads(), config_of(ranks, order, dtype));
        RecordingSink sink;
        ASSERT_TRUE(run_lockstep({.a = input, .b = input, .steps = 2}, sink, {}, {}));
        for (const Lane lane : {Lane::b_forced, Lane::control}) {
          EXPECT_TRUE(same_logits(sink.lane(Lane::a), sink.lane(lane))) << ranks;
        }
      }
    }
  }
}

// A row's place in a ring's message decides its order of additions.
TEST(TensorParallel, OnlyARingOfThreeRanksAndMoreSeesTheBatch) {
  for (const std::int64_t ranks : {2, 4}) {
    for (const AllReduce order : {AllReduce::one_shot, AllReduce::ring, AllReduce::tree}) {
      RunConfig config = config_of(ranks, order);
      const auto alone = run(config);
      config.neighbours = 3;
      EXPECT_EQ(same_logits(run(config), alone), ranks == 2 || order != AllReduce::ring) << ranks;
      EXPECT_EQ(ring_sees_the_batch(config), ranks == 4 && order == AllReduce::ring);
    }
  }
}

// ---- the same bits for any ranks ----

struct Aligned {
  const char* name;
  TinyModel model;
  std::vector<std::int64_t> ranks;
  void (*apply)(RunConfig&);
};
void PrintTo(const Aligned& aligned, std::ostream* out) { *out << aligned.name; }

TinyModel with_heads(std::int64_t heads, std::int64_t kv_heads, std::int64_t intermediate) {
  TinyModel model = eight_heads();
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.intermediate = intermediate;
  return model;
}

class AlignedTest : public testing::TestWithParam<Aligned> {};

TEST_P(AlignedTest, EveryNumberOfRanksGivesTheSameBits) {
  const Aligned& aligned = GetParam();
  std::vector<RecordedStep> first;
  for (const std::int64_t ranks : aligned.ranks) {
    RunConfig config = invariant_config(ranks);
    aligned.apply(config);
    const auto steps = generate(input_of(aligned.model, config), 5, TapLevel::all);
    if (first.empty()) first = steps;
    ASSERT_EQ(steps.size(), first.size());
    EXPECT_TRUE(same_logits(steps, first)) << ranks << " ranks";
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (std::size_t t = 0; t < steps[i].taps.size(); ++t) {
        EXPECT_TRUE(same_bits(steps[i].taps[t].values, first[i].taps[t].values))
            << ranks << " ranks, step " << i << ", " << steps[i].taps[t].operation;
      }
    }
  }
  // It is not the sum that one rank makes without it. (So small a model hides that behind bf16.)
  RunConfig plain = config_of(1);
  aligned.apply(plain);
  if (plain.activation_dtype != Dtype::f32) return;
  EXPECT_FALSE(same_logits(generate(input_of(aligned.model, plain), 5), first));
}

INSTANTIATE_TEST_SUITE_P(
    Models, AlignedTest,
    testing::Values(Aligned{"f32", eight_heads(), {1, 2, 4, 8}, [](RunConfig&) {}},
                    Aligned{"bf16",
                            eight_heads(),
                            {1, 2, 4, 8},
                            [](RunConfig& c) { c.activation_dtype = Dtype::bf16; }},
                    Aligned{"shape_dependent_with_neighbours",
                            eight_heads(),
                            {1, 2, 4, 8},
                            [](RunConfig& c) {
                              c.matmul_policy = PlanPolicy::shape_dependent;
                              c.neighbours = 4;
                            }},
                    Aligned{"fused_shape_dependent",
                            eight_heads(),
                            {1, 2, 4, 8},
                            [](RunConfig& c) {
                              c.matmul_policy = PlanPolicy::shape_dependent;
                              c.fused_qkv = c.fused_gate_up = true;
                            }},
                    Aligned{"sequential_lanes_and_threads",
                            eight_heads(),
                            {8, 4, 2, 1},
                            [](RunConfig& c) {
                              c.matmul_plan.lanes = 8;
                              c.matmul_plan.lane_combine = LaneCombine::sequential;
                              c.matmul_plan.split_k = 3;
                              c.threads = 2;
                            }},
                    // Heads in 4 leaves, channels in 8; then both in 2.
                    Aligned{"twelve_heads", with_heads(12, 4, 160), {1, 2, 4}, [](RunConfig&) {}},
                    Aligned{"six_heads", with_heads(6, 2, 90), {1, 2}, [](RunConfig&) {}}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

// Leaf boundaries are rank boundaries for every number of ranks that divides the parts.
TEST(TreeLeaves, AreTheLargestPowerOfTwoThatDividesThePartsUpToEight) {
  EXPECT_EQ(tree_leaves(8), 8);
  EXPECT_EQ(tree_leaves(32), 8);
  EXPECT_EQ(tree_leaves(12), 4);
  EXPECT_EQ(tree_leaves(6), 2);
  EXPECT_EQ(tree_leaves(7), 1);
}

// The statement behind the invariance, on one sum: the whole tree equals the ranks' trees with the
// ranks' sums added by the tree all-reduce.
TEST(TreeLeaves, TheTreeOfOneRankIsTheTreeOfRanks) {
  constexpr std::int64_t kTerms = 8 * 13;  // leaves that are no multiple of the lanes
  std::vector<float> x;
  std::vector<float> w;
  for (const TokenId id : some_ids(2 * kTerms, 2000, 3)) {
    (x.size() < kTerms ? x : w).push_back(static_cast<float>(id.value - 1000) / 7.0F);
  }
  const SharedShape shape{.m = 1, .n = 1, .k = kTerms, .parts = 8};
  const float whole =
      reduce_dot(plan_of_terms(invariant_config(1), shape), x.data(), w.data(), kTerms);
  for (const std::int64_t ranks : {2, 4, 8}) {
    const RunConfig config = invariant_config(ranks);
    std::vector<float> sums;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const std::int64_t first = rank * kTerms / ranks;
      sums.push_back(reduce_dot(plan_of_terms(config, shape), x.data() + first, w.data() + first,
                                kTerms / ranks));
    }
    for (std::size_t distance = 1; distance < sums.size(); distance *= 2) {
      for (std::size_t i = 0; i + distance < sums.size(); i += 2 * distance) {
        sums[i] = sums[i] + sums[i + distance];
      }
    }
    EXPECT_EQ(std::bit_cast<std::uint32_t>(sums[0]), std::bit_cast<std::uint32_t>(whole)) << ranks;
  }
}

// ---- against the f64 witness ----

// [step][vocabulary], of the prompt's tokens.
std::vector<std::vector<float>> witness_rows(const LaneInput& input) {
  auto backend = open_reference(input.model, std::make_shared<ThreadPool>(1));
  if (!backend) throw std::runtime_error(backend.error().message);
  const std::int64_t count = std::ssize(input.prompt);
  auto cache = (*backend)->create_cache(count);
  const std::array sequences{
      BatchSequence{.cache = cache->get(), .tokens = input.prompt, .output_rows = count}};
  EXPECT_TRUE((*backend)->forward({.phase = Phase::score, .sequences = sequences}, {}));
  const auto logits = (*backend)->logits(0, count);
  std::vector<std::vector<float>> rows;
  for (std::size_t row = 0; row < input.prompt.size(); ++row) {
    const auto values = logits->subspan(row * kVocabulary, kVocabulary);
    rows.emplace_back(values.begin(), values.end());
  }
  return rows;
}

// Roundings one after another on the way to a logit: ceil(K / 32) + 5 + 1 for a sum of K terms (32
// lanes, a butterfly, one operation behind it), key by key in attention; each adds at most 2^-24
// relative to the largest value in flight. An all-reduce of R ranks rounds to its own type R times
// at most: the part that is sent, then each hop.
double bound_of(const RunConfig& config, double positions, double scale) {
  const auto chain = [](std::int64_t terms) {
    return static_cast<double>((terms + 31) / 32 + 5 + 1);
  };
  const TinyModel model = eight_heads();
  const std::int64_t ranks = config.tensor_parallel;
  const double attention = 2 * chain(model.hidden) + chain(model.head_dim) + 2 * positions +
                           chain(model.heads * model.head_dim / ranks);
  const double feed_forward = 2 * chain(model.hidden) + chain(model.intermediate / ranks);
  const auto layers = static_cast<double>(model.layers);
  const double meet = ranks == 1 ? 0.0 : layers * 2 * static_cast<double>(ranks);
  const double u = std::ldexp(1.0, -significand_bits(config.reduce_dtype));
  return ((layers * (attention + feed_forward) + 2 * chain(model.hidden)) * 0x1p-24 + meet * u) *
         scale;
}

TEST(TensorParallel, LogitsAreWithinTheBoundOfTheF64Witness) {
  for (const std::int64_t ranks : {1, 2, 4, 8}) {
    for (const AllReduce order : {AllReduce::one_shot, AllReduce::ring, AllReduce::tree}) {
      for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
        RunConfig config = config_of(ranks, order, dtype);
        config.scoring = Scoring::prefill;
        const LaneInput input = input_of(eight_heads(), config);
        const auto exact = witness_rows(input);
        const auto steps = score(input);
        ASSERT_EQ(steps.size(), exact.size());
        double scale = 0.0;
        double largest = 0.0;
        for (std::size_t i = 0; i < steps.size(); ++i) {
          for (std::size_t j = 0; j < kVocabulary; ++j) {
            const auto logit = static_cast<double>(exact[i][j]);
            scale = std::max(scale, std::abs(logit));
            largest = std::max(largest, std::abs(static_cast<double>(steps[i].logits[j]) - logit));
          }
        }
        const double bound = bound_of(config, static_cast<double>(steps.size()), scale);
        fmt::print("{} ranks, order {}, {}: logits max difference {:.3e}, bound {:.3e}\n", ranks,
                   static_cast<int>(order), dtype_name(dtype), largest, bound);
        EXPECT_LE(largest, bound);
      }
    }
  }
}

// ---- what ranks cannot share ----

std::string refusal(const TinyModel& model, std::int64_t ranks) {
  RecordingSink sink;
  const LaneInput input = input_of(model, config_of(ranks));
  const auto done = run_lockstep({.a = input, .b = input, .steps = 1}, sink, {}, {});
  EXPECT_TRUE(sink.steps.empty());
  if (done) return {};
  EXPECT_EQ(done.error().kind, ErrorKind::engine);
  return done.error().message;
}

TEST(TensorParallel, WhatRanksCannotShareIsRefusedBeforeAnythingRuns) {
  using testing::HasSubstr;
  EXPECT_THAT(
      refusal(with_heads(6, 2, 96), 4),
      AllOf(HasSubstr("4 ranks"), HasSubstr("6 attention heads"), HasSubstr("it allows 1, 2")));
  EXPECT_THAT(refusal(with_heads(12, 3, 96), 2), HasSubstr("3 key and value heads"));
  EXPECT_THAT(refusal(with_heads(8, 4, 90), 4), HasSubstr("90 feed-forward channels"));
}

TEST(TensorParallel, PlansNameSharesAndAllReduce) {
  using testing::Contains;
  using testing::StartsWith;
  RunConfig config = config_of(8, AllReduce::ring, Dtype::bf16);
  const LaneInput input = input_of(eight_heads(), config);
  RecordingSink sink;
  const auto done =
      run_lockstep({.a = input, .b = input, .steps = 3, .control = false}, sink, {}, {});
  ASSERT_TRUE(done);
  const auto& plans = done->lanes[0].plans;
  EXPECT_THAT(plans, Contains(StartsWith("prefill q_proj m=13 n=16 k=64 ranks=8: ")));
  EXPECT_THAT(plans, Contains(StartsWith("prefill k_proj m=13 n=16 k=64 ranks=8: ")));
  EXPECT_THAT(plans, Contains(StartsWith("decode o_proj m=1 n=64 k=16 ranks=8: ")));
  EXPECT_THAT(plans, Contains(StartsWith("decode down_proj m=1 n=64 k=12 ranks=8: ")));
  EXPECT_THAT(plans, Contains(StartsWith("decode lm_head m=1 n=20 k=64 ranks=8: ")));
  EXPECT_THAT(plans, Contains("prefill all_reduce ring ranks=8 dtype=bf16 elements=832"));
  EXPECT_THAT(plans, Contains("decode all_reduce ring ranks=8 dtype=bf16 elements=64"));
  EXPECT_THAT(plans, Contains(testing::HasSubstr("each key and value head on 2 ranks")));
}

}  // namespace
}  // namespace driftscope::test
