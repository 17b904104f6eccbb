// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/config/envelope.h"
#include "engine/config/knob.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

// A value that differs from the default, for every kind of knob.
std::string other_value(const KnobSpec& knob) {
  const std::string usual = get_knob(RunConfig{}, knob);
  switch (knob.kind) {
    case KnobKind::choice:
      for (const auto choice : knob.choices) {
        if (choice != usual) return std::string(choice);
      }
      return usual;
    case KnobKind::boolean:
      return usual == "true" ? "false" : "true";
    case KnobKind::integer:
      if (knob.minimum > 2.0) return fmt::format("{:.0f}", 2.0 * knob.minimum);
      return usual == "2" ? "4" : "2";
    case KnobKind::real:
      return usual == "0.5" ? "0.25" : "0.5";
    case KnobKind::text_list:
      return R"(["END"])";
    case KnobKind::integer_list:
      return "[7,9]";
  }
  return usual;
}

TEST(KnobRegistry, IdsAreUniqueAndEveryRowIsComplete) {
  std::set<std::string_view> ids;
  for (const KnobSpec& knob : knob_registry()) {
    EXPECT_TRUE(ids.insert(knob.id).second) << knob.id;
    EXPECT_FALSE(knob.title.empty()) << knob.id;
    EXPECT_FALSE(knob.help.empty()) << knob.id;
    ASSERT_NE(knob.get, nullptr);
    ASSERT_NE(knob.set, nullptr);
    if (knob.kind == KnobKind::choice) {
      EXPECT_FALSE(knob.choices.empty()) << knob.id;
    }
    if (knob.kind == KnobKind::integer || knob.kind == KnobKind::real) {
      EXPECT_LT(knob.minimum, knob.maximum) << knob.id;
    }
  }
}

TEST(KnobRegistry, EveryKnobSetsItsOwnFieldAndNoOther) {
  for (const KnobSpec& knob : knob_registry()) {
    RunConfig config;
    const auto value = other_value(knob);
    ASSERT_TRUE(set_knob(config, knob.id, value)) << knob.id << "=" << value;
    EXPECT_EQ(get_knob(config, knob), value) << knob.id;
    const auto differences = config_difference(RunConfig{}, config);
    ASSERT_EQ(differences.size(), 1U) << knob.id;
    EXPECT_EQ(differences[0].id, knob.id);
    EXPECT_EQ(differences[0].b, value);
  }
}

TEST(KnobRegistry, EveryChoiceRoundTripsThroughTextAndJson) {
  for (const KnobSpec& knob : knob_registry()) {
    for (const auto choice : knob.choices) {
      RunConfig config;
      ASSERT_TRUE(set_knob(config, knob.id, choice)) << knob.id << "=" << choice;
      const auto back = config_from_json(config_to_json(config), "test");
      ASSERT_TRUE(back) << back.error().message;
      EXPECT_EQ(*back, config) << knob.id;
    }
  }
}

TEST(KnobRegistry, EffectBasesAreValidAssignments) {
  for (const KnobSpec& knob : knob_registry()) {
    RunConfig config;
    std::string_view rest = knob.effect_base;
    while (!rest.empty()) {
      const auto space = rest.find(' ');
      ASSERT_TRUE(set_knob_assignment(config, rest.substr(0, space))) << knob.id << ": " << rest;
      rest = space == std::string_view::npos ? std::string_view{} : rest.substr(space + 1);
    }
  }
}

TEST(SetKnob, UnknownKnobNamesTheNearest) {
  RunConfig config;
  const auto set = set_knob(config, "matmul_polcy", "invariant");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().kind, ErrorKind::usage);
  EXPECT_NE(set.error().message.find("matmul_policy"), std::string::npos) << set.error().message;
}

TEST(SetKnob, WrongValuesAreRefusedAndChangeNothing) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"matmul_policy", "fast"},   {"matmul_lanes", "33"},      {"matmul_lanes", "0"},
      {"matmul_lanes", "2048"},    {"matmul_split_k", "-1"},    {"matmul_split_k", "1.5"},
      {"temperature", "nan"},      {"temperature", "-0.1"},     {"top_p", "1.01"},
      {"temperature", "1,5"},      {"fused_qkv", "maybe"},      {"stop", "END"},
      {"stop_token_ids", "[-1]"},  {"stop_token_ids", "[1.5]"}, {"seed", "9007199254740992"},
      {"activation_dtype", "f64"}, {"neighbours", "256"},       {"threads", ""}};
  for (const auto& [id, value] : wrong) {
    RunConfig config;
    const auto set = set_knob(config, id, value);
    ASSERT_FALSE(set) << id << "=" << value;
    EXPECT_NE(set.error().message.find(id), std::string::npos);
    EXPECT_EQ(config, RunConfig{}) << id;
  }
  RunConfig config;
  EXPECT_FALSE(set_knob_assignment(config, "matmul_policy"));
}

