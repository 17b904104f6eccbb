// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: config.json, and the tensors that a checkpoint must hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/model/description.h"
#include "engine/model/weight_difference.h"
#include "tests/model/checkpoint_builder.h"

namespace driftscope {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
}

json with(json config, const char* key, json value) {
  config[key] = std::move(value);
  return config;
}

TEST(ExpertDescriptions, DefaultsAreThoseOfTheReference) {
  const ModelDescription mixtral = described(small_config("mixtral"));
  EXPECT_EQ(mixtral.moe.experts, 8);
  EXPECT_EQ(mixtral.moe.chosen, 2);
  EXPECT_EQ(mixtral.moe.intermediate, 12);  // intermediate_size
  EXPECT_TRUE(mixtral.moe.renormalise);
  EXPECT_EQ(mixtral.moe.shared_intermediate, 0);
  EXPECT_EQ(mixtral.sliding_window, 0);
  EXPECT_FALSE(mixtral.qkv_bias);

  const ModelDescription qwen2 = described(small_config("qwen2_moe"));
  EXPECT_EQ(qwen2.moe.experts, 60);
  EXPECT_EQ(qwen2.moe.chosen, 4);
  EXPECT_EQ(qwen2.moe.intermediate, 1408);
  EXPECT_EQ(qwen2.moe.shared_intermediate, 5632);
  EXPECT_FALSE(qwen2.moe.renormalise);
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.output_bias);
  EXPECT_FALSE(described(with(small_config("qwen2_moe"), "qkv_bias", false)).qkv_bias);

  const ModelDescription qwen3 = described(small_config("qwen3_moe"));
  EXPECT_EQ(qwen3.moe.experts, 128);
  EXPECT_EQ(qwen3.moe.chosen, 8);
  EXPECT_EQ(qwen3.moe.intermediate, 768);
  EXPECT_EQ(qwen3.moe.shared_intermediate, 0);
  EXPECT_TRUE(qwen3.qk_norm);
  EXPECT_FALSE(qwen3.qkv_bias);

  EXPECT_EQ(described(small_config("qwen3")).moe.experts, 0);
}

std::vector<bool> sparse_layers(const ModelDescription& d) {
  std::vector<bool> sparse;
  for (std::int64_t layer = 0; layer < d.layers; ++layer) sparse.push_back(d.moe.in_layer(layer));
  return sparse;
}

// (l + 1) % decoder_sparse_step == 0, and not in mlp_only_layers.
TEST(ExpertDescriptions, SayWhichLayersHaveExperts) {
  json config = with(small_config("qwen2_moe"), "num_hidden_layers", 6);
  EXPECT_EQ(sparse_layers(described(config)), (std::vector<bool>{1, 1, 1, 1, 1, 1}));
  config["mlp_only_layers"] = {4, 0, 99};
  EXPECT_EQ(sparse_layers(described(config)), (std::vector<bool>{0, 1, 1, 1, 0, 1}));
  config["decoder_sparse_step"] = 2;
  config["mlp_only_layers"] = {1};
  EXPECT_EQ(sparse_layers(described(config)), (std::vector<bool>{0, 0, 0, 1, 0, 1}));
  config["num_experts"] = 0;
  EXPECT_EQ(sparse_layers(described(config)), (std::vector<bool>{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(sparse_layers(described(small_config("mixtral"))), (std::vector<bool>{1, 1}));
  EXPECT_EQ(sparse_layers(described(small_config("qwen3"))), (std::vector<bool>{0, 0}));
}

TEST(ExpertDescriptions, RefuseTheImpossible) {
  expect_refused(with(small_config("mixtral"), "num_experts_per_tok", 9),
                 "num_experts_per_tok 9 is more than num_local_experts 8");
  expect_refused(with(small_config("qwen3_moe"), "num_experts", -1), "num_experts");
  expect_refused(with(small_config("qwen3_moe"), "decoder_sparse_step", 0), "decoder_sparse_step");
  expect_refused(with(small_config("qwen3_moe"), "mlp_only_layers", 3), "mlp_only_layers is 3");
  expect_refused(with(small_config("qwen3_moe"), "mlp_only_layers", {1, "x"}),
                 "mlp_only_layers has \"x\"");
  expect_refused(with(small_config("qwen2_moe"), "shared_expert_intermediate_size", "wide"),
                 "shared_expert_intermediate_size");
}

json expert_config(const std::string& type) {
  json config = small_config(type);
  config[type == "mixtral" ? "num_local_experts" : "num_experts"] = 3;
  config["num_experts_per_tok"] = 2;
  config["moe_intermediate_size"] = 5;
  config["shared_expert_intermediate_size"] = 7;
  return config;
}

// Layer 0 of the other tensors stays as it is; written out from the published layout.
std::vector<BuiltTensor> expert_tensors(const std::string& type) {
  json dense = small_config(type == "qwen2_moe"   ? "qwen2"
                            : type == "qwen3_moe" ? "qwen3"
                                                  : "llama");
  std::vector<BuiltTensor> tensors = small_tensors(dense);
  std::erase_if(tensors, [](const BuiltTensor& tensor) {
    return tensor.name.find(".mlp.") != std::string::npos;
  });
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
      tensors.push_back({layer + name, "F32", std::move(shape)});
    };
    const bool mixtral = type == "mixtral";
    add(mixtral ? "block_sparse_moe.gate.weight" : "mlp.gate.weight", {3, 8});
    for (const char* number : {"0", "1", "2"}) {
      if (mixtral) {
        const std::string expert = std::string("block_sparse_moe.experts.") + number;
        add(expert + ".w1.weight", {12, 8});
        add(expert + ".w2.weight", {8, 12});
        add(expert + ".w3.weight", {12, 8});
        continue;
      }
      const std::string expert = std::string("mlp.experts.") + number;
      add(expert + ".gate_proj.weight", {5, 8});
      add(expert + ".up_proj.weight", {5, 8});
      add(expert + ".down_proj.weight", {8, 5});
    }
    if (type != "qwen2_moe") continue;
    add("mlp.shared_expert.gate_proj.weight", {7, 8});
    add("mlp.shared_expert.up_proj.weight", {7, 8});
    add("mlp.shared_expert.down_proj.weight", {8, 7});
    add("mlp.shared_expert_gate.weight", {1, 8});
  }
  return tensors;
}

class ExpertCheckpoint : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] Result<std::shared_ptr<const ModelCheckpoint>> open(
      const json& config, const std::vector<BuiltTensor>& tensors) {
    write_checkpoint(m_directory, config, tensors);
    return ModelCheckpoint::open(m_directory.path());
  }
  TemporaryDirectory m_directory;
};

