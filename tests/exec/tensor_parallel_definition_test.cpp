// SPDX-License-Identifier: Apache-2.0
// What tensor-parallel ranks compute, recomputed from the taps that each operation reads: the share
// of each rank under the plan for its shape, and the all-reduce of their sums. Bits must be equal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/plan/plan_policy.h"
#include "tests/exec/ranked_model.h"

namespace driftscope::test {
namespace {

class Recomputed {
 public:
  Recomputed(const RunConfig& config, std::int64_t prompt_tokens)
      : m_config(config), m_prompt(prompt_tokens), m_tensors(random_tensors(eight_heads())) {
    m_steps = generate(input_of(eight_heads(), config, prompt_tokens), 2, TapLevel::all);
  }

  void check() {
    for (std::size_t i = 0; i < m_steps.size(); ++i) {
      m_step = &m_steps[i];
      m_rows = i == 0 ? m_prompt : 1;
      for (m_layer = 0; m_layer < 2; ++m_layer) {
        const std::string layer = fmt::format("model.layers.{}.", m_layer);
        check_outputs("attn_norm", layer + "self_attn.q_proj", "Qcur", 8);
        check_outputs("attn_norm", layer + "self_attn.k_proj", "Kcur", 4);
        check_outputs("attn_norm", layer + "self_attn.v_proj", "Vcur", 4);
        check_terms("kqv_out", layer + "self_attn.o_proj", "attn_out");
        check_outputs("ffn_norm", layer + "mlp.gate_proj", "ffn_gate", 96);
        check_outputs("ffn_norm", layer + "mlp.up_proj", "ffn_up", 96);
        check_terms("ffn_swiglu", layer + "mlp.down_proj", "ffn_out");
      }
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
  [[nodiscard]] ReductionPlan plan(std::int64_t rows, std::int64_t n, std::int64_t k) const {
    return matmul_plan(m_config.matmul_policy, m_config.matmul_plan, rows, n, k);
  }
  [[nodiscard]] std::int64_t ranks() const { return m_config.tensor_parallel; }

  // All terms, the plan of a rank's outputs.
  void check_outputs(const std::string& input, const std::string& weight_name,
                     const std::string& output, std::int64_t parts) {
    const auto& x = tap(input, m_layer);
    const auto& y = tap(output, m_layer);
    const auto weight = stored(weight_name + ".weight");
    const auto bias = stored(weight_name + ".bias");
    const auto n = static_cast<std::int64_t>(y.size()) / std::min(ranks(), parts);
    const auto k = static_cast<std::int64_t>(x.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      float sum = reduce_dot(plan(m_rows, n, k), x.data(), weight.data() + i * x.size(), k);
      if (!bias.empty()) sum += bias[i];
      ASSERT_EQ(y[i], round_to(m_config.activation_dtype, sum)) << output << " " << i;
    }
  }

  // A slice of the terms on each rank, the plan of that slice, then the all-reduce.
  void check_terms(const std::string& input, const std::string& weight_name,
                   const std::string& output) {
    const auto& x = tap(input, m_layer);
    const auto& y = tap(output, m_layer);
    const auto weight = stored(weight_name + ".weight");
    const std::int64_t n = std::ssize(y);
    const std::int64_t k = std::ssize(x) / ranks();
    for (std::int64_t i = 0; i < n; ++i) {
      std::vector<float> sums;
      for (std::int64_t rank = 0; rank < ranks(); ++rank) {
        const float* w = weight.data() + i * std::ssize(x) + rank * k;
        sums.push_back(reduce_dot(plan(m_rows, n, k), x.data() + rank * k, w, k));
      }
      // The tapped row is the last of the call; a message holds all its rows.
      const float sum = meet(sums, (m_rows - 1) * n + i, m_rows * n);
      ASSERT_EQ(y[static_cast<std::size_t>(i)], round_to(m_config.activation_dtype, sum))
          << output << " " << i;
    }
  }

  [[nodiscard]] float meet(std::vector<float> q, std::int64_t element,
                           std::int64_t elements) const {
    const Dtype dtype = m_config.reduce_dtype;
    for (float& part : q) part = round_to(dtype, part);
    if (m_config.all_reduce == AllReduce::one_shot) {
      float sum = q[0];
      for (std::size_t r = 1; r < q.size(); ++r) sum += q[r];
      return round_to(dtype, sum);
    }
    if (m_config.all_reduce == AllReduce::tree) {
      if (q.size() == 2) return round_to(dtype, q[0] + q[1]);
      const auto half = q.begin() + std::ssize(q) / 2;
      return round_to(dtype, meet({q.begin(), half}, 0, 1) + meet({half, q.end()}, 0, 1));
    }
    const std::int64_t chunk = element / ((elements + ranks() - 1) / ranks());
    const auto at = [&](std::int64_t r) {
      return q[static_cast<std::size_t>((chunk + r) % ranks())];
    };
    float sum = at(1);
    for (std::int64_t r = 2; r <= ranks(); ++r) sum = round_to(dtype, sum + at(r));
    return sum;
  }

  // 157 entries: shares of ceil(157 / ranks).
  void check_logits() {
    const auto& x = tap("result_norm", 2);
    const auto weight = stored("lm_head.weight");
    const std::int64_t n = (kVocabulary + ranks() - 1) / ranks();
    for (std::size_t i = 0; i < m_step->logits.size(); ++i) {
      const float sum = reduce_dot(plan(1, n, 64), x.data(), weight.data() + i * 64, 64);
      ASSERT_EQ(m_step->logits[i], sum) << "logit " << i;
    }
  }

  RunConfig m_config;
  std::int64_t m_prompt;
  std::vector<NamedTensor> m_tensors;
  std::vector<RecordedStep> m_steps;
  const RecordedStep* m_step = nullptr;
  int m_layer = 0;
  std::int64_t m_rows = 1;
};

TEST(TensorParallel, EveryRankFollowsTheDefinition) {
  for (const std::int64_t ranks : {2, 4, 8}) {
    for (const AllReduce order : {AllReduce::one_shot, AllReduce::ring, AllReduce::tree}) {
      for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
        RunConfig config = config_of(ranks, order, dtype);
        config.activation_dtype = dtype == Dtype::f16 ? Dtype::bf16 : dtype;
        config.matmul_policy =
            dtype == Dtype::f32 ? PlanPolicy::shape_dependent : PlanPolicy::invariant;
        config.threads = ranks == 4 ? 2 : 1;
        SCOPED_TRACE(fmt::format("{} ranks, order {}, {}", ranks, static_cast<int>(order),
                                 dtype_name(dtype)));
        Recomputed(config, 7).check();
      }
    }
  }
}

}  // namespace
}  // namespace driftscope::test
