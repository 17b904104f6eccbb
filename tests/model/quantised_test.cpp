// SPDX-License-Identifier: Apache-2.0
// Quantised layouts: tiny checkpoints that an independent packer wrote (quantised_vectors.py), and
// values computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/model/checkpoint.h"
#include "engine/model/quantised_config.h"
#include "engine/model/quantised_source.h"
#include "tests/model/quantised_vectors.h"
#include "tests/model/temporary_directory.h"

namespace driftscope {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// In pieces that begin and end inside of words, groups and rows.
std::vector<float> values_of(const TensorView& view, std::int64_t piece) {
  std::vector<float> values(static_cast<std::size_t>(view.elements()));
  for (std::int64_t at = 0; at < view.elements(); at += piece) {
    view.values(at, std::min(piece, view.elements() - at), values.data() + at);
  }
  return values;
}

void expect_values(const TensorView& view, const json& expected) {
  ASSERT_TRUE(view.present());
  ASSERT_EQ(view.shape, expected.at("shape").get<std::vector<std::int64_t>>()) << view.name;
  ASSERT_NE(view.decoder, nullptr) << view.name;
  for (const std::int64_t piece : {std::int64_t{7}, view.elements()}) {
    const std::vector<float> values = values_of(view, piece);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(values[i], expected.at("first")[i].get<float>()) << view.name << " " << i;
    }
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()),
                                 values.size() * sizeof(float));
    EXPECT_EQ(sha256_of_bytes(bytes), expected.at("sha256").get<std::string>()) << view.name;
  }
}

class QuantisedCheckpoint : public ::testing::TestWithParam<std::string> {
 protected:
  const json& model() const { return quantised_vector(GetParam()); }
};

TEST_P(QuantisedCheckpoint, HoldsTheValuesThatWerePacked) {
  TemporaryDirectory directory;
  write_quantised_model(directory.path(), GetParam());
  const auto checkpoint = ModelCheckpoint::open(directory.path());
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  const LayerTensors& layer = (*checkpoint)->layer(0);
  for (const TensorView* view :
       {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down}) {
    expect_values(*view, model().at("expected").at(view->name));
  }
  EXPECT_EQ((*checkpoint)->embedding().decoder, nullptr);
  EXPECT_FALSE((*checkpoint)->quantisation().method.empty());
  EXPECT_EQ((*checkpoint)->quantisation().scale_files,
            std::vector<std::string>{"model.safetensors"});
}

INSTANTIATE_TEST_SUITE_P(Layouts, QuantisedCheckpoint,
                         ::testing::Values("gptq4_reordered", "gptq4_v2", "gptq8_one_group",
                                           "gptq3", "gptq2", "awq", "fp8_tensor", "fp8_channel",
                                           "fp8_block", "ct_int8", "ct_int8_zero_points", "ct_fp8",
                                           "ct_int4_group", "ct_int4_reordered", "ct_int8_packed"),
                         [](const auto& test) { return test.param; });

TEST(Quantised, ExpertsInMxfp4ShowThemselvesAsTheFloatTensor) {
  TemporaryDirectory directory;
  const json& expected = quantised_vectors().at("mxfp4");
  directory.write("model.safetensors", raw_file(tensors_of(expected.at("tensors"))));
  auto stored = open_safetensors_source(directory.path());
  ASSERT_TRUE(stored.has_value()) << stored.error().message;
  const auto source = make_quantised_source(
      std::move(*stored), {.method = QuantisedMethod::mxfp4, .text = "MXFP4 experts"});
  const std::string name = "model.layers.0.mlp.experts.gate_up_proj";
  EXPECT_TRUE(source->contains(name));
  const auto view = source->find(name);
  ASSERT_TRUE(view.has_value()) << view.error().message;
  expect_values(*view, expected.at("expected").at(name));
}

// --- by hand ---

std::string words(std::initializer_list<std::uint32_t> list) {
  std::string bytes;
  for (const std::uint32_t word : list) {
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>((word >> (8 * i)) & 0xFFU));
  }
  return bytes;
}

std::string halves(std::initializer_list<std::uint16_t> list) {
  std::string bytes;
  for (const std::uint16_t half : list) {
    bytes.push_back(static_cast<char>(half & 0xFFU));
    bytes.push_back(static_cast<char>(half >> 8U));
  }
  return bytes;
}

Result<TensorView> find_in(const TemporaryDirectory& directory, const QuantisedConfig& config,
                           std::unique_ptr<TensorSource>& keep,
                           const std::vector<RawTensor>& tensors) {
  directory.write("model.safetensors", raw_file(tensors));
  auto stored = open_safetensors_source(directory.path());
  if (!stored) return tl::unexpected(stored.error());
  keep = make_quantised_source(std::move(*stored), config);
  return keep->find("x.weight");
}

