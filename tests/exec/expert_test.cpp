// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: every layer recomputed from its definition, and when routes and bits change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/backend/host/host_weights.h"
#include "engine/exec/backend_factory.h"
#include "kernels/base/isa.h"
#include "kernels/plan/plan_policy.h"
#include "kernels/plan/portable_math.h"
#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

using Floats = std::vector<float>;

TinyModel tiny(const std::string& type) {
  return {.type = type, .layers = 3, .intermediate = 48, .renormalise = type != "qwen2_moe"};
}

RunConfig config_of(PlanPolicy policy) {
  RunConfig config;
  config.matmul_policy = policy;
  config.sampling.ignore_eos = true;
  config.threads = 1;
  return config;
}

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

// Recomputes the feed-forward parts of one pass over a prompt whose every row is recorded, so that
// the rows that each expert had in flight are known.
class Recomputed {
 public:
  Recomputed(const std::string& type, const RunConfig& config)
      : m_model(tiny(type)), m_config(config), m_tensors(random_tensors(m_model)) {
    m_config.scoring = Scoring::prefill;
    LaneInput input{.model = open_tensors(m_model, m_tensors),
                    .config = m_config,
                    .prompt = some_ids(21, m_model.vocabulary, 8)};
    m_spec = route_spec(input.model->description());
    m_steps = score(input, TapLevel::all);
    m_every_op = config.rounding_points == RoundingPoints::every_op;
    m_fused = config.rounding_points == RoundingPoints::fused;
  }

  void check_all() {
    ASSERT_EQ(m_steps.size(), 21U);
    for (std::size_t i = 0; i < m_spec.decisions(); ++i) {
      m_layer = m_spec.layers[i];
      for (const RecordedStep& step : m_steps) check_row(i, step);
    }
  }

 private:
  [[nodiscard]] Dtype activation() const { return m_config.activation_dtype; }
  [[nodiscard]] Dtype when(bool rounded) const { return rounded ? activation() : Dtype::f32; }
  [[nodiscard]] std::string prefix() const {
    return "model.layers." + std::to_string(m_layer) +
           (m_model.type == "mixtral" ? ".block_sparse_moe." : ".mlp.");
  }
  [[nodiscard]] const Floats& tap(const RecordedStep& step, const std::string& operation) const {
    for (const RecordedTap& tap : step.taps) {
      if (tap.operation == operation && tap.layer == m_layer) return tap.values;
    }
    throw std::runtime_error("no tap " + operation);
  }
  [[nodiscard]] Floats product(const std::string& name, const Floats& x, std::int64_t rows,
                               Dtype dtype) const {
    const auto found =
        std::find_if(m_tensors.begin(), m_tensors.end(),
                     [&](const NamedTensor& tensor) { return tensor.name == prefix() + name; });
    if (found == m_tensors.end()) throw std::runtime_error("no tensor " + name);
    Floats weight = found->values;
    round_span(m_model.dtype, weight.data(), weight.size());
    const std::int64_t n = found->shape[0];
    const std::int64_t k = found->shape[1];
    const ReductionPlan plan =
        matmul_plan(m_config.matmul_policy, m_config.matmul_plan, rows, n, k);
    Floats y;
    for (std::int64_t j = 0; j < n; ++j) {
      y.push_back(round_to(dtype, reduce_dot(plan, x.data(), weight.data() + j * k, k)));
    }
    return y;
  }
  [[nodiscard]] Floats expert(const std::string& gate, const std::string& up,
                              const std::string& down, const Floats& x, std::int64_t rows,
                              Dtype output) const {
    const Dtype written = when(m_every_op || m_fused);
    const Floats g = product(gate, x, rows, written);
    const Floats u = product(up, x, rows, written);
    Floats activated;
    for (std::size_t i = 0; i < g.size(); ++i) {
      const float silu = round_to(when(m_every_op), g[i] / (1.0F + portable::exp(-g[i])));
      activated.push_back(round_to(activation(), silu * u[i]));
    }
    return product(down, activated, rows, output);
  }
  [[nodiscard]] std::int64_t rows_of_expert(std::size_t decision, std::int32_t id) const {
    std::int64_t rows = 0;
    for (const RecordedStep& step : m_steps) {
      const auto ids = chosen(decision, step);
      rows += std::count(ids.begin(), ids.end(), id);
    }
    return rows;
  }
  [[nodiscard]] std::vector<std::int32_t> chosen(std::size_t decision,
                                                 const RecordedStep& step) const {
    const auto count = static_cast<std::ptrdiff_t>(m_spec.chosen);
    const auto first = step.routes.experts.begin() + static_cast<std::ptrdiff_t>(decision) * count;
    return {first, first + count};
  }

