// SPDX-License-Identifier: Apache-2.0
// Architectures beyond the Llama family on the host: every order of attention, instruction set,
// batch and rank against the independent f64 logits or against each other, and what is rounded
// where in 16 bits.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/exec/backend_factory.h"
#include "kernels/layernorm/layernorm.h"
#include "tests/exec/npy.h"
#include "tests/exec/oracle_models.h"
#include "tests/exec/recording.h"

namespace driftscope::test {
namespace {

LaneInput input_of(const std::string& name) {
  LaneInput input{.model = open(name, config_of(name)), .prompt = prompt_of(name, 1)};
  input.config.sampling.ignore_eos = true;
  input.config.threads = 1;
  return input;
}

double largest_difference(const std::vector<RecordedStep>& steps, const NumpyArray& exact) {
  double largest = 0.0;
  for (const RecordedStep& step : steps) {
    const double* row = exact.row(step.step);
    for (std::size_t i = 0; i < step.logits.size(); ++i) {
      largest = std::max(largest, std::abs(double{step.logits[i]} - row[i]));
    }
  }
  return largest;
}

class NewArchitecture : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, NewArchitecture,
                         testing::Values("gemma2", "gemma3", "phi3", "gpt2", "llama_yarn",
                                         "gpt_oss"));

struct Variation {
  const char* name;
  void (*apply)(RunConfig&);
};
// What changes the order of sums, or where bytes lie, and no more than that.
constexpr Variation kVariations[] = {
    {"eager", [](RunConfig& c) { c.attention = AttentionMode::eager; }},
    {"small tiles", [](RunConfig& c) { c.attention_tile = 8; }},
    {"split by count",
     [](RunConfig& c) {
       c.attention = AttentionMode::split_kv_count;
       c.attention_combine = SplitCombine::tree;
     }},
    {"split by size",
     [](RunConfig& c) {
       c.attention = AttentionMode::split_kv_size;
       c.attention_split_size = 16;
     }},
    {"paged", [](RunConfig& c) { c.attention_page = 16; }},
    {"f64 softmax", [](RunConfig& c) { c.softmax_dtype = Dtype::f64; }},
    {"fused", [](RunConfig& c) { c.fused_qkv = c.fused_gate_up = true; }},
    {"norm lanes", [](RunConfig& c) { c.norm_lanes = 8; }},
    {"two ranks", [](RunConfig& c) { c.tensor_parallel = 2; }},
    {"two ranks, fused",
     [](RunConfig& c) {
       c.tensor_parallel = 2;
       c.fused_qkv = c.fused_gate_up = true;
     }},
};

bool shares(const ModelCheckpoint& model, const RunConfig& config) {
  return model.description().heads % config.tensor_parallel == 0;
}

TEST_P(NewArchitecture, EveryOrderStaysWithinTheToleranceOfTheExactLogits) {
  NEED_SHARED_DATA();
  const std::string name = GetParam();
  const LaneInput plain = input_of(name);
  const NumpyArray exact = read_npy(kOracle / name / "logits_f64_1.npy");
  const double tolerance = tolerance_of(name);
  for (const Variation& variation : kVariations) {
    LaneInput input = plain;
    variation.apply(input.config);
    if (!shares(*input.model, input.config)) continue;
    input.config.scoring = Scoring::prefill;
    const double difference = largest_difference(score(input), exact);
    fmt::print("{} {}: {:.2e}\n", name, variation.name, difference);
    EXPECT_LE(difference, tolerance) << variation.name;
  }
}

TEST_P(NewArchitecture, EveryInstructionSetGivesTheSameBits) {
  NEED_SHARED_DATA();
  LaneInput input = input_of(GetParam());
  input.config.scoring = Scoring::prefill;
  const auto sixteen_bits = [](RunConfig& c) {
    c.activation_dtype = c.logits_dtype = Dtype::bf16;
    c.rounding_points = RoundingPoints::every_op;
    c.attention = AttentionMode::eager;
  };
  const auto coded_cache = [](RunConfig& c) { c.kv_dtype = KvDtype::int8; };
  const RunConfig plain = input.config;
  for (const auto apply : {static_cast<void (*)(RunConfig&)>([](RunConfig&) {}),
                           static_cast<void (*)(RunConfig&)>(sixteen_bits),
                           static_cast<void (*)(RunConfig&)>(coded_cache)}) {
    input.config = plain;
    apply(input.config);
    input.config.isa = IsaChoice::scalar;
    const auto scalar = score(input);
    for (const auto& [isa, choice] :
         {std::pair{Isa::avx2, IsaChoice::avx2}, std::pair{Isa::avx512, IsaChoice::avx512}}) {
      if (!isa_supported(isa)) continue;
      input.config.isa = choice;
      EXPECT_TRUE(same_logits(score(input), scalar)) << isa_name(isa);
    }
  }
}

TEST_P(NewArchitecture, InvariantPlansDoNotSeeTheBatch) {
  NEED_SHARED_DATA();
  LaneInput input = input_of(GetParam());
  input.config.matmul_policy = PlanPolicy::invariant;
  const auto alone = generate(input, 6);
  ASSERT_EQ(alone.size(), 6U);
  LaneInput crowded = input;
  crowded.config.neighbours = 3;
  for (unsigned i = 0; i < 3; ++i) crowded.neighbour_prompts.push_back(some_ids(9 + 7 * i, 200, i));
  EXPECT_TRUE(same_logits(generate(crowded, 6), alone));
  LaneInput chunked = input;
  chunked.config.prefill_chunk = 7;
  EXPECT_TRUE(same_logits(generate(chunked, 6), alone));
  LaneInput warm = input;
  warm.config.prefix_cache = PrefixCache::warm;
  EXPECT_TRUE(same_logits(generate(warm, 6), alone));
  LaneInput threads = input;
  threads.config.threads = 2;
  EXPECT_TRUE(same_logits(generate(threads, 6), alone));
}

TEST_P(NewArchitecture, AgainstItselfIsExactlyZero) {
  NEED_SHARED_DATA();
  for (const auto apply : {static_cast<void (*)(RunConfig&)>([](RunConfig&) {}),
                           static_cast<void (*)(RunConfig&)>([](RunConfig& c) {
                             c.weight_dtype = WeightDtype::bf16;
                             c.activation_dtype = Dtype::bf16;
                             c.tensor_parallel = 2;
                             c.kv_dtype = KvDtype::fp8_e4m3;
                           }),
                           static_cast<void (*)(RunConfig&)>([](RunConfig& c) {
                             c.quantisation = Quantisation::int8_w8a16;
                             c.quantise_lm_head = true;
                           })}) {
    LaneInput input = input_of(GetParam());
    apply(input.config);
    if (!shares(*input.model, input.config)) input.config.tensor_parallel = 1;
    RecordingSink sink;
    const auto done = run_lockstep({.a = input, .b = input, .steps = 5}, sink, {}, {});
    ASSERT_TRUE(done) << done.error().message;
    const auto a = sink.lane(Lane::a);
    ASSERT_EQ(a.size(), 5U);
    for (const float logit : a.back().logits) EXPECT_TRUE(std::isfinite(logit));
    for (const Lane lane : {Lane::b, Lane::b_forced, Lane::control}) {
      EXPECT_TRUE(same_logits(sink.lane(lane), a)) << lane_name(lane);
    }
  }
}

// ---- Taps in bf16: each from the ones before it, by the definition of its step.

using Floats = std::vector<float>;

const Floats& tap(const RecordedStep& step, const std::string& operation, int layer) {
  for (const RecordedTap& tap : step.taps) {
    if (tap.operation == operation && tap.layer == layer) return tap.values;
  }
  throw std::runtime_error("no tap " + operation);
}

Floats values_of(const TensorView& tensor) {
  Floats values(static_cast<std::size_t>(tensor.elements()));
  tensor.values(0, tensor.elements(), values.data());
  return values;
}

float bf16(float value) { return round_to(Dtype::bf16, value); }

// x · scale · weight, rounded once: the norms of Gemma and gpt-oss.
Floats norm_rounded_once(const Floats& x, const Floats& weight, float epsilon) {
  const float mean = reduce_dot({}, x.data(), x.data(), static_cast<std::int64_t>(x.size())) /
                     static_cast<float>(x.size());
  const float scale = 1.0F / std::sqrt(mean + epsilon);
  Floats y;
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back(bf16(x[i] * scale * weight[i]));
  return y;
}

RecordedStep taps_in_bf16(const LaneInput& plain) {
  LaneInput input = plain;
  input.config.activation_dtype = Dtype::bf16;
  input.config.rounding_points = RoundingPoints::every_op;
  input.config.scoring = Scoring::prefill;
  return score(input, TapLevel::all).back();
}

TEST(GemmaRounding, TheScaleIsRoundedAndSoAreTheNormsOnce) {
  NEED_SHARED_DATA();
  for (const std::string name : {"gemma2", "gemma3"}) {
    const LaneInput input = input_of(name);
    const ModelDescription& model = input.model->description();
    const RecordedStep last = taps_in_bf16(input);
    Floats row(static_cast<std::size_t>(model.hidden));
    input.model->embedding().values(input.prompt.back().value * model.hidden, model.hidden,
                                    row.data());
    const float scale = bf16(std::sqrt(static_cast<float>(model.hidden)));
    EXPECT_EQ(scale == std::sqrt(static_cast<float>(model.hidden)), name == "gemma2");  // 8
    for (float& value : row) value = bf16(bf16(value) * scale);
    EXPECT_EQ(tap(last, "embd", -1), row);
    const auto epsilon = static_cast<float>(model.rms_epsilon);
    const LayerTensors& layer = input.model->layer(0);
    EXPECT_EQ(tap(last, "attn_norm", 0),
              norm_rounded_once(row, values_of(layer.attention_norm), epsilon));
    const Floats& attention = tap(last, "attn_post_norm", 0);
    EXPECT_EQ(attention, norm_rounded_once(tap(last, "attn_out", 0),
                                           values_of(layer.post_attention_norm), epsilon));
    Floats stream = row;
    for (std::size_t i = 0; i < row.size(); ++i) stream[i] = bf16(row[i] + attention[i]);
    EXPECT_EQ(tap(last, "ffn_inp", 0), stream);
    const Floats& delta = tap(last, "ffn_post_norm", 0);
    EXPECT_EQ(delta,
              norm_rounded_once(tap(last, "ffn_out", 0), values_of(layer.post_ffn_norm), epsilon));
    for (std::size_t i = 0; i < row.size(); ++i) stream[i] = bf16(stream[i] + delta[i]);
    EXPECT_EQ(tap(last, "l_out", 0), stream);
  }
}

TEST(Gpt2Rounding, PositionsAreAddedAndLayerNormsRoundOnce) {
  NEED_SHARED_DATA();
  const LaneInput input = input_of("gpt2");
  const ModelDescription& model = input.model->description();
  const RecordedStep last = taps_in_bf16(input);
  const std::int64_t hidden = model.hidden;
  Floats row(static_cast<std::size_t>(hidden));
  Floats position(row.size());
  input.model->embedding().values(input.prompt.back().value * hidden, hidden, row.data());
  input.model->position_embedding().values(
      (static_cast<std::int64_t>(input.prompt.size()) - 1) * hidden, hidden, position.data());
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = bf16(bf16(row[i]) + bf16(position[i]));
  EXPECT_EQ(tap(last, "embd", -1), row);
  const Floats weight = values_of(input.model->layer(0).attention_norm);
  const Floats bias = values_of(input.model->layer(0).attention_norm_bias);
  Floats normed(row.size());
  SerialParallel serial;
  layernorm({.x = row.data(),
             .weight = weight.data(),
             .bias = bias.data(),
             .y = normed.data(),
             .rows = 1,
             .width = hidden,
             .epsilon = static_cast<float>(model.rms_epsilon),
             .output_dtype = Dtype::bf16},
            Isa::scalar, serial);
  EXPECT_EQ(tap(last, "attn_norm", 0), normed);
  EXPECT_THROW((void)tap(last, "ffn_gate", 0), std::runtime_error);
  EXPECT_THROW((void)tap(last, "Qrope", 0), std::runtime_error);
}

TEST(Gpt2, HeadsThatRanksCannotShareAreRefused) {
  NEED_SHARED_DATA();
  const LaneInput input = input_of("gpt2");
  RunConfig config = input.config;
  config.tensor_parallel = 2;
  BackendFactory factory;
  const auto backend = factory.open(input.model, config);
  ASSERT_FALSE(backend);
  EXPECT_THAT(backend.error().message, testing::HasSubstr("3 attention heads"));
}

TEST(Gpt2, APositionBeyondTheTableIsAnError) {
  NEED_SHARED_DATA();
  const LaneInput input = input_of("gpt2");
  BackendFactory factory;
  const auto backend = factory.open(input.model, input.config);
  ASSERT_TRUE(backend);
  const std::int64_t positions = input.model->description().max_positions;
  const auto cache = (*backend)->create_cache(positions);
  const std::vector<TokenId> tokens(static_cast<std::size_t>(positions), TokenId{5});
  BatchSequence sequence{.cache = cache->get(), .tokens = tokens};
  ASSERT_TRUE((*backend)->forward({.sequences = {&sequence, 1}}, {}));
  sequence.tokens = std::span(tokens).first(1);
  const auto beyond = (*backend)->forward({.sequences = {&sequence, 1}}, {});
  ASSERT_FALSE(beyond);
  EXPECT_THAT(beyond.error().message, testing::HasSubstr(fmt::format("position {}", positions)));
  EXPECT_EQ((*cache)->length(), positions);
}

TEST(Gemma2, LogitsNeverPassTheCap) {
  NEED_SHARED_DATA();
  const LaneInput input = input_of("gemma2");
  const double cap = input.model->description().final_softcap;
  ASSERT_GT(cap, 0.0);
  for (const RecordedStep& step : generate(input, 3)) {
    for (const float logit : step.logits) EXPECT_LE(std::abs(double{logit}), cap);
  }
}

TEST(GemmaWeights, RoundingANormRoundsWhatTheFileHolds) {
  NEED_SHARED_DATA();
  const Model model = open("gemma2", config_of("gemma2"));
  const auto weights = HostWeights::load(model, {.weights = WeightDtype::f16});
  ASSERT_TRUE(weights);
  const Floats stored = values_of(model->layer(0).ffn_norm);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    // The file's values are exact in f16; 1 + w need not be, and stays as it is.
    EXPECT_EQ((*weights)->layer(0).ffn_norm[i], stored[i]);
  }
}

}  // namespace
}  // namespace driftscope::test