// 8 inputs, 8 outputs, one group. Column 0 of the words: codes 0 1 2 3 4 5 6 7 of output 0.
std::vector<RawTensor> gptq_by_hand(std::uint32_t zeros) {
  return {{"x.qweight", "I32", {1, 8}, words({0x76543210U, 0, 0, 0, 0, 0, 0, 0xFFFFFFFFU})},
          {"x.qzeros", "I32", {1, 1}, words({zeros})},
          {"x.scales",
           "F16",
           {1, 8},
           halves({0x3800, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x4000})}};
}

TEST(Quantised, GptqZeroIsOneMoreThanStored) {
  TemporaryDirectory directory;
  std::unique_ptr<TensorSource> source;
  QuantisedConfig config{.method = QuantisedMethod::gptq, .bits = 4};
  config.stored_zero_is_one_less = true;
  // Zeros stored as 2 for output 0, 14 for output 7: they count as 3 and 15.
  auto view = find_in(directory, config, source, gptq_by_hand(0xE0000002U));
  ASSERT_TRUE(view.has_value()) << view.error().message;
  ASSERT_EQ(view->shape, (std::vector<std::int64_t>{8, 8}));
  std::vector<float> values = values_of(*view, 64);
  const std::vector<float> first(values.begin(), values.begin() + 8);
  EXPECT_EQ(first, (std::vector<float>{-1.5F, -1.0F, -0.5F, 0.0F, 0.5F, 1.0F, 1.5F, 2.0F}));
  EXPECT_EQ(values[63], 0.0F);  // (15 - 15) * 2
  config.stored_zero_is_one_less = false;
  view = find_in(directory, config, source, gptq_by_hand(0xE0000002U));
  ASSERT_TRUE(view.has_value());
  values = values_of(*view, 64);
  EXPECT_EQ(values[0], -1.0F);  // (0 - 2) * 0.5
  EXPECT_EQ(values[63], 2.0F);  // (15 - 14) * 2
}

TEST(Quantised, AwqColumnsLieInTheirOwnOrder) {
  TemporaryDirectory directory;
  std::unique_ptr<TensorSource> source;
  const QuantisedConfig config{.method = QuantisedMethod::awq, .bits = 4};
  // Two inputs, eight outputs; the word's half-bytes from the lowest belong to outputs
  // 0 2 4 6 1 3 5 7.
  const auto view =
      find_in(directory, config, source,
              {{"x.qweight", "I32", {2, 1}, words({0x76543210U, 0x0000000FU})},
               {"x.qzeros", "I32", {1, 1}, words({0x00000001U})},
               {"x.scales",
                "F16",
                {1, 8},
                halves({0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00})}});
  ASSERT_TRUE(view.has_value()) << view.error().message;
  const std::vector<float> expected{-1, 14, 4, 0, 1, 0, 5, 0, 2, 0, 6, 0, 3, 0, 7, 0};
  EXPECT_EQ(values_of(*view, 3), expected);
}

TEST(Quantised, Fp8CodesAndBlocks) {
  TemporaryDirectory directory;
  std::unique_ptr<TensorSource> source;
  QuantisedConfig config{.method = QuantisedMethod::fp8, .block_rows = 1, .block_columns = 2};
  const auto one_each = words({0x3F800000U, 0x40000000U, 0x3F000000U, 0x3E800000U});
  // 0x38 = 1, 0x7E = 448, 0x01 = 2^-9, 0xB8 = -1, 0x00 = 0, 0x40 = 2
  const auto view = find_in(directory, config, source,
                            {{"x.weight", "F8_E4M3", {2, 3}, "\x38\x7E\x01\xB8\x38\x40"},
                             {"x.weight_scale_inv", "F32", {2, 2}, one_each}});
  ASSERT_TRUE(view.has_value()) << view.error().message;
  EXPECT_EQ(values_of(*view, 6),
            (std::vector<float>{1.0F, 448.0F, 0.00390625F, -0.5F, 0.5F, 0.5F}));
}

TEST(Quantised, E5m2IsTheUpperHalfOfAnF16) {
  TemporaryDirectory directory;
  std::unique_ptr<TensorSource> source;
  const QuantisedConfig config{.method = QuantisedMethod::fp8};
  const auto view = find_in(directory, config, source,
                            {{"x.weight", "F8_E5M2", {1, 3}, std::string("\x3C\xC1\x01", 3)},
                             {"x.weight_scale", "F32", {}, words({0x40000000U})}});
  ASSERT_TRUE(view.has_value()) << view.error().message;
  // 1, -2.5 and 2^-16, times 2.
  EXPECT_EQ(values_of(*view, 3), (std::vector<float>{2.0F, -5.0F, 0.000030517578125F}));
}

