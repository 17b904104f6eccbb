// SPDX-License-Identifier: Apache-2.0
// Details of the architectures broken one by one, in the description or in the tensors: each moves
// the witness's logits exactly as far as the manifest says that breaking it moves them in f64, so
// a mistake in it cannot hide. Three breakages of the manifest are code, not data, here: the order
// of a head's norm and its rotation (qk_norm_after_rope), the 1 that is added to gpt-oss' up
// projection (no_up_plus_one) and its slope of 1.702 (plain_silu); that they are right follows
// from the exactness of the whole logits, which they would move by 3.9 and more.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "tests/exec/altered_checkpoint.h"
#include "tests/exec/architecture_oracle.h"
#include "tests/exec/recording.h"

namespace driftscope::test {
namespace {

using Break = std::function<void(AlteredCheckpoint&)>;
using Values = std::vector<float>;

struct Breakage {
  const char* model;
  const char* entry;  // in the manifest
  Break apply;
  double exactness = 1.0;  // 0: other than the manifest's breakage, only that it shows is checked
};
Break describe(std::function<void(ModelDescription&)> change) {
  return [change = std::move(change)](AlteredCheckpoint& model) { change(model.changed); };
}

Break zero(TensorView LayerTensors::*member) {
  return [member](AlteredCheckpoint& model) {
    for (LayerTensors& layer : model.layers) {
      model.map(layer.*member, [](float) { return 0.0F; });
    }
  };
}

Break on_norms(float (*change)(float)) {
  return [change](AlteredCheckpoint& model) {
    using L = LayerTensors;
    for (LayerTensors& layer : model.layers) {
      for (const auto member : {&L::attention_norm, &L::post_attention_norm, &L::ffn_norm,
                                &L::post_ffn_norm, &L::q_norm, &L::k_norm}) {
        model.map(layer.*member, change);
      }
    }
    model.map(model.norm, change);
  };
}

// Rows of `width` values put in another order: row i of the result is row source(i).
Values rows_in_order(const Values& values, std::int64_t width,
                     const std::function<std::int64_t(std::int64_t)>& source) {
  Values result;
  const std::int64_t rows = static_cast<std::int64_t>(values.size()) / width;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = values.begin() + source(row) * width;
    result.insert(result.end(), begin, begin + width);
  }
  return result;
}

// Rotating pairs (2i, 2i + 1) is rotating (i, i + d / 2) of rows in this order: queries and keys
// are permuted alike, so that their products stay.
void interleave_rotation(AlteredCheckpoint& model) {
  const std::int64_t head_dim = model.changed.head_dim;
  const auto source = [head_dim](std::int64_t row) {
    const std::int64_t within = row % head_dim;
    const std::int64_t half = head_dim / 2;
    return row - within + (within < half ? 2 * within : 2 * (within - half) + 1);
  };
  using L = LayerTensors;
  for (LayerTensors& layer : model.layers) {
    for (const auto member : {&L::q, &L::k, &L::q_bias, &L::k_bias, &L::q_norm, &L::k_norm}) {
      TensorView& view = layer.*member;
      if (!view.present()) continue;
      const std::int64_t width = view.shape.size() > 1 ? view.shape[1] : 1;
      model.set(view, rows_in_order(AlteredCheckpoint::values_of(view), width, source));
    }
  }
}

// Query head h reads key head h % kv_heads instead of h / (heads / kv_heads): the query heads, and
// the columns that read what they attend to, in another order.
void interleave_heads(AlteredCheckpoint& model) {
  const std::int64_t kv_heads = model.changed.kv_heads;
  const std::int64_t group = model.changed.heads / kv_heads;
  const auto head_of = [&](std::int64_t place) { return place % group * kv_heads + place / group; };
  const std::int64_t head_dim = model.changed.head_dim;
  const std::int64_t hidden = model.changed.hidden;
  for (LayerTensors& layer : model.layers) {
    model.set(layer.q,
              rows_in_order(AlteredCheckpoint::values_of(layer.q), head_dim * hidden, head_of));
    if (layer.q_bias.present()) {
      model.set(layer.q_bias,
                rows_in_order(AlteredCheckpoint::values_of(layer.q_bias), head_dim, head_of));
    }
    Values columns;
    const Values o = AlteredCheckpoint::values_of(layer.o);
    const std::int64_t width = model.changed.heads * head_dim;
    for (std::int64_t row = 0; row < hidden; ++row) {
      const Values one(o.begin() + row * width, o.begin() + (row + 1) * width);
      const Values ordered = rows_in_order(one, head_dim, head_of);
      columns.insert(columns.end(), ordered.begin(), ordered.end());
    }
    model.set(layer.o, std::move(columns));
  }
}

// Gate and up as the halves of what the file holds in turns.
void halve_gate_and_up(AlteredCheckpoint& model) {
  const auto halve = [&](TensorView& gate, TensorView& up, std::int64_t width) {
    const Values g = AlteredCheckpoint::values_of(gate);
    const Values u = AlteredCheckpoint::values_of(up);
    Values fused;
    for (std::size_t i = 0; i < g.size(); i += static_cast<std::size_t>(width)) {
      const auto at = static_cast<std::ptrdiff_t>(i);
      fused.insert(fused.end(), g.begin() + at, g.begin() + at + width);
      fused.insert(fused.end(), u.begin() + at, u.begin() + at + width);
    }
    const auto middle = fused.begin() + static_cast<std::ptrdiff_t>(g.size());
    model.set(gate, {fused.begin(), middle});
    model.set(up, {middle, fused.end()});
  };
  for (LayerTensors& layer : model.layers) {
    for (ExpertTensors& expert : layer.experts) {
      halve(expert.gate, expert.up, model.changed.hidden);
      halve(expert.gate_bias, expert.up_bias, 1);
    }
  }
}

// sigmoid(0) = 1/2 and weights twice as large: a gate of one.
void open_shared_gate(AlteredCheckpoint& model) {
  for (LayerTensors& layer : model.layers) {
    model.map(layer.shared_weight, [](float) { return 0.0F; });
    model.map(layer.shared_down, [](float value) { return 2.0F * value; });
  }
}

// The band between llama3's two wavelengths left as it is.
void leave_smooth_band(ModelDescription& model) {
  ModelDescription plain = model;
  plain.rope_scaling = {};
  const RopeScaling& scaling = model.rope_scaling;
  const double limit =
      static_cast<double>(scaling.original_max_positions) / scaling.low_frequency_factor;
  std::vector<double> divisors;
  for (const double frequency : plain.inverse_frequencies()) {
    divisors.push_back(2.0 * M_PI / frequency > limit ? scaling.factor : 1.0);
  }
  model.rope_scaling = {.kind = RopeScaling::Kind::divisors, .short_divisors = divisors};
}

std::vector<Breakage> llama_like(const char* model) {
  return {{model, "rope_interleaved", interleave_rotation},
          {model, "eps_x10", describe([](auto& m) { m.rms_epsilon *= 10.0; })},
          {model, "kv_heads_interleaved", interleave_heads},
          {model, "rope_theta_10000", describe([](auto& m) { m.rope_theta = 10000.0; })},
          {model, "norm_weights_ones", on_norms([](float) { return 1.0F; })},
          {model, "no_q_bias", zero(&LayerTensors::q_bias)},
          {model, "no_k_bias", zero(&LayerTensors::k_bias)},
          {model, "no_v_bias", zero(&LayerTensors::v_bias)},
          {model, "no_qk_norm", describe([](auto& m) { m.qk_norm = false; })},
          {model, "scale_by_hidden_over_heads", describe([](auto& m) {
             m.attention_scale = 1.0 / std::sqrt(static_cast<double>(m.hidden / m.heads));
           })},
          {model, "no_rope_scaling", describe([](auto& m) { m.rope_scaling = {}; })},
          {model, "no_smooth_band", describe(leave_smooth_band)},
          {model, "no_renormalisation", describe([](auto& m) { m.moe.renormalise = false; })},
          {model, "norm_topk_prob_false", describe([](auto& m) { m.moe.renormalise = false; })},
          {model, "norm_topk_prob_true", describe([](auto& m) { m.moe.renormalise = true; })},
          {model, "top1_only", describe([](auto& m) { m.moe.chosen = 1; })},
          {model, "no_shared_expert",
           [](AlteredCheckpoint& m) {
             for (LayerTensors& layer : m.layers) layer.shared_weight = {};
             m.changed.moe.shared_intermediate = 0;
           }},
          {model, "shared_gate_one", open_shared_gate},
          {model, "no_attention_factor",
           describe([](auto& m) { m.rope_scaling.attention_factor = 1.0; })},
          {model, "no_truncation", describe([](auto& m) { m.rope_scaling.truncate = false; })},
          {model, "linear_instead", describe([](auto& m) {
             m.rope_scaling = {.kind = RopeScaling::Kind::linear, .factor = m.rope_scaling.factor};
           })}};
}

constexpr std::int64_t kNoWindow = 1000;  // longer than the prompts

std::vector<Breakage> gemma(const char* model) {
  return {{model, "no_attn_cap", describe([](auto& m) { m.attention_softcap = 0.0; })},
          {model, "no_final_cap", describe([](auto& m) { m.final_softcap = 0.0; })},
          {model, "no_window", describe([](auto& m) { m.sliding_window = kNoWindow; })},
          {model, "window_plus_1", describe([](auto& m) { ++m.sliding_window; })},
          {model, "layers_swapped", describe([](auto& m) {
             for (auto& slides : m.sliding_layers) slides = slides == 0 ? 1 : 0;
           })},
          {model, "no_embed_scale", describe([](auto& m) { m.embedding_scale = 1.0; })},
          {model, "norm_without_plus_one", on_norms([](float value) { return value - 1.0F; })},
          {model, "no_post_norms", describe([](auto& m) { m.post_norms = false; })},
          {model, "gelu_erf", describe([](auto& m) { m.activation = Activation::gelu_erf; })},
          {model, "rope_interleaved", interleave_rotation},
          {model, "no_qk_norm", describe([](auto& m) { m.qk_norm = false; })},
          {model, "one_theta", describe([](auto& m) { m.local_rope_theta.reset(); })},
          {model, "no_rope_scaling", describe([](auto& m) { m.rope_scaling = {}; })},
          {model, "scaling_on_local",
           describe([](auto& m) { m.local_rope_scaling = m.rope_scaling; })}};
}

std::vector<Breakage> others() {
  return {
      {"phi3", "swap_gate_up",
       [](AlteredCheckpoint& m) {
         for (LayerTensors& layer : m.layers) std::swap(layer.gate, layer.up);
       }},
      {"phi3", "rope_interleaved", interleave_rotation},
      {"phi3", "rope_theta_500000", describe([](auto& m) { m.rope_theta = 500000.0; })},
      {"gpt2", "gelu_erf", describe([](auto& m) { m.activation = Activation::gelu_erf; })},
      {"gpt2", "no_positions",
       [](AlteredCheckpoint& m) { m.map(m.positions, [](float) { return 0.0F; }); }},
      {"gpt2", "no_bias",
       [](AlteredCheckpoint& m) {
         using L = LayerTensors;
         for (const auto member :
              {&L::q_bias, &L::k_bias, &L::v_bias, &L::o_bias, &L::up_bias, &L::down_bias}) {
           zero(member)(m);
         }
       }},
      // Without the biases of the norms too, which the manifest's breakage keeps.
      {"gpt2", "rms_instead", describe([](auto& m) { m.norm = NormKind::rms; }), 0.0},
      {"gpt_oss", "no_sinks",
       [](AlteredCheckpoint& m) {
         m.changed.attention_sinks = false;
         for (LayerTensors& layer : m.layers) layer.sinks = {};
       }},
      {"gpt_oss", "no_window", describe([](auto& m) { m.sliding_window = kNoWindow; })},
      {"gpt_oss", "gate_up_halves", halve_gate_and_up},
      {"gpt_oss", "no_clamp", describe([](auto& m) { m.moe.swiglu_limit = 1e30; })},
      {"gpt_oss", "no_renorm", describe([](auto& m) { m.moe.softmax_of_chosen = false; })},
      {"gpt_oss", "top1", describe([](auto& m) { m.moe.chosen = 1; })},
      {"gpt_oss", "rope_interleaved", interleave_rotation},
      {"gpt_oss", "yarn_no_attention_factor",
       describe([](auto& m) { m.rope_scaling.attention_factor = 1.0; })},
      {"gpt_oss", "yarn_no_truncate", describe([](auto& m) { m.rope_scaling.truncate = false; })},
      {"gpt_oss", "no_o_bias", zero(&LayerTensors::o_bias)},
      {"gpt_oss", "no_router_bias", zero(&LayerTensors::router_bias)}};
}

constexpr std::array<std::string_view, 3> kInCode{"qk_norm_after_rope", "no_up_plus_one",
                                                  "plain_silu"};

std::vector<Breakage> breakages_of(const std::string& model) {
  std::vector<Breakage> all;
  const auto take = [&](std::vector<Breakage> part) {
    for (Breakage& breakage : part) {
      if (breakage.model == model) all.push_back(std::move(breakage));
    }
  };
  for (const char* name : {"qwen2", "qwen3", "llama3_rope", "mistral_tied", "mixtral", "qwen3moe",
                           "qwen2moe", "llama_yarn"}) {
    take(llama_like(name));
  }
  take(gemma("gemma2"));
  take(gemma("gemma3"));
  take(others());
  return all;
}

double host_difference(const std::shared_ptr<const ModelCheckpoint>& model,
                       const std::vector<TokenId>& prompt, const NumpyArray& exact) {
  LaneInput input{.model = model, .prompt = prompt};
  input.config.scoring = Scoring::prefill;
  double largest = 0.0;
  for (const RecordedStep& step : score(input)) {
    largest = std::max(largest, largest_difference(step.logits, exact.row(step.step)));
  }
  return largest;
}

class BrokenOnPurpose : public testing::TestWithParam<const char*> {};

TEST_P(BrokenOnPurpose, MovesTheLogitsAsFarAsTheManifestSays) {
  NEED_ORACLE();
  const std::string name = GetParam();
  const auto facts = read_json(oracle_folder() / "MANIFEST.json")["models"][name];
  const double host_tolerance = facts["prompts"][1]["suggested_tolerance_float32"];
  const auto exact = read_npy(oracle_folder() / name / "logits_f64_1.npy");
  const auto prompt = prompt_of(name, 1);
  const auto original = open_oracle(name);
  const auto breakages = breakages_of(name);
  for (const auto& [entry, moved] : facts["broken_on_purpose"].items()) {
    if (std::find(kInCode.begin(), kInCode.end(), entry) != kInCode.end()) continue;
    const auto found = std::find_if(breakages.begin(), breakages.end(),
                                    [&](const Breakage& b) { return entry == b.entry; });
    ASSERT_NE(found, breakages.end()) << name << " " << entry << " has no breakage here";
    const auto model = std::make_shared<AlteredCheckpoint>(original);
    found->apply(*model);
    const double wanted = moved[0];
    const double witness = largest_difference(Witness(model).score(prompt), exact.values.data());
    const double host = host_difference(model, prompt, exact);
    fmt::print("{} {}: moves by {:.7f}, in the witness by {:.7f}, on the host by {:.7f}\n", name,
               entry, wanted, witness, host);
    if (found->exactness == 0.0) {
      EXPECT_GT(witness, 1000.0 * host_tolerance) << entry;
      EXPECT_GT(host, 1000.0 * host_tolerance) << entry;
      continue;
    }
    // Logits of broken models may pass 16.
    EXPECT_NEAR(witness, wanted, 4 * kWitnessTolerance) << entry;
    // The broken model's own f32 rounding is as small as the whole one's.
    EXPECT_NEAR(host, wanted, host_tolerance) << entry;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, BrokenOnPurpose,
                         testing::Values("qwen2", "qwen3", "llama3_rope", "mistral_tied", "mixtral",
                                         "qwen3moe", "qwen2moe", "gemma2", "gemma3", "phi3", "gpt2",
                                         "llama_yarn", "gpt_oss"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace driftscope::test
