// SPDX-License-Identifier: Apache-2.0
// Whole checkpoints: tensors bound to the description, and what goes wrong.
#include "engine/model/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/model/checkpoint_builder.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckpointTest : public ::testing::Test {
 protected:
  void write(const json& config, const std::vector<BuiltTensor>& tensors) {
    write_checkpoint(m_directory, config, tensors);
  }
  void expect_refused(const std::string& reason) {
    const auto result = ModelCheckpoint::open(m_directory.path());
    ASSERT_FALSE(result.has_value()) << "accepted, expected: " << reason;
    EXPECT_EQ(result.error().kind, ErrorKind::malformed);
    EXPECT_THAT(result.error().message, HasSubstr(reason));
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  }
  static BuiltTensor& find(std::vector<BuiltTensor>& tensors, const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const BuiltTensor& tensor) { return tensor.name == name; });
  }
  TemporaryDirectory m_directory;
};

TEST_F(CheckpointTest, EveryArchitectureOpens) {
  for (const char* type : {"llama", "mistral", "qwen2", "qwen3"}) {
    const json config = small_config(type);
    write(config, small_tensors(config));
    const auto result = ModelCheckpoint::open(m_directory.path());
    ASSERT_TRUE(result.has_value()) << type << ": " << result.error().message;
    const ModelCheckpoint& checkpoint = **result;
    EXPECT_THAT(checkpoint.embedding().shape, ElementsAre(16, 8));
    EXPECT_THAT(checkpoint.lm_head().shape, ElementsAre(16, 8));
    EXPECT_THAT(checkpoint.final_norm().shape, ElementsAre(8));
    const LayerTensors& layer = checkpoint.layer(1);
    EXPECT_EQ(layer.q.name, "model.layers.1.self_attn.q_proj.weight");
    EXPECT_THAT(layer.k.shape, ElementsAre(4, 8));
    EXPECT_THAT(layer.down.shape, ElementsAre(8, 12));
    EXPECT_EQ(layer.q_bias.present(), std::string(type) == "qwen2");
    EXPECT_EQ(layer.q_norm.present(), std::string(type) == "qwen3");
    EXPECT_FALSE(layer.o_bias.present());
    EXPECT_FALSE(layer.up_bias.present());
  }
}

TEST_F(CheckpointTest, CountsParameters) {
  const json config = small_config("llama");
  write(config, small_tensors(config));
  const auto result = ModelCheckpoint::open(m_directory.path());
  ASSERT_TRUE(result.has_value());
  // Embedding and head 2 * 16 * 8, norm 8; per layer norms 16, q and o 64 each, k and v 32
  // each, three of 12 * 8.
  EXPECT_EQ((*result)->description().parameters(), 256 + 8 + 2 * (16 + 128 + 64 + 288));
}

TEST_F(CheckpointTest, BiasesOfLlama) {
  json config = small_config("llama");
  config["attention_bias"] = true;
  config["mlp_bias"] = true;
  write(config, small_tensors(config));
  const auto result = ModelCheckpoint::open(m_directory.path());
  ASSERT_TRUE(result.has_value()) << result.error().message;
  const LayerTensors& layer = (*result)->layer(0);
  EXPECT_THAT(layer.q_bias.shape, ElementsAre(8));
  EXPECT_THAT(layer.o_bias.shape, ElementsAre(8));
  EXPECT_THAT(layer.gate_bias.shape, ElementsAre(12));
  EXPECT_THAT(layer.down_bias.shape, ElementsAre(8));
}

TEST_F(CheckpointTest, TiedHeadIsTheEmbedding) {
  json config = small_config("qwen3");
  config["tie_word_embeddings"] = true;
  write(config, small_tensors(config));
  const auto result = ModelCheckpoint::open(m_directory.path());
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ((*result)->lm_head().data, (*result)->embedding().data);
}

TEST_F(CheckpointTest, NamesWithoutPrefix) {
  const json config = small_config("llama");
  write(config, small_tensors(config, ""));
  const auto result = ModelCheckpoint::open(m_directory.path());
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ((*result)->layer(0).q.name, "layers.0.self_attn.q_proj.weight");
}

TEST_F(CheckpointTest, DataOffTheElementSizeIsCopied) {
  const json config = small_config("llama");
  m_directory.write("config.json", config.dump());
  m_directory.write("model.safetensors", tensor_file(small_tensors(config), 1));
  const auto result = ModelCheckpoint::open(m_directory.path());
  ASSERT_TRUE(result.has_value()) << result.error().message;
  const auto address = reinterpret_cast<std::uintptr_t>((*result)->embedding().data);
  EXPECT_EQ(address % alignof(float), 0U);
  EXPECT_EQ(static_cast<const float*>((*result)->embedding().data)[127], 0.0F);
}

TEST_F(CheckpointTest, PathOfTheFileItself) {
  const json config = small_config("llama");
  write(config, small_tensors(config));
  EXPECT_TRUE(ModelCheckpoint::open(m_directory.path() / "model.safetensors").has_value());
}