// Read as if they were not needed, both would give other weights without a word.
TEST(Quantised, ZeroPointsAndOrdersThatTheConfigNamesMustBeThere) {
  const auto read = [](const char* weights) {
    const auto config = read_quantised_config(
        nlohmann::json::parse(std::string(R"({"quantization_config":{"quant_method":)") +
                              R"("compressed-tensors","format":"pack-quantized","config_groups":)" +
                              R"({"group_0":{"targets":["Linear"],"weights":)" + weights + "}}}}"),
        "config.json");
    EXPECT_TRUE(config) << (config ? "" : config.error().message);
    return config.value_or(QuantisedConfig{});
  };
  const auto asymmetric = read(R"({"num_bits":8,"symmetric":false,"strategy":"channel"})");
  EXPECT_TRUE(asymmetric.zeros_required);
  EXPECT_FALSE(read(R"({"num_bits":8,"symmetric":true,"strategy":"channel"})").zeros_required);
  EXPECT_TRUE(
      read(R"({"num_bits":4,"strategy":"group","group_size":8,"actorder":"group"})").reordered);
  EXPECT_FALSE(
      read(R"({"num_bits":4,"strategy":"group","group_size":8,"actorder":"weight"})").reordered);
  TemporaryDirectory directory;
  std::unique_ptr<TensorSource> source;
  const auto view = find_in(directory, asymmetric, source,
                            {{"x.weight", "I8", {1, 4}, std::string(4, '\1')},
                             {"x.weight_scale", "F32", {1, 1}, words({0x3F800000U})}});
  ASSERT_FALSE(view);
  EXPECT_THAT(view.error().message, HasSubstr("weight_zero_point is missing"));
}

TEST(Quantised, PartsThatDoNotFitAreRefusedByName) {
  TemporaryDirectory directory;
  std::unique_ptr<TensorSource> source;
  QuantisedConfig config{.method = QuantisedMethod::gptq, .bits = 4};
  const auto message = [&](std::vector<RawTensor> tensors) {
    const auto view = find_in(directory, config, source, tensors);
    return view ? std::string("accepted") : view.error().message;
  };
  auto tensors = gptq_by_hand(0);
  tensors.pop_back();
  EXPECT_THAT(message(tensors), HasSubstr("x.scales is missing"));
  tensors = gptq_by_hand(0);
  tensors[1].shape = {1, 1};
  tensors[1].dtype = "F32";
  EXPECT_THAT(message(tensors), HasSubstr("x.qzeros has dtype F32, expected I32"));
  tensors = gptq_by_hand(0);
  tensors.push_back({"x.g_idx", "I32", {8}, words({0, 0, 0, 1, 0, 0, 0, 0})});
  EXPECT_THAT(message(tensors), HasSubstr("x.g_idx has group 1 at input 3, there are 1 groups"));
  tensors.back().bytes = words({0, 0, 0, 0xFFFFFFFFU, 0, 0, 0, 0});
  EXPECT_THAT(message(tensors), HasSubstr("x.g_idx has group -1 at input 3"));
  config.group_size = 4;
  EXPECT_THAT(message(gptq_by_hand(0)), HasSubstr("expected [2, 8] from group_size 4"));
  config = {.method = QuantisedMethod::fp8};
  EXPECT_THAT(message({{"x.weight", "F8_E4M3", {1, 3}, "abc"}}),
              HasSubstr("x.weight_scale is missing"));
  EXPECT_THAT(message({{"x.weight", "F8_E4M3", {2, 2}, "abcd"},
                       {"x.weight_scale", "F32", {3}, words({0, 0, 0})}}),
              HasSubstr("scales have shape [3]"));
}

TEST(QuantisedConfig, RefusesByNameWhatItCannotRead) {
  const auto message = [](const json& quantisation) {
    const auto config =
        read_quantised_config({{"quantization_config", quantisation}}, "config.json");
    return config ? std::string("accepted") : config.error().message;
  };
  EXPECT_THAT(message({{"quant_method", "bitsandbytes"}}),
              HasSubstr("quant_method \"bitsandbytes\" is not supported; supported are gptq, awq"));
  EXPECT_THAT(message({{"quant_method", "gptq"}}), HasSubstr("bits is missing"));
  EXPECT_THAT(message({{"quant_method", "gptq"}, {"bits", 5}}), HasSubstr("bits 5"));
  EXPECT_THAT(message({{"quant_method", "gptq"}, {"bits", 4}, {"checkpoint_format", "marlin"}}),
              HasSubstr("checkpoint_format \"marlin\" is not supported"));
  EXPECT_THAT(message({{"quant_method", "awq"}, {"bits", 4}, {"version", "gemv"}}),
              HasSubstr("version \"gemv\" is not supported"));
  EXPECT_THAT(message({{"quant_method", "fp8"}, {"weight_block_size", {128}}}),
              HasSubstr("weight_block_size"));
  EXPECT_THAT(message({{"quant_method", "compressed-tensors"}, {"format", "nvfp4-pack-quantized"}}),
              HasSubstr("format \"nvfp4-pack-quantized\" is not supported"));
  EXPECT_THAT(message(7), HasSubstr("not an object"));
  EXPECT_EQ(message(nullptr), "accepted");
}

TEST(QuantisedConfig, SaysWhatTheActivationsWereMadeFor) {
  const auto config = read_quantised_config(
      {{"quantization_config", {{"quant_method", "fp8"}, {"activation_scheme", "static"}}}},
      "config.json");
  ASSERT_TRUE(config.has_value());
  EXPECT_THAT(config->activations, HasSubstr("input_scale"));
}

}  // namespace
}  // namespace driftscope
