// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: when routes and bits change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/backend/host/host_weights.h"
#include "engine/exec/backend_factory.h"
#include "kernels/base/isa.h"
#include "kernels/plan/plan_policy.h"
#include "tests/exec/expert_models.h"
#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

bool same_routes(const std::vector<RecordedStep>& a, const std::vector<RecordedStep>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].routes.experts != b[i].routes.experts) return false;
    if (!same_bits(a[i].routes.weights, b[i].routes.weights)) return false;
    if (!same_bits(a[i].routes.margins, b[i].routes.margins)) return false;
  }
  return true;
}

// Layers in which two rows went to different experts.
std::vector<std::int32_t> flipped_layers(const RouteSpec& spec, const StoredRoutes& a,
                                         const StoredRoutes& b) {
  std::vector<std::int32_t> layers;
  const auto chosen = static_cast<std::ptrdiff_t>(spec.chosen);
  for (std::size_t i = 0; i < spec.decisions(); ++i) {
    const auto first = static_cast<std::ptrdiff_t>(i) * chosen;
    std::vector<std::int32_t> x(a.experts.begin() + first, a.experts.begin() + first + chosen);
    std::vector<std::int32_t> y(b.experts.begin() + first, b.experts.begin() + first + chosen);
    std::sort(x.begin(), x.end());
    std::sort(y.begin(), y.end());
    if (x != y) layers.push_back(spec.layers[i]);
  }
  return layers;
}

LaneInput input_of(const std::shared_ptr<const ModelCheckpoint>& model, const RunConfig& config) {
  const std::int64_t vocabulary = model->description().vocabulary;
  LaneInput input{.model = model, .config = config, .prompt = some_ids(23, vocabulary, 1)};
  for (std::int64_t i = 0; i < config.neighbours; ++i) {
    input.neighbour_prompts.push_back(
        some_ids(3 + 5 * i, vocabulary, 20 + static_cast<unsigned>(i)));
  }
  return input;
}

class Experts : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::vector<RecordedStep> run(const RunConfig& config) const {
    static std::map<std::string, std::shared_ptr<const ModelCheckpoint>> models;
    auto& model = models[GetParam()];
    if (!model) model = tiny_checkpoint(tiny(GetParam()));
    return generate(input_of(model, config), 6);
  }
};

TEST_P(Experts, InstructionSetsAndThreadsGiveTheSameBitsAndRoutes) {
  for (const PlanPolicy policy : {PlanPolicy::invariant, PlanPolicy::shape_dependent}) {
    RunConfig config = config_of(policy);
    config.isa = IsaChoice::scalar;
    config.neighbours = 3;
    const auto scalar = run(config);
    ASSERT_EQ(scalar.size(), 6U);
    EXPECT_EQ(scalar[0].routes.experts.size(), 6U);  // 3 layers, 2 experts each
    for (const auto& [choice, isa] :
         {std::pair{IsaChoice::scalar, Isa::scalar}, std::pair{IsaChoice::avx2, Isa::avx2},
          std::pair{IsaChoice::avx512, Isa::avx512}}) {
      if (!isa_supported(isa)) continue;
      for (const std::int64_t threads : {1, 2, 3}) {
        config.isa = choice;
        config.threads = threads;
        const auto other = run(config);
        EXPECT_TRUE(same_logits(other, scalar)) << isa_name(isa) << " " << threads;
        EXPECT_TRUE(same_routes(other, scalar)) << isa_name(isa) << " " << threads;
      }
    }
  }
}

TEST_P(Experts, NeighboursChangeNothingUnderInvariantAndBitsUnderShapeDependent) {
  for (const PlanPolicy policy : {PlanPolicy::invariant, PlanPolicy::shape_dependent}) {
    RunConfig config = config_of(policy);
    const auto alone = run(config);
    const bool invariant = policy == PlanPolicy::invariant;
    config.neighbours = 7;  // 149 rows of prompts instead of 23: another row of the shape table
    config.batch_position = 2;
    if (invariant) config.prefill_chunk = 7;
    const auto together = run(config);
    EXPECT_EQ(same_logits(together, alone), invariant);
    EXPECT_EQ(same_routes(together, alone), invariant);  // weights and margins among them
  }
}

TEST_P(Experts, FusedGateAndUpIsAnotherShapeOnly) {
  RunConfig config = config_of(PlanPolicy::invariant);
  const auto apart = run(config);
  config.fused_gate_up = true;
  EXPECT_TRUE(same_logits(run(config), apart));
}

