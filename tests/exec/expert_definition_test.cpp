// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: every layer recomputed from its definition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/plan/plan_policy.h"
#include "kernels/plan/portable_math.h"
#include "tests/exec/expert_models.h"
#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

using Floats = std::vector<float>;

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

}  // namespace
}  // namespace driftscope::test
