// SPDX-License-Identifier: Apache-2.0
// Every operation of a forward pass, recomputed from the taps that it reads, by its definition:
// the plan's scalar reduction and the rounding points. Bits must be equal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/plan/plan_policy.h"
#include "kernels/plan/portable_math.h"
#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

// Wide enough for fused matmuls to stand in another row of the shape table.
TinyModel tiny() {
  return {.type = "qwen2",
          .hidden = 128,
          .layers = 2,
          .heads = 8,
          .kv_heads = 4,
          .head_dim = 16,
          .intermediate = 160};
}

class Recomputed {
 public:
  Recomputed(const RunConfig& config, std::int64_t prompt_tokens)
      : m_config(config), m_tensors(random_tensors(tiny())) {
    LaneInput input{.model = open_tensors(tiny(), m_tensors),
                    .config = config,
                    .prompt = some_ids(prompt_tokens, 160, 8)};
    m_steps = generate(input, 3, TapLevel::all);
    m_rows = prompt_tokens;
  }

  void check_all() {
    for (std::size_t i = 0; i < m_steps.size(); ++i) {
      m_step = &m_steps[i];
      m_rows_in_flight = i == 0 ? m_rows : 1;
      for (m_layer = 0; m_layer < 2; ++m_layer) check_layer();
      check_norm("l_out", 1, "model.norm.weight", "result_norm", 2);
      check_logits();
    }
  }

 private:
  [[nodiscard]] const std::vector<float>& tap(const std::string& operation, int layer) const {
    for (const RecordedTap& tap : m_step->taps) {
      if (tap.operation == operation && tap.layer == layer) return tap.values;
    }
    throw std::runtime_error("no tap " + operation);
  }
  [[nodiscard]] std::vector<float> stored(const std::string& name) const {
    for (const NamedTensor& tensor : m_tensors) {
      if (tensor.name != name) continue;
      std::vector<float> values = tensor.values;
      round_span(Dtype::bf16, values.data(), values.size());
      return values;
    }
    return {};
  }
  [[nodiscard]] Dtype activation() const { return m_config.activation_dtype; }
  [[nodiscard]] bool at(RoundingPoints points) const { return m_config.rounding_points == points; }
  // The type of what projections write.
  [[nodiscard]] Dtype written() const {
    return at(RoundingPoints::matmul_inputs) ? Dtype::f32 : activation();
  }

  void check_layer() {
    const std::string layer = fmt::format("model.layers.{}.", m_layer);
    const std::string attention = layer + "self_attn.";
    check_norm(m_layer == 0 ? "embd" : "l_out", m_layer - 1, layer + "input_layernorm.weight",
               "attn_norm", m_layer);
    const std::int64_t qkv = m_config.fused_qkv ? 256 : 0;
    check_matmul("attn_norm", attention + "q_proj", "Qcur", qkv);
    check_matmul("attn_norm", attention + "k_proj", "Kcur", qkv);
    check_matmul("attn_norm", attention + "v_proj", "Vcur", qkv);
    check_matmul("kqv_out", attention + "o_proj", "attn_out", 0);
    check_sum(m_layer == 0 ? "embd" : "l_out", m_layer - 1, "attn_out", "ffn_inp");
    check_norm("ffn_inp", m_layer, layer + "post_attention_layernorm.weight", "ffn_norm", m_layer);
    const std::int64_t gate_up = m_config.fused_gate_up ? 320 : 0;
    check_matmul("ffn_norm", layer + "mlp.gate_proj", "ffn_gate", gate_up);
    check_matmul("ffn_norm", layer + "mlp.up_proj", "ffn_up", gate_up);
    check_swiglu();
    check_matmul("ffn_swiglu", layer + "mlp.down_proj", "ffn_out", 0);
    check_sum("ffn_inp", m_layer, "ffn_out", "l_out");
  }

  // `outputs`: N of the matmul that ran, where it is not this weight's own.
  void check_matmul(const std::string& input, const std::string& weight_name,
                    const std::string& output, std::int64_t outputs) {
    const auto& x = tap(input, m_layer);
    const auto& y = tap(output, m_layer);
    const auto weight = stored(weight_name + ".weight");
    const auto bias = stored(weight_name + ".bias");
    const auto n = outputs > 0 ? outputs : static_cast<std::int64_t>(y.size());
    const auto k = static_cast<std::int64_t>(x.size());
    const ReductionPlan plan =
        matmul_plan(m_config.matmul_policy, m_config.matmul_plan, m_rows_in_flight, n, k);
    for (std::size_t i = 0; i < y.size(); ++i) {
      float sum = reduce_dot(plan, x.data(), weight.data() + i * x.size(), k);
      if (!bias.empty()) sum += bias[i];
      ASSERT_EQ(y[i], round_to(written(), sum))
          << output << " layer " << m_layer << " output " << i;
    }
  }