// Ranks share the width of every expert; the invariant variant gives any number of them the same
// bits, the ring in bf16 does not.
TEST_P(Experts, TensorParallelRanksShareEveryExpert) {
  RunConfig config = config_of(PlanPolicy::invariant);
  const auto plain = run(config);
  config.tensor_parallel = 2;
  config.all_reduce = AllReduce::ring;
  config.reduce_dtype = Dtype::bf16;
  EXPECT_FALSE(same_logits(run(config), plain));
  config.reduce_dtype = Dtype::f32;
  config.all_reduce = AllReduce::tree;
  config.tensor_parallel_invariant = true;
  const auto two = run(config);
  ASSERT_EQ(two.size(), 6U);
  config.tensor_parallel = 1;
  EXPECT_TRUE(same_logits(run(config), two));
  EXPECT_TRUE(same_routes(run(config), two));
}

TEST_P(Experts, AAgainstAIsExactlyZeroRoutesIncluded) {
  RunConfig config = config_of(PlanPolicy::shape_dependent);
  config.neighbours = 2;
  const auto model = tiny_checkpoint(tiny(GetParam()));
  RecordingSink sink;
  ASSERT_TRUE(run_lockstep({.a = input_of(model, config), .b = input_of(model, config), .steps = 5},
                           sink, {}, {}));
  const auto a = sink.lane(Lane::a);
  ASSERT_EQ(a.size(), 5U);
  for (const Lane lane : {Lane::b, Lane::b_forced, Lane::control}) {
    EXPECT_TRUE(same_logits(a, sink.lane(lane))) << lane_name(lane);
    EXPECT_TRUE(same_routes(a, sink.lane(lane))) << lane_name(lane);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Experts, testing::Values("mixtral", "qwen2_moe", "qwen3_moe"));

NamedTensor& tensor_of(std::vector<NamedTensor>& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const NamedTensor& tensor) { return tensor.name == name; });
  if (found == tensors.end()) throw std::runtime_error("no tensor " + name);
  return *found;
}

// The rows of experts 3 and 5 differ by a unit in the last place here and there: which of the two
// has the larger logit is a matter of the order of the sums.
TEST(NearTie, NeighboursFlipRoutesUnderShapeDependentOnly) {
  TinyModel model = tiny("qwen3_moe");
  model.chosen = 1;
  model.dtype = Dtype::f32;
  auto tensors = random_tensors(model);
  const auto hidden = static_cast<std::size_t>(model.hidden);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    auto& router =
        tensor_of(tensors, "model.layers." + std::to_string(layer) + ".mlp.gate.weight").values;
    for (std::size_t i = 0; i < router.size(); ++i) {
      if (i / hidden != 3) router[i] *= 0.0078125F;
    }
    for (std::size_t j = 0; j < hidden; ++j) {
      const float weight = router[3 * hidden + j];
      router[5 * hidden + j] = std::nextafter(weight, j % 2 == 0 ? 9.0F : -9.0F);
    }
  }
  const auto checkpoint = open_tensors(model, tensors);
  const RouteSpec spec = route_spec(checkpoint->description());
  for (const PlanPolicy policy : {PlanPolicy::invariant, PlanPolicy::shape_dependent}) {
    const RunConfig alone = config_of(policy);
    RunConfig among = alone;
    among.neighbours = 7;
    RecordingSink sink;
    ASSERT_TRUE(run_lockstep({.a = input_of(checkpoint, alone),
                              .b = input_of(checkpoint, among),
                              .steps = 24,
                              .control = false},
                             sink, {}, {}));
    const auto a = sink.lane(Lane::a);
    const auto b = sink.lane(Lane::b_forced);
    ASSERT_EQ(a.size(), 24U);
    std::size_t flips = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      flips += flipped_layers(spec, a[i].routes, b[i].routes).size();
    }
    if (policy == PlanPolicy::invariant) {
      EXPECT_EQ(flips, 0U);
      EXPECT_TRUE(same_logits(a, b));
    } else {
      EXPECT_GT(flips, 0U);
      RecordProperty("flips", static_cast<int>(flips));
    }
  }
}

// Experts 0 and 1 exchange their router rows in layer 1: what differs is who is chosen there.
TEST(PlantedRouter, FlipsRoutesInItsLayerAndNotBefore) {
  const TinyModel model = tiny("qwen3_moe");
  auto tensors = random_tensors(model);
  const RunConfig config = config_of(PlanPolicy::invariant);
  const LaneInput original = input_of(open_tensors(model, tensors), config);
  auto& router = tensor_of(tensors, "model.layers.1.mlp.gate.weight").values;
  std::swap_ranges(router.begin(), router.begin() + model.hidden, router.begin() + model.hidden);
  LaneInput changed = original;
  changed.model = open_tensors(model, tensors);
  RecordingSink sink;
  ASSERT_TRUE(run_lockstep(
      {.a = original, .b = changed, .steps = 12, .control = false, .taps = TapLevel::all}, sink, {},
      {}));
  const RouteSpec spec = route_spec(original.model->description());
  const auto a = sink.lane(Lane::a);
  const auto b = sink.lane(Lane::b_forced);
  std::map<std::int32_t, int> flips;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (const std::int32_t layer : flipped_layers(spec, a[i].routes, b[i].routes)) ++flips[layer];
  }
  EXPECT_EQ(flips.count(0), 0U);
  EXPECT_GT(flips[1], 0);
  // Attention of layer 1 comes before its router: the router is the first that differs.
  for (std::size_t i = 0; i < a[0].taps.size(); ++i) {
    if (same_bits(a[0].taps[i].values, b[0].taps[i].values)) continue;
    EXPECT_EQ(a[0].taps[i].layer, 1);
    EXPECT_EQ(a[0].taps[i].operation, "ffn_moe_logits");
    break;
  }
}

