// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/host_weights.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

std::vector<float> widened(const WeightView& view) {
  std::vector<float> values(static_cast<std::size_t>(view.rows * view.columns));
  widen(view.dtype, view.data, values.data(), values.size());
  return values;
}

const NamedTensor& named(const std::vector<NamedTensor>& tensors, const std::string& name) {
  for (const NamedTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  throw std::runtime_error("no tensor " + name);
}

class StorageOf : public testing::TestWithParam<WeightStorage> {};
INSTANTIATE_TEST_SUITE_P(Both, StorageOf,
                         testing::Values(WeightStorage::copied, WeightStorage::mapped));

TEST_P(StorageOf, CheckpointKeepsTheStoredBits) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    const auto checkpoint = tiny_checkpoint({.type = "qwen2", .dtype = dtype});
    const auto weights = HostWeights::load(checkpoint, {.storage = GetParam()});
    ASSERT_TRUE(weights);
    EXPECT_EQ((*weights)->storage(), GetParam());
    for (std::int64_t i = 0; i < checkpoint->description().layers; ++i) {
      const HostLayer& layer = (*weights)->layer(i);
      const LayerTensors& stored = checkpoint->layer(i);
      const std::pair<const TensorView*, const Linear*> pairs[] = {
          {&stored.q, &layer.q},      {&stored.k, &layer.k},       {&stored.v, &layer.v},
          {&stored.o, &layer.o},      {&stored.gate, &layer.gate}, {&stored.up, &layer.up},
          {&stored.down, &layer.down}};
      for (const auto& [tensor, linear] : pairs) {
        EXPECT_EQ(linear->weight.dtype, dtype);
        EXPECT_EQ(std::memcmp(linear->weight.data, tensor->data, tensor->bytes()), 0);
      }
    }
  }
}

TEST_P(StorageOf, OtherTypesAreRoundedOnceFromTheStoredValue) {
  const TinyModel model{.type = "qwen2", .dtype = Dtype::f32};
  const auto tensors = random_tensors(model);
  const auto checkpoint = open_tensors(model, tensors);
  const auto weights =
      HostWeights::load(checkpoint, {.weights = WeightDtype::bf16, .storage = GetParam()});
  ASSERT_TRUE(weights);
  const HostLayer& layer = (*weights)->layer(1);
  EXPECT_EQ(layer.k.weight.dtype, Dtype::bf16);
  const auto rounded = [&](const std::string& name) {
    std::vector<float> values = named(tensors, name).values;
    for (float& value : values) value = bf16_to_float(bf16_from_float(value));
    return values;
  };
  EXPECT_EQ(widened(layer.k.weight), rounded("model.layers.1.self_attn.k_proj.weight"));
  EXPECT_EQ(layer.k.bias, rounded("model.layers.1.self_attn.k_proj.bias"));
  EXPECT_EQ(layer.ffn_norm, rounded("model.layers.1.post_attention_layernorm.weight"));
  EXPECT_EQ(widened((*weights)->embedding()), rounded("model.embed_tokens.weight"));
  // The LM head has a knob of its own, here left at the stored type.
  EXPECT_EQ((*weights)->lm_head().dtype, Dtype::f32);
  EXPECT_EQ(widened((*weights)->lm_head()), named(tensors, "lm_head.weight").values);
}

TEST(HostWeights, StackedMatricesAreTheirPartsOneAfterAnother) {
  const TinyModel model{.type = "qwen2"};
  const auto weights = HostWeights::load(tiny_checkpoint(model), {.stacked = true});
  ASSERT_TRUE(weights);
  const HostLayer& layer = (*weights)->layer(2);
  std::vector<float> expected = widened(layer.q.weight);
  for (const Linear* part : {&layer.k, &layer.v}) {
    const auto values = widened(part->weight);
    expected.insert(expected.end(), values.begin(), values.end());
  }
  EXPECT_EQ(widened(layer.qkv.weight), expected);
  std::vector<float> bias = layer.q.bias;
  bias.insert(bias.end(), layer.k.bias.begin(), layer.k.bias.end());
  bias.insert(bias.end(), layer.v.bias.begin(), layer.v.bias.end());
  EXPECT_EQ(layer.qkv.bias, bias);
  EXPECT_TRUE(layer.gate_up.bias.empty());
  EXPECT_EQ(layer.gate_up.weight.rows, 2 * model.intermediate);
}

TEST(HostWeights, TiedEmbeddingsAreHeldOnceUnlessTheirTypesDiffer) {
  const auto checkpoint = tiny_checkpoint({.tied = true, .dtype = Dtype::f32});
  const auto same = HostWeights::load(checkpoint, {});
  EXPECT_EQ((*same)->embedding().data, (*same)->lm_head().data);
  const auto differ = HostWeights::load(checkpoint, {.lm_head = WeightDtype::bf16});
  EXPECT_NE((*differ)->embedding().data, (*differ)->lm_head().data);
  EXPECT_EQ((*differ)->lm_head().dtype, Dtype::bf16);
}

TEST(WeightCache, SharesEqualWishesAndOnlyThose) {
  const auto checkpoint = tiny_checkpoint({});
  WeightCache cache;
  const auto first = *cache.get(checkpoint, {});
  EXPECT_EQ(first, *cache.get(checkpoint, {}));
  EXPECT_EQ(first, *cache.get(checkpoint, {.stacked = true}));  // copies are always stacked
  EXPECT_NE(first, *cache.get(checkpoint, {.weights = WeightDtype::f16}));
  EXPECT_NE(first, *cache.get(checkpoint, {.lm_head = WeightDtype::f16}));
  EXPECT_NE(first, *cache.get(tiny_checkpoint({.seed = 2}), {}));
}

TEST(WeightCache, MappedWeightsAreLoadedAgainWhereStackingIsNeeded) {
  const auto checkpoint = tiny_checkpoint({});
  WeightCache cache;
  const auto plain = *cache.get(checkpoint, {.storage = WeightStorage::mapped});
  EXPECT_EQ(plain->layer(0).qkv.weight.data, nullptr);
  const auto stacked = *cache.get(checkpoint, {.stacked = true, .storage = WeightStorage::mapped});
  EXPECT_NE(stacked->layer(0).qkv.weight.data, nullptr);
}

TEST(HugeArena, PiecesAreAlignedZeroedAndApart) {
  HugeArena arena;
  std::vector<std::byte*> pieces;
  for (const std::size_t bytes : {1U, 63U, 64U, 100000U, 70U << 20U}) {
    auto piece = arena.allocate(bytes);
    ASSERT_TRUE(piece);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*piece) % 64, 0U);
    auto* data = static_cast<std::byte*>(*piece);
    EXPECT_EQ(data[0], std::byte{0});
    EXPECT_EQ(data[bytes - 1], std::byte{0});
    std::memset(data, static_cast<int>(pieces.size() + 1), bytes);
    pieces.push_back(data);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i][0], static_cast<std::byte>(i + 1));
  }
}

}  // namespace
}  // namespace driftscope::test