  void check_norm(const std::string& input, int input_layer, const std::string& weight_name,
                  const std::string& output, int output_layer) {
    const auto& x = tap(input, input_layer);
    const auto& y = tap(output, output_layer);
    const auto weight = stored(weight_name);
    ReductionPlan plan;
    plan.lanes = m_config.norm_lanes;
    plan.split_k = m_config.norm_split;
    const float sum = reduce_dot(plan, x.data(), x.data(), static_cast<std::int64_t>(x.size()));
    const float scale = 1.0F / std::sqrt(sum / static_cast<float>(x.size()) + 1e-5F);
    for (std::size_t i = 0; i < y.size(); ++i) {
      float value = x[i] * scale;
      if (at(RoundingPoints::every_op)) value = round_to(activation(), value);
      ASSERT_EQ(y[i], round_to(activation(), value * weight[i])) << output << " " << i;
    }
  }

  void check_sum(const std::string& input, int input_layer, const std::string& delta,
                 const std::string& output) {
    const bool rounded =
        m_config.residual == ResidualMode::rounded_first && !at(RoundingPoints::matmul_inputs);
    const auto& x = tap(input, input_layer);
    const auto& d = tap(delta, m_layer);
    const auto& y = tap(output, m_layer);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float sum = x[i] + d[i];
      ASSERT_EQ(y[i], rounded ? round_to(activation(), sum) : sum) << output << " " << i;
    }
  }

  void check_swiglu() {
    const auto& gate = tap("ffn_gate", m_layer);
    const auto& up = tap("ffn_up", m_layer);
    const auto& y = tap("ffn_swiglu", m_layer);
    for (std::size_t i = 0; i < y.size(); ++i) {
      float silu = gate[i] / (1.0F + portable::exp(-gate[i]));
      if (at(RoundingPoints::every_op)) silu = round_to(activation(), silu);
      ASSERT_EQ(y[i], round_to(activation(), silu * up[i])) << "ffn_swiglu " << i;
    }
  }

  void check_logits() {
    const auto& x = tap("result_norm", 2);
    const auto weight = stored("lm_head.weight");
    // One row goes through the LM head, whatever the prompt's length.
    const ReductionPlan plan =
        matmul_plan(m_config.matmul_policy, m_config.matmul_plan, 1, 160, 128);
    for (std::size_t i = 0; i < m_step->logits.size(); ++i) {
      const float sum = reduce_dot(plan, x.data(), weight.data() + i * x.size(), 128);
      ASSERT_EQ(m_step->logits[i], round_to(m_config.logits_dtype, sum)) << "logit " << i;
    }
  }

  RunConfig m_config;
  std::vector<NamedTensor> m_tensors;
  std::vector<RecordedStep> m_steps;
  std::int64_t m_rows = 0;
  const RecordedStep* m_step = nullptr;
  int m_layer = 0;
  std::int64_t m_rows_in_flight = 1;
};

TEST(Definition, HoldsForEveryRoundingPoint) {
  for (const Dtype activation : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
    for (const RoundingPoints points :
         {RoundingPoints::every_op, RoundingPoints::fused, RoundingPoints::matmul_inputs}) {
      for (const ResidualMode residual : {ResidualMode::rounded_first, ResidualMode::fused_f32}) {
        SCOPED_TRACE(fmt::format("{} points {} residual {}", dtype_name(activation),
                                 static_cast<int>(points), static_cast<int>(residual)));
        RunConfig config;
        config.threads = 1;
        config.activation_dtype = activation;
        config.rounding_points = points;
        config.residual = residual;
        config.logits_dtype = activation;
        Recomputed(config, 5).check_all();
      }
    }
  }
}

TEST(Definition, HoldsForPlansAndFusion) {
  for (const PlanPolicy policy : {PlanPolicy::invariant, PlanPolicy::shape_dependent}) {
    for (const bool fused : {false, true}) {
      for (const std::int64_t rows : {1, 3, 20, 70}) {
        SCOPED_TRACE(fmt::format("policy {} fused {} rows {}", name_of(policy), fused, rows));
        RunConfig config;
        config.threads = 1;
        config.matmul_policy = policy;
        config.matmul_plan.lanes = 8;
        config.matmul_plan.split_k = 3;
        config.norm_lanes = 4;
        config.norm_split = 2;
        config.fused_qkv = fused;
        config.fused_gate_up = fused;
        Recomputed(config, rows).check_all();
      }
    }
  }
}

// The last position sees itself and the window - 1 before it, and nothing else, in one layer.
TEST(Definition, ASlidingWindowHidesWhatIsOlder) {
  LaneInput input{.model = tiny_checkpoint({.type = "mistral", .layers = 1, .sliding_window = 8}),
                  .prompt = some_ids(20, 160, 3)};
  for (const AttentionMode attention :
       {AttentionMode::eager, AttentionMode::flash, AttentionMode::split_kv_count,
        AttentionMode::split_kv_size}) {
    input.config.attention = attention;
    const auto row = generate(input, 1)[0].logits;
    for (std::size_t position = 0; position < 20; ++position) {
      LaneInput other = input;
      other.prompt[position].value = (other.prompt[position].value + 1) % 160;
      const bool same = same_bits(generate(other, 1)[0].logits, row);
      EXPECT_EQ(same, position < 12) << "position " << position;
    }
  }
}

}  // namespace
}  // namespace driftscope::test