  void check_row(std::size_t decision, const RecordedStep& step) const {
    SCOPED_TRACE(testing::Message() << "layer " << m_layer << " row " << step.step);
    const auto rows = static_cast<std::int64_t>(m_steps.size());
    const Floats& x = tap(step, "ffn_norm");
    const Floats logits = product("gate.weight", x, rows, m_config.router_dtype);
    EXPECT_TRUE(same_bits(tap(step, "ffn_moe_logits"), logits));
    check_route(decision, step, logits);
    // By rising id, product and sum rounded apart.
    std::vector<std::pair<std::int32_t, float>> order;
    const auto ids = chosen(decision, step);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      order.emplace_back(ids[i], step.routes.weights[decision * ids.size() + i]);
    }
    std::sort(order.begin(), order.end());
    Floats total(x.size(), 0.0F);
    for (const auto& [id, weight] : order) {
      const std::string name = "experts." + std::to_string(id) + ".";
      const bool mixtral = m_model.type == "mixtral";
      const Floats y = expert(name + (mixtral ? "w1.weight" : "gate_proj.weight"),
                              name + (mixtral ? "w3.weight" : "up_proj.weight"),
                              name + (mixtral ? "w2.weight" : "down_proj.weight"), x,
                              rows_of_expert(decision, id), when(m_every_op));
      for (std::size_t j = 0; j < total.size(); ++j) {
        const float product = round_to(when(m_every_op || m_fused), weight * y[j]);
        total[j] = round_to(when(m_every_op), total[j] + product);
      }
    }
    round_span(when(m_every_op || m_fused), total.data(), total.size());
    EXPECT_TRUE(same_bits(tap(step, "ffn_moe_out"), total));
    if (m_model.type == "qwen2_moe") add_shared(step, x, rows, total);
    EXPECT_TRUE(same_bits(tap(step, "ffn_out"), total));
  }

  void check_route(std::size_t decision, const RecordedStep& step, const Floats& logits) const {
    const Dtype dtype = m_config.router_dtype;
    const float max = *std::max_element(logits.begin(), logits.end());
    Floats p;
    for (const float logit : logits) p.push_back(round_to(dtype, portable::exp(logit - max)));
    const auto count = static_cast<std::int64_t>(p.size());
    const float sum = round_to(dtype, reduce_sum(ReductionPlan{}, p.data(), count));
    for (float& value : p) value = round_to(dtype, value / sum);
    std::vector<std::int32_t> order(p.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t i, std::int32_t j) {
      return p[static_cast<std::size_t>(i)] > p[static_cast<std::size_t>(j)];
    });
    const auto k = static_cast<std::size_t>(m_spec.chosen);
    Floats weights;
    float total = -0.0F;
    for (std::size_t i = 0; i < k; ++i) {
      weights.push_back(p[static_cast<std::size_t>(order[i])]);
      total = round_to(dtype, total + weights[i]);
    }
    const bool renormalise = m_model.renormalise;
    for (float& weight : weights) {
      if (renormalise) weight = round_to(dtype, weight / total);
      weight = round_to(when(m_every_op), weight);
    }
    const auto first = static_cast<std::ptrdiff_t>(decision * k);
    const auto end = first + static_cast<std::ptrdiff_t>(k);
    EXPECT_EQ(chosen(decision, step),
              std::vector(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k)));
    const auto& recorded = step.routes.weights;
    EXPECT_TRUE(same_bits(Floats(recorded.begin() + first, recorded.begin() + end), weights));
    float rejected = -INFINITY;
    for (std::size_t i = k; i < order.size(); ++i) {
      rejected = std::max(rejected, logits[static_cast<std::size_t>(order[i])]);
    }
    EXPECT_EQ(step.routes.margins[decision],
              logits[static_cast<std::size_t>(order[k - 1])] - rejected);
  }

  void add_shared(const RecordedStep& step, const Floats& x, std::int64_t rows,
                  Floats& total) const {
    const std::string name = "shared_expert.";
    const Dtype written = when(m_every_op || m_fused);
    const Floats y = expert(name + "gate_proj.weight", name + "up_proj.weight",
                            name + "down_proj.weight", x, rows, written);
    EXPECT_TRUE(same_bits(tap(step, "ffn_shexp"), y));
    const float logit = product("shared_expert_gate.weight", x, rows, written)[0];
    const float gate = round_to(when(m_every_op), 1.0F / (1.0F + portable::exp(-logit)));
    for (std::size_t j = 0; j < total.size(); ++j) {
      total[j] = round_to(written, total[j] + round_to(written, gate * y[j]));
    }
  }

  TinyModel m_model;
  RunConfig m_config;
  std::vector<NamedTensor> m_tensors;
  RouteSpec m_spec;
  std::vector<RecordedStep> m_steps;
  bool m_every_op = false;
  bool m_fused = false;
  std::int32_t m_layer = 0;
};

class ExpertDefinition : public testing::TestWithParam<std::tuple<const char*, PlanPolicy>> {};

TEST_P(ExpertDefinition, EveryLayerIsWhatTheDefinitionGives) {
  const auto& [type, policy] = GetParam();
  for (const Dtype router : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    for (const RoundingPoints points :
         {RoundingPoints::every_op, RoundingPoints::fused, RoundingPoints::matmul_inputs}) {
      RunConfig config = config_of(policy);
      config.router_dtype = router;
      config.activation_dtype = router == Dtype::f32 ? Dtype::bf16 : router;
      config.rounding_points = points;
      Recomputed(type, config).check_all();
    }
    RunConfig plain = config_of(policy);
    plain.router_dtype = router;
    Recomputed(type, plain).check_all();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ExpertDefinition,
                         testing::Combine(testing::Values("mixtral", "qwen2_moe", "qwen3_moe"),
                                          testing::Values(PlanPolicy::invariant,
                                                          PlanPolicy::shape_dependent)));

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