TEST(CheckConfig, WhatTheBackendCannotHonourIsAnErrorThatNamesKnobAndBackend) {
  RunConfig config;
  config.matmul_policy = PlanPolicy::vendor;
  auto checked = check_config(config);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().kind, ErrorKind::engine);
  EXPECT_NE(checked.error().message.find("matmul_policy"), std::string::npos);
  EXPECT_NE(checked.error().message.find("host"), std::string::npos);
  config = {};
  config.backend = BackendKind::cuda;
  EXPECT_TRUE(check_config(config));
  config.matmul_policy = PlanPolicy::vendor;  // cuBLAS picks
  EXPECT_TRUE(check_config(config));
  config.threads = 2;  // of the host only
  checked = check_config(config);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("threads"), std::string::npos);
  EXPECT_NE(checked.error().message.find("cuda"), std::string::npos);
  config = {};
  config.batch_position = 1;
  EXPECT_FALSE(check_config(config));
  config.neighbours = 1;
  EXPECT_TRUE(check_config(config));
}

TEST(ConfigJson, UnknownKeysAndWrongTypesNameThePlace) {
  auto read = config_from_json(Json{{"matmul_plicy", "invariant"}}, "my.json");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("my.json"), std::string::npos);
  EXPECT_FALSE(config_from_json(Json{{"neighbours", 1.5}}, "x"));
  EXPECT_FALSE(config_from_json(Json{{"neighbours", nullptr}}, "x"));
  EXPECT_FALSE(config_from_json(Json::array(), "x"));
  EXPECT_FALSE(config_from_json(Json{{"preset", "no-such"}}, "x"));
}

TEST(ConfigJson, PresetIsAStartThatOtherKeysOverrideWhateverTheOrder) {
  const auto read = config_from_json(Json{{"neighbours", 3}, {"preset", "bf16-invariant"}}, "x");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->neighbours, 3);
  EXPECT_EQ(read->activation_dtype, Dtype::bf16);
}

TEST(Presets, AreAllRunnableOnTheHostAndCarryTheirName) {
  ASSERT_GE(presets().size(), 6U);
  for (const Preset& preset : presets()) {
    const auto config = load_config(preset.name);
    ASSERT_TRUE(config);
    EXPECT_EQ(config->name, preset.name);
    EXPECT_TRUE(check_config(*config)) << preset.name;
  }
  for (const char* name : {"reference-f32", "bf16-invariant", "bf16-shape-dependent",
                           "vllm-default-like", "vllm-batch-invariant-like", "hf-eager-like"}) {
    EXPECT_TRUE(load_config(name)) << name;
  }
}

TEST(Presets, UnknownNameListsTheKnownOnes) {
  const auto config = load_config("bf16");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().kind, ErrorKind::usage);
  EXPECT_NE(config.error().message.find("bf16-invariant"), std::string::npos);
  const auto file = load_config("/nonexistent/x.json");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, ErrorKind::malformed);
}

TEST(Presets, LabelsSayWhatWasSetOnTop) {
  auto config = *load_config("bf16-invariant");
  EXPECT_EQ(config_label(config), "bf16-invariant");
  config.neighbours = 7;
  config.sampling.temperature = 0.5;
  EXPECT_EQ(config_label(config), "bf16-invariant + neighbours=7, temperature=0.5");
  config.threads = 1;
  config.norm_split = 2;
  EXPECT_EQ(config_label(config), "bf16-invariant + 4 other knobs");
  config.name = "mine.json";
  EXPECT_EQ(config_label(config), "mine.json");
}