TEST_F(CheckpointTest, RefusesWrongShapesWithTheKey) {
  const json config = small_config("llama");
  std::vector<BuiltTensor> tensors = small_tensors(config);
  find(tensors, "model.layers.1.mlp.up_proj.weight").shape = {10, 8};
  write(config, tensors);
  expect_refused(
      "tensor model.layers.1.mlp.up_proj.weight: shape [10, 8], expected [12, 8] from config.json "
      "intermediate_size");
  tensors = small_tensors(config);
  find(tensors, "model.norm.weight").shape = {8, 1};
  write(config, tensors);
  expect_refused("shape [8, 1], expected [8]");
}

TEST_F(CheckpointTest, RefusesMissingTensors) {
  const json config = small_config("llama");
  std::vector<BuiltTensor> tensors = small_tensors(config);
  std::erase_if(tensors, [](const BuiltTensor& tensor) { return tensor.name == "lm_head.weight"; });
  write(config, tensors);
  expect_refused("lm_head.weight is missing; set tie_word_embeddings");
  // Llama's layout described as Qwen2: the biases are not there.
  write(small_config("qwen2"), small_tensors(config));
  expect_refused("model.layers.0.self_attn.q_proj.bias is missing");
}

TEST_F(CheckpointTest, RefusesOtherElementTypesOnlyWhereTheyAreUsed) {
  const json config = small_config("llama");
  std::vector<BuiltTensor> tensors = small_tensors(config);
  tensors.push_back({"model.rotary_emb.positions", "I64", {4}});
  write(config, tensors);
  EXPECT_TRUE(ModelCheckpoint::open(m_directory.path()).has_value());
  find(tensors, "model.layers.0.self_attn.v_proj.weight").dtype = "I8";
  write(config, tensors);
  expect_refused("tensor model.layers.0.self_attn.v_proj.weight: dtype I8");
}

TEST_F(CheckpointTest, StoredTypeIsThatOfTheTensors) {
  const json config = small_config("llama");  // says float32
  std::vector<BuiltTensor> tensors = small_tensors(config);
  for (BuiltTensor& tensor : tensors) tensor.dtype = "BF16";
  write(config, tensors);
  const auto result = ModelCheckpoint::open(m_directory.path());
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ((*result)->description().stored_dtype, Dtype::bf16);
  EXPECT_EQ((*result)->embedding().bytes(), 16U * 8U * 2U);
}

TEST_F(CheckpointTest, RefusesMoreLayersThanTensors) {
  json config = small_config("llama");
  const std::vector<BuiltTensor> tensors = small_tensors(config);
  config["num_hidden_layers"] = 2147483647;
  write(config, tensors);
  expect_refused("num_hidden_layers 2147483647");
}

TEST_F(CheckpointTest, RefusesDirectoriesThatAreNone) {
  expect_refused("has no config.json");
  m_directory.write("config.json", "{");
  expect_refused("not valid JSON");
  m_directory.write("config.json", small_config("llama").dump());
  expect_refused("no model.safetensors and no model.safetensors.index.json");
  m_directory.write("pytorch_model.bin", "x");
  expect_refused("pytorch_model.bin is not read, convert it to safetensors");
  EXPECT_THAT(ModelCheckpoint::open(m_directory.path() / "none").error().message,
              HasSubstr("does not exist"));
  EXPECT_THAT(ModelCheckpoint::open(m_directory.path() / "pytorch_model.bin").error().message,
              HasSubstr("not a checkpoint directory"));
}

TEST_F(CheckpointTest, RefusesAFifoAsConfiguration) {
  ASSERT_EQ(::mkfifo((m_directory.path() / "config.json").c_str(), 0600), 0);
  expect_refused("FIFO");
}

TEST_F(CheckpointTest, RefusesCutWeights) {
  const json config = small_config("llama");
  const std::string file = tensor_file(small_tensors(config));
  m_directory.write("config.json", config.dump());
  m_directory.write("model.safetensors", file.substr(0, file.size() - 2));
  expect_refused("cut short");
}

TEST(SharedCheckpoints, OpenWithTheirShapes) {
  const fs::path root(DRIFTSCOPE_SHARED_DATA);
  if (!fs::exists(root)) GTEST_SKIP() << "no shared data at " << root;
  for (const char* folder : {"hf", "hf-bf16", "hf-f16"}) {
    const auto result = ModelCheckpoint::open(root / "models" / "stories260K" / folder);
    ASSERT_TRUE(result.has_value()) << result.error().message;
    EXPECT_EQ((*result)->description().parameters(), 260032);  // the model's published size
    EXPECT_THAT((*result)->description().eos, ElementsAre(TokenId{2}));
  }
  const fs::path architectures = root / "oracle" / "architectures";
  std::ifstream manifest_file(architectures / "MANIFEST.json");
  const json manifest = json::parse(manifest_file);
  for (const auto& [folder, facts] : manifest.at("models").items()) {
    const auto result = ModelCheckpoint::open(architectures / folder);
    ASSERT_TRUE(result.has_value()) << result.error().message;
    EXPECT_EQ((*result)->description().parameters(), facts.at("parameters")) << folder;
  }
}

}  // namespace
}  // namespace driftscope
