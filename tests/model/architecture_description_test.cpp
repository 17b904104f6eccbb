// SPDX-License-Identifier: Apache-2.0
// config.json of the architectures beyond the Llama family: defaults, variants and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/model/description.h"
#include "engine/model/description_text.h"
#include "tests/model/checkpoint_builder.h"

namespace driftscope {
namespace {

using nlohmann::json;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<ModelDescription> describe(const json& config) {
  return describe_model({.config = &config,
                         .name = "config.json",
                         .generation_config = nullptr,
                         .generation_name = "generation_config.json"});
}

ModelDescription described(const json& config) {
  auto result = describe(config);
  if (!result) {
    ADD_FAILURE() << result.error().message;
    return {};
  }
  return *result;
}

void expect_refused(const json& config, const std::string& reason) {
  const auto result = describe(config);
  ASSERT_FALSE(result.has_value()) << "accepted, expected: " << reason;
  EXPECT_EQ(result.error().kind, ErrorKind::malformed);
  EXPECT_THAT(result.error().message, HasSubstr(reason));
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
}

json with(json config, const char* key, json value) {
  config[key] = std::move(value);
  return config;
}
json without(json config, const char* key) {
  config.erase(key);
  return config;
}

// ---- Gemma

TEST(Gemma2Description, CapsScalesAndWindowsOfTheClass) {
  const json config = without(small_config("gemma2"), "tie_word_embeddings");
  const ModelDescription d = described(config);
  EXPECT_TRUE(d.tied_embeddings && d.post_norms);
  EXPECT_FALSE(d.qk_norm);
  EXPECT_EQ(d.activation, Activation::gelu_tanh);
  EXPECT_EQ(d.embedding_scale, std::sqrt(8.0));
  EXPECT_EQ(d.attention_scale, 1.0 / 16.0);  // 256 ** -0.5
  EXPECT_EQ(d.attention_softcap, 50.0);
  EXPECT_EQ(d.final_softcap, 30.0);
  EXPECT_EQ(d.sliding_window, 4096);
  EXPECT_THAT(d.sliding_layers, ElementsAre(1, 0));
  EXPECT_FALSE(d.local_rope_theta.has_value());

  const ModelDescription uncapped = described(
      with(with(config, "attn_logit_softcapping", nullptr), "final_logit_softcapping", nullptr));
  EXPECT_EQ(uncapped.attention_softcap, 0.0);
  EXPECT_EQ(uncapped.final_softcap, 0.0);
  EXPECT_EQ(described(with(config, "query_pre_attn_scalar", 4)).attention_scale, 0.5);
  expect_refused(with(config, "attn_logit_softcapping", -1.0), "attn_logit_softcapping is -1.0");
  expect_refused(with(config, "query_pre_attn_scalar", 0), "query_pre_attn_scalar is 0");
  // The class reads hidden_activation only.
  EXPECT_EQ(described(with(config, "hidden_act", "relu")).activation, Activation::gelu_tanh);
  EXPECT_EQ(described(with(config, "hidden_activation", "gelu")).activation, Activation::gelu_erf);
}

TEST(Gemma3Description, LayersWithTheWindowRotateByAnglesOfTheirOwn) {
  json config = small_config("gemma3_text");
  config["num_hidden_layers"] = 7;
  config["rope_theta"] = 1e6;
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
  const ModelDescription older = described(config);
  EXPECT_TRUE(older.qk_norm && older.post_norms);
  EXPECT_THAT(older.sliding_layers, ElementsAre(1, 1, 1, 1, 1, 0, 1));  // every sixth is full
  EXPECT_EQ(older.rope_theta, 1e6);
  EXPECT_EQ(older.rope_scaling.factor, 8.0);
  EXPECT_EQ(older.local_rope_theta, 10000.0);
  EXPECT_EQ(older.local_rope_scaling, RopeScaling{});
  EXPECT_TRUE(older.rotates_locally(0));
  EXPECT_FALSE(older.rotates_locally(5));
  EXPECT_THAT(described(with(config, "sliding_window_pattern", 2)).sliding_layers,
              ElementsAre(1, 0, 1, 0, 1, 0, 1));
  EXPECT_EQ(described(with(config, "rope_local_base_freq", 500.0)).local_rope_theta, 500.0);

  json newer = without(without(config, "rope_theta"), "rope_scaling");
  newer["rope_parameters"] = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 1e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 10000.0}}}};
  const ModelDescription same = described(newer);
  EXPECT_EQ(same.inverse_frequencies(false), older.inverse_frequencies(false));
  EXPECT_EQ(same.inverse_frequencies(true), older.inverse_frequencies(true));
  newer["rope_local_base_freq"] = 20000.0;
  expect_refused(newer, "rope_local_base_freq and rope_parameters.sliding_attention");
  newer["rope_parameters"]["full_attention"] = 7;
  expect_refused(newer, "full_attention is 7; it must be an object");
}