// Experts are quantised, routers are not: the first layer's logits of the router are the same bits.
TEST(ExpertLayers, QuantisedExpertsKeepTheRouter) {
  const auto checkpoint = tiny_checkpoint(tiny("qwen2_moe"));
  RunConfig config = config_of(PlanPolicy::invariant);
  const auto plain = HostWeights::load(checkpoint, {});
  ASSERT_TRUE(plain);
  const auto coded = HostWeights::load(
      checkpoint, {.quantisation = QuantSpec{.format = QuantFormat::int8_channel}});
  ASSERT_TRUE(coded) << coded.error().message;
  EXPECT_EQ((*coded)->layer(0).moe.router.weight.dtype, (*plain)->layer(0).moe.router.weight.dtype);
  EXPECT_FALSE((*coded)->layer(0).moe.router.weight.quantised.present());
  EXPECT_FALSE((*coded)->layer(0).moe.shared_weight.weight.quantised.present());
  EXPECT_TRUE((*coded)->layer(0).moe.experts[0].down.weight.quantised.present());
  config.quantisation = Quantisation::int8_w8a16;
  const auto steps = generate(input_of(checkpoint, config), 2);
  EXPECT_EQ(steps.size(), 2U);
}

TEST(ExpertLayers, AreRefusedOnCudaInAGraph) {
  RunConfig config;
  config.backend = BackendKind::cuda;
  config.cuda_graph = true;
  const auto opened = BackendFactory().open(tiny_checkpoint(tiny("mixtral")), config);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::engine);
  EXPECT_THAT(opened.error().message, testing::HasSubstr("knob cuda_graph: in a mixture"));
}

TEST(ExpertLayers, MayStandAmongDenseOnes) {
  TinyModel model = tiny("qwen2_moe");
  model.dense_layers = {1};
  const auto checkpoint = tiny_checkpoint(model);
  const ModelDescription& description = checkpoint->description();
  EXPECT_EQ(route_spec(description).layers, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(route_spec(description).experts, 6);
  EXPECT_EQ(route_spec(description).chosen, 2);
  const auto steps =
      generate(input_of(checkpoint, config_of(PlanPolicy::invariant)), 2, TapLevel::all);
  const auto specs = tap_specs(description, TapLevel::all);
  ASSERT_EQ(steps[0].taps.size(), specs.size());
  for (const RecordedTap& tap : steps[1].taps) {
    const bool expert_tap = tap.operation == "ffn_moe_logits" || tap.operation == "ffn_shexp";
    if (expert_tap) {
      EXPECT_NE(tap.layer, 1);
    }
    if (tap.operation == "ffn_swiglu") {
      EXPECT_EQ(tap.layer, 1);
    }
  }
  EXPECT_EQ(steps[1].routes.margins.size(), 2U);
  EXPECT_EQ(steps[1].routes.experts.size(), 4U);
}

TEST(ExpertPlans, NameTheRowsOfAnExpertAndTheRouter) {
  using testing::Contains;
  using testing::HasSubstr;
  using testing::StartsWith;
  TinyModel model = tiny("mixtral");
  model.experts = 2;  // both chosen: every expert has every row
  const auto checkpoint = tiny_checkpoint(model);
  RunConfig config = config_of(PlanPolicy::shape_dependent);
  config.fused_gate_up = true;
  config.router_dtype = Dtype::bf16;
  RecordingSink sink;
  const auto done = run_lockstep({.a = input_of(checkpoint, config),
                                  .b = input_of(checkpoint, config),
                                  .steps = 2,
                                  .control = false},
                                 sink, {}, {});
  ASSERT_TRUE(done);
  const auto& plans = done->lanes[0].plans;
  EXPECT_THAT(plans, Contains(StartsWith("prefill router m=23 n=2 k=64: ")));
  EXPECT_THAT(plans, Contains(StartsWith("prefill expert_gate_up_proj m=23 n=96 k=64: ")));
  EXPECT_THAT(plans, Contains(StartsWith("decode expert_down_proj m=1 n=64 k=48: ")));
  EXPECT_THAT(plans, Contains(testing::AllOf(StartsWith("decode router: softmax "),
                                             HasSubstr("dtype=bf16, top 2 of 2"))));
  EXPECT_TRUE(std::isnan(sink.steps[0].routes.margins[0]));
}

}  // namespace
}  // namespace driftscope::test