TEST(Presets, AKeyGivenTwiceIsRefused) {
  const auto path = std::filesystem::temp_directory_path() /
                    fmt::format("driftscope-config-{}.json", static_cast<long>(::getpid()));
  std::ofstream(path) << R"({"preset": "bf16-invariant", "neighbours": 1, "neighbours": 7})";
  const auto config = load_config(path.string());
  std::filesystem::remove(path);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().kind, ErrorKind::malformed);
  EXPECT_NE(config.error().message.find("\"neighbours\" is given twice"), std::string::npos)
      << config.error().message;
}

TEST(Envelope, BatchInvarianceFlagFollowsPolicyAndAttention) {
  RunConfig config;
  EXPECT_TRUE(is_batch_invariant(config));
  config.attention = AttentionMode::split_kv_count;
  EXPECT_FALSE(is_batch_invariant(config));
  config.attention = AttentionMode::split_kv_size;
  EXPECT_TRUE(is_batch_invariant(config));
  config.matmul_policy = PlanPolicy::shape_dependent;
  EXPECT_FALSE(is_batch_invariant(config));
}

// From three ranks on a ring's order depends on the row's place in the message.
TEST(Envelope, BatchInvarianceFlagFollowsTheRing) {
  RunConfig config;
  config.all_reduce = AllReduce::ring;
  config.tensor_parallel = 2;
  EXPECT_TRUE(is_batch_invariant(config));
  config.tensor_parallel = 4;
  EXPECT_FALSE(is_batch_invariant(config));
  config.all_reduce = AllReduce::tree;
  EXPECT_TRUE(is_batch_invariant(config));
}

TEST(Envelope, NamesRanksAndAllReduce) {
  EnvelopeFacts facts;
  EXPECT_TRUE(make_envelope(facts, read_environment())["runtime"]["all_reduce"].is_null());
  facts.config.tensor_parallel = 4;
  facts.config.all_reduce = AllReduce::ring;
  facts.config.reduce_dtype = Dtype::bf16;
  const Json envelope = make_envelope(facts, read_environment());
  EXPECT_EQ(envelope["runtime"]["tensor_parallel_size"], 4);
  EXPECT_EQ(envelope["runtime"]["all_reduce"], "ring bf16");
  EXPECT_EQ(envelope["fingerprint"]["tensor_parallel_size"], 4);
}

TEST(CheckConfig, TreeAlignedSumsNeedATreeOfF32) {
  RunConfig config;
  config.tensor_parallel_invariant = true;
  const auto refusal = [&](const RunConfig& asked) {
    const auto checked = check_config(asked);
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_NE(refusal(config).find("all_reduce=tree"), std::string::npos) << refusal(config);
  config.all_reduce = AllReduce::tree;
  EXPECT_EQ(refusal(config), "");
  config.reduce_dtype = Dtype::bf16;
  EXPECT_NE(refusal(config).find("reduce_dtype=f32"), std::string::npos) << refusal(config);
  config.reduce_dtype = Dtype::f32;
  config.matmul_plan.accumulator = Accumulator::kahan;
  EXPECT_NE(refusal(config).find("accumulator=f32"), std::string::npos) << refusal(config);
}

TEST(Envelope, UnknownIsNullAndEveryKnobIsThere) {
  EnvelopeFacts facts;
  facts.prompt_ids = {TokenId{5}, TokenId{6}};
  const Json envelope = make_envelope(facts, read_environment());
  EXPECT_TRUE(envelope["model_artifact_sha256"]["combined"].is_null());
  EXPECT_TRUE(envelope["prompt_text"].is_null());
  EXPECT_TRUE(envelope["runtime"]["torch_version"].is_null());
  EXPECT_EQ(envelope["prompt_token_ids"], Json({5, 6}));
  for (const KnobSpec& knob : knob_registry()) {
    EXPECT_TRUE(envelope["runtime"]["knobs"].contains(std::string(knob.id))) << knob.id;
  }
}

TEST(Fingerprint, DiffsFieldByField) {
  EnvelopeFacts facts;
  const auto environment = read_environment();
  const Json before = make_fingerprint(facts, environment);
  EXPECT_TRUE(fingerprint_difference(before, before).empty());
  facts.model_sha256 = "abc";
  const auto differences = fingerprint_difference(before, make_fingerprint(facts, environment));
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(differences[0].field, "model_sha256");
  EXPECT_EQ(differences[0].a, "null");
  EXPECT_EQ(differences[0].b, "abc");
}

}  // namespace
}  // namespace driftscope
