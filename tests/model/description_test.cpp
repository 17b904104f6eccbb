// SPDX-License-Identifier: Apache-2.0
// config.json of every architecture, in both spellings, and what is refused.
#include "engine/model/description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/model/checkpoint_builder.h"

namespace driftscope {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<ModelDescription> describe(const json& config, const json& generation = nullptr) {
  return describe_model({.config = &config,
                         .name = "config.json",
                         .generation_config = generation.is_null() ? nullptr : &generation,
                         .generation_name = "generation_config.json"});
}

ModelDescription described(const json& config, const json& generation = nullptr) {
  auto result = describe(config, generation);
  if (!result) {
    ADD_FAILURE() << result.error().message;
    return {};
  }
  return *result;
}

void expect_refused(const json& config, const std::string& reason,
                    const json& generation = nullptr) {
  const auto result = describe(config, generation);
  ASSERT_FALSE(result.has_value()) << "accepted, expected: " << reason;
  EXPECT_EQ(result.error().kind, ErrorKind::malformed);
  EXPECT_THAT(result.error().message, HasSubstr("config.json: "));
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

TEST(Description, ReadsTheShape) {
  const ModelDescription d = described(small_config("llama"));
  EXPECT_EQ(d.model_type, "llama");
  EXPECT_EQ(d.hidden, 8);
  EXPECT_EQ(d.layers, 2);
  EXPECT_EQ(d.heads, 2);
  EXPECT_EQ(d.kv_heads, 1);
  EXPECT_EQ(d.head_dim, 4);
  EXPECT_EQ(d.intermediate, 12);
  EXPECT_EQ(d.vocabulary, 16);
  EXPECT_EQ(d.max_positions, 64);
  EXPECT_EQ(d.rms_epsilon, 1e-5);
  EXPECT_EQ(d.rope_theta, 10000.0);
  EXPECT_EQ(d.sliding_window, 0);
  EXPECT_FALSE(d.tied_embeddings);
}

TEST(Description, OptionalPartsByArchitecture) {
  const ModelDescription llama = described(small_config("llama"));
  EXPECT_FALSE(llama.qkv_bias || llama.output_bias || llama.mlp_bias || llama.qk_norm);
  const ModelDescription mistral = described(small_config("mistral"));
  EXPECT_FALSE(mistral.qkv_bias || mistral.output_bias || mistral.mlp_bias || mistral.qk_norm);
  const ModelDescription qwen2 = described(small_config("qwen2"));
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.output_bias || qwen2.mlp_bias || qwen2.qk_norm);
  const ModelDescription qwen3 = described(small_config("qwen3"));
  EXPECT_TRUE(qwen3.qk_norm);
  EXPECT_FALSE(qwen3.qkv_bias || qwen3.output_bias || qwen3.mlp_bias);

  json biased = with(small_config("llama"), "attention_bias", true);
  biased["mlp_bias"] = true;
  const ModelDescription d = described(biased);
  EXPECT_TRUE(d.qkv_bias && d.output_bias && d.mlp_bias);
  // Mistral has no such switch: the reference does not read the key.
  EXPECT_FALSE(described(with(small_config("mistral"), "attention_bias", true)).qkv_bias);
}

TEST(Description, HeadDimensionMayBeAbsentOrNull) {
  EXPECT_EQ(described(without(small_config("llama"), "head_dim")).head_dim, 4);
  EXPECT_EQ(described(with(small_config("llama"), "head_dim", nullptr)).head_dim, 4);
  EXPECT_EQ(described(with(small_config("llama"), "head_dim", 6)).head_dim, 6);
  // Qwen3's configuration class says 128 where the file is silent.
  EXPECT_EQ(described(without(small_config("qwen3"), "head_dim")).head_dim, 128);
  EXPECT_EQ(described(with(small_config("qwen3"), "head_dim", nullptr)).head_dim, 4);
}

TEST(Description, KeyValueHeadsDefaultToHeads) {
  EXPECT_EQ(described(without(small_config("llama"), "num_key_value_heads")).kv_heads, 2);
  EXPECT_EQ(described(with(small_config("qwen2"), "num_key_value_heads", nullptr)).kv_heads, 2);
}

TEST(Description, RefusesInconsistentShapes) {
  expect_refused(without(with(small_config("llama"), "hidden_size", 9), "head_dim"),
                 "hidden_size 9 is not a multiple of 2 heads");
  expect_refused(with(small_config("llama"), "num_key_value_heads", 4),
                 "not a multiple of num_key_value_heads 4");
  expect_refused(with(small_config("llama"), "head_dim", 3), "odd");
}

TEST(Description, RefusesWrongValues) {
  for (const json& value : {json(0), json(-8), json(2.5), json("8"), json(true), json(4294967296),
                            json::array({8}), json(nullptr)}) {
    expect_refused(with(small_config("llama"), "hidden_size", value), "hidden_size");
  }
  expect_refused(with(small_config("llama"), "rms_norm_eps", 0.0), "rms_norm_eps");
  expect_refused(with(small_config("llama"), "rope_theta", "big"), "rope_theta");
  expect_refused(with(small_config("llama"), "tie_word_embeddings", 1), "tie_word_embeddings");
  expect_refused(json::array(), "not an object");
  expect_refused(without(small_config("llama"), "vocab_size"), "vocab_size is missing");
}

TEST(Description, RefusesOtherArchitecturesByName) {
  expect_refused(small_config("olmo"),
                 "model_type \"olmo\" is not supported; supported are llama, mistral, qwen2, "
                 "qwen3, mixtral, qwen2_moe, qwen3_moe, gemma2, gemma3_text, gemma3, phi3, gpt2, "
                 "gpt_oss");
  expect_refused(without(small_config("llama"), "model_type"), "model_type is missing");
  expect_refused(with(small_config("llama"), "model_type", 7), "model_type");
}

TEST(Description, RefusesUnsupportedFeaturesByName) {
  expect_refused(with(small_config("llama"), "hidden_act", "relu2"), "hidden_act \"relu2\"");
  expect_refused(with(small_config("mixtral"), "hidden_act", "gelu"), "with experts");
  expect_refused(with(small_config("llama"), "partial_rotary_factor", 0.5),
                 "partial_rotary_factor");
  for (const char* type : {"dynamic", "proportional"}) {
    expect_refused(with(small_config("llama"), "rope_scaling", {{"rope_type", type}}),
                   std::string("\"") + type + "\" is not supported");
  }
  expect_refused(with(small_config("llama"), "rope_scaling", 8.0), "rope_scaling");
}

TEST(Description, SlidingWindows) {
  const json mistral = small_config("mistral");
  EXPECT_EQ(described(mistral).sliding_window, 4096);  // the class's default
  EXPECT_EQ(described(with(mistral, "sliding_window", nullptr)).sliding_window, 0);
  EXPECT_EQ(described(with(mistral, "sliding_window", 32)).sliding_window, 32);
  EXPECT_EQ(described(with(small_config("llama"), "sliding_window", 32)).sliding_window, 0);

  json qwen = with(small_config("qwen2"), "sliding_window", 32);
  EXPECT_EQ(described(qwen).sliding_window, 0);  // not switched on
  qwen["use_sliding_window"] = true;
  qwen["max_window_layers"] = 0;
  EXPECT_EQ(described(qwen).sliding_window, 32);
  qwen["max_window_layers"] = 2;
  EXPECT_EQ(described(qwen).sliding_window, 0);
  qwen["max_window_layers"] = 1;
  EXPECT_THAT(described(qwen).sliding_layers, ElementsAre(0, 1));
  EXPECT_EQ(described(qwen).window(0), 0);
  EXPECT_EQ(described(qwen).window(1), 32);
  qwen["layer_types"] = {"sliding_attention", "sliding_attention"};
  EXPECT_EQ(described(qwen).sliding_window, 32);
  EXPECT_TRUE(described(qwen).sliding_layers.empty());  // all
  qwen["layer_types"] = {"sliding_attention", "full_attention"};
  EXPECT_THAT(described(qwen).sliding_layers, ElementsAre(1, 0));
  qwen["layer_types"] = {"full_attention"};
  expect_refused(qwen, "layer_types");
  qwen["layer_types"] = {"full_attention", "chunked_attention"};
  expect_refused(qwen, "chunked_attention");
}

TEST(Description, EndTokens) {
  const json llama = small_config("llama");
  EXPECT_TRUE(described(llama).eos.empty());
  EXPECT_THAT(described(with(llama, "eos_token_id", 2)).eos, ElementsAre(TokenId{2}));
  EXPECT_THAT(described(with(llama, "eos_token_id", {3, 5})).eos,
              ElementsAre(TokenId{3}, TokenId{5}));
  EXPECT_THAT(described(with(llama, "eos_token_id", 2), {{"eos_token_id", {7}}}).eos,
              ElementsAre(TokenId{7}));
  EXPECT_THAT(described(with(llama, "eos_token_id", 2), {{"eos_token_id", nullptr}}).eos,
              ElementsAre(TokenId{2}));
  EXPECT_EQ(described(with(llama, "bos_token_id", 1)).bos, TokenId{1});
  EXPECT_EQ(described(llama, {{"bos_token_id", 4}}).bos, TokenId{4});
  EXPECT_FALSE(described(with(llama, "bos_token_id", nullptr)).bos.has_value());
  expect_refused(with(llama, "eos_token_id", 16), "eos_token_id is 16");
  expect_refused(with(llama, "eos_token_id", -1), "eos_token_id is -1");
  expect_refused(llama, "eos_token_id", {{"eos_token_id", "</s>"}});
}

TEST(Description, StoredTypeInBothSpellings) {
  json config = small_config("llama");
  EXPECT_EQ(described(config).stored_dtype, Dtype::f32);
  EXPECT_EQ(described(with(config, "torch_dtype", "bfloat16")).stored_dtype, Dtype::bf16);
  config.erase("torch_dtype");
  EXPECT_EQ(described(with(config, "dtype", "float16")).stored_dtype, Dtype::f16);
  config["torch_dtype"] = "float16";
  expect_refused(with(config, "dtype", "bfloat16"), "differ");
}

// The oracle's folders hold each configuration in both spellings.
TEST(Description, BothSpellingsOfTheOracleAreEqual) {
  const std::filesystem::path root =
      std::filesystem::path(DRIFTSCOPE_SHARED_DATA) / "oracle" / "architectures";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "no shared data at " << root;
  for (const char* name :
       {"qwen2", "qwen3", "llama3_rope", "mistral_tied", "mixtral", "qwen2moe", "qwen3moe",
        "gemma2", "gemma3", "phi3", "gpt2", "llama_yarn", "gpt_oss"}) {
    std::ifstream older_file(root / name / "config.json");
    std::ifstream newer_file(root / name / "config_rope_parameters.json");
    const ModelDescription a = described(json::parse(older_file));
    const ModelDescription b = described(json::parse(newer_file));
    EXPECT_EQ(a.rope_theta, b.rope_theta) << name;
    EXPECT_EQ(a.rope_scaling, b.rope_scaling) << name;
    EXPECT_EQ(a.local_rope_theta, b.local_rope_theta) << name;
    EXPECT_EQ(a.local_rope_scaling, b.local_rope_scaling) << name;
    EXPECT_EQ(a.rotary_dim, b.rotary_dim) << name;
    EXPECT_EQ(a.sliding_layers, b.sliding_layers) << name;
    EXPECT_EQ(a.inverse_frequencies(), b.inverse_frequencies()) << name;
    EXPECT_EQ(a.stored_dtype, b.stored_dtype) << name;
    EXPECT_EQ(a.head_dim, b.head_dim) << name;
    EXPECT_EQ(a.sliding_window, b.sliding_window) << name;
    EXPECT_EQ(a.tied_embeddings, b.tied_embeddings) << name;
  }
}

}  // namespace
}  // namespace driftscope