TEST(Gemma3Description, TheDecoderOfAFileWithImagesIsReadWithTheDefaultsOfItsClass) {
  // As published: what the class says is left out.
  const json config{{"model_type", "gemma3"},
                    {"eos_token_id", {1, 106}},
                    {"text_config",
                     {{"hidden_size", 2560},
                      {"intermediate_size", 10240},
                      {"model_type", "gemma3_text"},
                      {"num_hidden_layers", 34},
                      {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                      {"sliding_window", 1024}}},
                    {"torch_dtype", "bfloat16"},
                    {"vision_config", {{"hidden_size", 1152}}}};
  const ModelDescription d = described(config);
  EXPECT_EQ(d.model_type, "gemma3_text");
  EXPECT_EQ(d.heads, 8);
  EXPECT_EQ(d.kv_heads, 4);
  EXPECT_EQ(d.head_dim, 256);
  EXPECT_EQ(d.vocabulary, 262208);
  EXPECT_EQ(d.max_positions, 131072);
  EXPECT_EQ(d.sliding_window, 1024);
  EXPECT_EQ(d.rope_theta, 1e6);
  EXPECT_TRUE(d.tied_embeddings);
  EXPECT_THAT(d.eos, ElementsAre(TokenId{1}, TokenId{106}));
  expect_refused({{"model_type", "gemma3"}}, "text_config is missing");
  expect_refused(with(config, "text_config", 5), "config.json: text_config: is 5, not an object");
  json encoder = config;
  encoder["text_config"]["use_bidirectional_attention"] = true;
  expect_refused(encoder, "use_bidirectional_attention");
}

// ---- Phi-3

json longrope(const char* kind = "longrope") {
  json config = small_config("phi3");
  config["max_position_embeddings"] = 64;
  config["original_max_position_embeddings"] = 16;
  config["rope_scaling"] = {
      {"type", kind}, {"short_factor", {1.0, 2.0}}, {"long_factor", {3.0, 4.0}}};
  return config;
}

TEST(Phi3Description, LongRopeHasTwoSetsAndAFactorOnCosineAndSine) {
  const ModelDescription d = described(longrope());
  EXPECT_EQ(d.rope_scaling.kind, RopeScaling::Kind::longrope);
  EXPECT_EQ(d.rope_scaling.original_max_positions, 16);
  // sqrt(1 + ln 4 / ln 16) = sqrt(3 / 2)
  EXPECT_DOUBLE_EQ(d.rope_scaling.attention_factor, std::sqrt(1.5));
  EXPECT_THAT(d.inverse_frequencies(false, false), ElementsAre(1.0, DoubleNear(0.005, 1e-15)));
  EXPECT_THAT(d.inverse_frequencies(false, true),
              ElementsAre(1.0 / 3.0, DoubleNear(0.0025, 1e-15)));
  // The names that older files give it.
  for (const char* kind : {"su", "yarn"}) {
    EXPECT_EQ(described(longrope(kind)).rope_scaling, d.rope_scaling) << kind;
  }
  json given = longrope();
  given["rope_scaling"]["attention_factor"] = 1.25;
  EXPECT_EQ(described(given).rope_scaling.attention_factor, 1.25);
  json newer = without(without(longrope(), "rope_scaling"), "rope_theta");
  newer["rope_parameters"] = longrope()["rope_scaling"];
  newer["rope_parameters"]["rope_theta"] = 10000.0;
  EXPECT_EQ(described(newer).rope_scaling, d.rope_scaling);
  newer.erase("original_max_position_embeddings");
  newer["rope_parameters"]["original_max_position_embeddings"] = 16;
  EXPECT_EQ(described(newer).rope_scaling, d.rope_scaling);
}

TEST(Phi3Description, RefusesListsOfAnotherLength) {
  json config = longrope();
  config["rope_scaling"]["long_factor"] = {1.0};
  expect_refused(config, "long_factor is a list of 1; it must be a list of 2 numbers");
  config["rope_scaling"]["long_factor"] = {1.0, 0.0};
  expect_refused(config, "long_factor has 0.0");
  config["rope_scaling"].erase("long_factor");
  expect_refused(config, "long_factor is missing");
}

TEST(Phi3Description, RotatesAPartOfTheHead) {
  json config = small_config("phi3");
  config["head_dim"] = 16;
  EXPECT_EQ(described(config).rotary_dim, 0);
  EXPECT_EQ(described(with(config, "partial_rotary_factor", 0.75)).rotary_dim, 12);
  EXPECT_EQ(described(with(config, "partial_rotary_factor", 0.75)).inverse_frequencies().size(),
            6U);
  expect_refused(with(config, "partial_rotary_factor", 0.2), "even number of dimensions");  // 3
  expect_refused(with(config, "partial_rotary_factor", 1.5), "even number of dimensions");
  expect_refused(with(config, "partial_rotary_factor", 0.01), "even number of dimensions");
  config["rope_parameters"] = {{"partial_rotary_factor", 0.5}};
  EXPECT_EQ(described(config).rotary_dim, 8);
  expect_refused(with(config, "partial_rotary_factor", 0.75), "differ");
}

// ---- YaRN

TEST(Yarn, FactorBetasAndAttentionFactorOfTheFileOrTheirDefaults) {
  json config = small_config("llama");
  config["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 16}};
  const RopeScaling scaling = described(config).rope_scaling;
  EXPECT_EQ(scaling.kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(scaling.beta_fast, 32.0);
  EXPECT_EQ(scaling.beta_slow, 1.0);
  EXPECT_TRUE(scaling.truncate);
  EXPECT_DOUBLE_EQ(scaling.attention_factor, 0.1 * std::log(4.0) + 1.0);
  json scaled = config;
  scaled["rope_scaling"]["mscale"] = 0.5;
  EXPECT_EQ(described(scaled).rope_scaling.attention_factor, scaling.attention_factor);
  scaled["rope_scaling"]["mscale_all_dim"] = 2.0;
  EXPECT_DOUBLE_EQ(described(scaled).rope_scaling.attention_factor,
                   (0.05 * std::log(4.0) + 1.0) / (0.2 * std::log(4.0) + 1.0));
  // Without a factor: the stretch of the context, 64 / 16.
  config["rope_scaling"].erase("factor");
  EXPECT_EQ(described(config).rope_scaling.factor, 4.0);
  config["rope_scaling"].erase("original_max_position_embeddings");
  expect_refused(config, "factor is missing");
  scaled["rope_scaling"]["beta_slow"] = 32.0;
  expect_refused(scaled, "beta_fast 32 must be greater than beta_slow 32");
  scaled["rope_scaling"].erase("beta_slow");
  scaled["rope_theta"] = 1.0;
  expect_refused(scaled, "rope_theta 1 must be greater than 1 for yarn");
}

// ---- GPT-2

json gpt2() {
  return {{"model_type", "gpt2"}, {"n_embd", 6},      {"n_layer", 2},      {"n_head", 2},
          {"n_positions", 32},    {"vocab_size", 16}, {"n_inner", nullptr}};
}

TEST(Gpt2Description, ReadsItsOwnKeys) {
  const ModelDescription d = described(gpt2());
  EXPECT_EQ(d.hidden, 6);
  EXPECT_EQ(d.head_dim, 3);  // odd: nothing is rotated
  EXPECT_EQ(d.kv_heads, 2);
  EXPECT_EQ(d.intermediate, 24);
  EXPECT_EQ(d.max_positions, 32);
  EXPECT_EQ(d.norm, NormKind::layer);
  EXPECT_EQ(d.activation, Activation::gelu_tanh);
  EXPECT_TRUE(d.learned_positions && d.tied_embeddings && d.qkv_bias && d.output_bias &&
              d.mlp_bias);
  EXPECT_FALSE(d.gated);
  EXPECT_EQ(described(with(gpt2(), "n_inner", 10)).intermediate, 10);
  EXPECT_EQ(described(with(gpt2(), "activation_function", "gelu")).activation,
            Activation::gelu_erf);
  EXPECT_EQ(described(with(gpt2(), "scale_attn_weights", false)).attention_scale, 1.0);
  expect_refused(with(gpt2(), "scale_attn_by_inverse_layer_idx", true),
                 "scale_attn_by_inverse_layer_idx is not supported");
  expect_refused(with(gpt2(), "activation_function", "relu"), "activation_function \"relu\"");
  expect_refused(with(gpt2(), "n_embd", 7), "n_embd 7 is not a multiple of 2 heads");
}

// ---- gpt-oss

TEST(GptOssDescription, SinksBiasesAndClampedExperts) {
  json config = small_config("gpt_oss");
  config["num_local_experts"] = 4;
  config["rope_scaling"] = nullptr;
  const ModelDescription d = described(config);
  EXPECT_TRUE(d.attention_sinks && d.qkv_bias && d.output_bias);
  EXPECT_THAT(d.sliding_layers, ElementsAre(1, 0));
  EXPECT_EQ(d.sliding_window, 128);
  EXPECT_EQ(d.moe.chosen, 4);
  EXPECT_EQ(d.moe.swiglu_limit, 7.0);
  EXPECT_TRUE(d.moe.router_bias && d.moe.biases && d.moe.softmax_of_chosen);
  EXPECT_FALSE(d.moe.renormalise);
  EXPECT_FALSE(described(with(config, "attention_bias", false)).qkv_bias);
  expect_refused(with(config, "num_local_experts", 2), "num_experts_per_tok 4 is more than");
  expect_refused(with(config, "num_local_experts", 0), "num_local_experts is 0");
  // The class's default is a scaling, not none: better asked for than guessed.
  expect_refused(without(config, "rope_scaling"), "rope_scaling is missing");
}

TEST(MixtureWindows, FollowTheReferencesClasses) {
  json config = small_config("qwen2_moe");
  config["num_hidden_layers"] = 4;
  config["use_sliding_window"] = true;
  config["sliding_window"] = 8;
  config["max_window_layers"] = 3;
  EXPECT_THAT(described(config).sliding_layers, ElementsAre(1, 0, 1, 0));
  config["model_type"] = "qwen3_moe";
  EXPECT_EQ(described(config).sliding_window, 8);
  EXPECT_THAT(described(config).sliding_layers, IsEmpty());  // all
}

TEST(DescriptionText, SaysHowPositionsEnter) {
  EXPECT_EQ(positions_text(described(gpt2())), "32, learned");
  EXPECT_EQ(positions_text(described(small_config("llama"))), "64, RoPE theta 10000");
  json gemma = small_config("gemma3_text");
  gemma["num_hidden_layers"] = 7;
  gemma["rope_theta"] = 1e6;
  gemma["sliding_window"] = 6;
  gemma["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
  EXPECT_EQ(positions_text(described(gemma)),
            "64, RoPE theta 1000000 linear by 8, in layers with the window theta 10000, sliding "
            "window 6 in 6 of 7 layers");
  EXPECT_EQ(positions_text(described(longrope())),
            "64, RoPE theta 10000 LongRoPE beyond 16, attention factor 1.22474");
}

TEST(LayerCounts, BeyondAnyModelAreRefusedBeforeAListIsMade) {
  json config = small_config("gemma2");
  config["num_hidden_layers"] = 2147483647;
  expect_refused(config, "num_hidden_layers 2147483647 cannot be");
}

}  // namespace
}  // namespace driftscope