TEST_P(ExpertCheckpoint, BindsEveryTensor) {
  const std::string type = GetParam();
  const auto tensors = expert_tensors(type);
  const auto opened = open(expert_config(type), tensors);
  ASSERT_TRUE(opened) << opened.error().message;
  const LayerTensors& layer = (*opened)->layer(1);
  EXPECT_FALSE(layer.gate.present());
  EXPECT_THAT(layer.router.shape, ElementsAre(3, 8));
  ASSERT_EQ(layer.experts.size(), 3U);
  const std::int64_t width = type == "mixtral" ? 12 : 5;
  EXPECT_THAT(layer.experts[2].gate.shape, ElementsAre(width, 8));
  EXPECT_THAT(layer.experts[2].down.shape, ElementsAre(8, width));
  EXPECT_EQ(layer.experts[1].up.name, type == "mixtral"
                                          ? "model.layers.1.block_sparse_moe.experts.1.w3.weight"
                                          : "model.layers.1.mlp.experts.1.up_proj.weight");
  EXPECT_EQ(layer.shared_weight.present(), type == "qwen2_moe");
  std::int64_t elements = 0;
  for (const BuiltTensor& tensor : tensors) {
    std::int64_t product = 1;
    for (const std::int64_t size : tensor.shape) product *= size;
    elements += product;
  }
  EXPECT_EQ((*opened)->description().parameters(), elements);
  // Every tensor is looked at when weights are compared.
  EXPECT_EQ(weight_difference(**opened, **opened).tensors,
            static_cast<std::int64_t>(tensors.size()));
}

TEST_P(ExpertCheckpoint, NamesWhatIsMissingOrOfAnotherShape) {
  const std::string type = GetParam();
  auto tensors = expert_tensors(type);
  const std::string lost = type == "mixtral" ? "model.layers.1.block_sparse_moe.experts.2.w2.weight"
                                             : "model.layers.1.mlp.experts.2.down_proj.weight";
  std::erase_if(tensors, [&](const BuiltTensor& tensor) { return tensor.name == lost; });
  auto opened = open(expert_config(type), tensors);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("tensor " + lost + " is missing"));
  tensors = expert_tensors(type);
  for (BuiltTensor& tensor : tensors) {
    if (tensor.name.ends_with(".gate.weight")) tensor.shape = {4, 8};
  }
  opened = open(expert_config(type), tensors);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("shape [4, 8], expected [3, 8]"));
  json many = expert_config(type);
  many[type == "mixtral" ? "num_local_experts" : "num_experts"] = 2000000000;
  opened = open(many, expert_tensors(type));
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("2000000000 experts cannot be"));
}

INSTANTIATE_TEST_SUITE_P(Types, ExpertCheckpoint,
                         ::testing::Values("mixtral", "qwen2_moe", "qwen3_moe"));

}  // namespace
}  // namespace driftscope
