// SPDX-License-Identifier: Apache-2.0
// GGUF files that are right: what is read, and how metadata becomes a description.
#include "engine/model/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "engine/model/checkpoint.h"
#include "engine/model/gguf_fields.h"
#include "tests/model/checkpoint_builder.h"
#include "tests/model/gguf_builder.h"
#include "tests/model/temporary_directory.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Views point into the map that the checkpoint owns, which outlives the file's name.
std::shared_ptr<const ModelCheckpoint> open_bytes(const GgufBuilder& file) {
  const TemporaryDirectory directory;
  auto result = ModelCheckpoint::open(directory.write("model.gguf", file.bytes()));
  if (!result) {
    ADD_FAILURE() << result.error().message;
    return nullptr;
  }
  return *result;
}

std::vector<float> values_of(const TensorView& view) {
  std::vector<float> values(static_cast<std::size_t>(view.elements()));
  view.values(0, view.elements(), values.data());
  return values;
}

TEST(Gguf, ReadsEveryKindOfValue) {
  GgufBuilder file;
  file.add("a.u8", 0, "\xff");
  file.add("a.i8", 1, "\xff");
  file.add("a.i16", 3, "\xfe\xff");
  file.add_u32("a.u32", 7);
  file.add_f32("a.f32", 0.1F);
  file.add_flag("a.flag", true);
  file.add_text("a.text", "x y");
  file.add("a.u64", 10, u64_bytes(std::uint64_t{1} << 31));
  file.add("a.i64", 11, u64_bytes(9));
  file.add("a.f64", 12, u64_bytes(0x3fe0000000000000));  // 0.5
  file.add_texts("a.texts", {"one", "", "three"});
  file.add_f32s("a.floats", {1.5F, -2.0F});
  file.add("a.list", 9, u32_text(5) + u64_bytes(2) + u32_text(3) + u32_text(0xffffffff));
  file.add("a.same", 9, u32_text(4) + u64_bytes(2) + u32_text(6) + u32_text(6));
  const std::string bytes = file.bytes();
  const auto header = parse_gguf(bytes, "x.gguf");
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->version, 3U);
  GgufFields fields(*header, "x.gguf");
  EXPECT_EQ(fields.whole("a.u8"), 255);
  EXPECT_EQ(fields.count("a.u32"), 7);
  EXPECT_EQ(fields.count("a.i64"), 9);
  EXPECT_EQ(fields.count("a.same"), 6);      // one value for every layer
  EXPECT_EQ(fields.positive("a.f32"), 0.1);  // not the f32 widened, 0.10000000149
  EXPECT_EQ(fields.positive("a.f64"), 0.5);
  EXPECT_TRUE(fields.flag("a.flag", false));
  EXPECT_EQ(fields.text("a.text"), "x y");
  EXPECT_THAT(fields.texts("a.texts"), ElementsAre("one", "", "three"));
  EXPECT_THAT(fields.floats("a.floats"), ElementsAre(1.5F, -2.0F));
  EXPECT_THAT(fields.integers("a.list"), ElementsAre(3, -1));
  EXPECT_EQ(fields.whole("a.none", 4), 4);
  EXPECT_TRUE(fields.texts("a.none").empty());
  ASSERT_TRUE(fields.good());
  EXPECT_EQ(fields.id("a.i8"), std::nullopt);  // -1: there is none
  ASSERT_TRUE(fields.good());
  static_cast<void>(fields.floats("a.texts"));
  ASSERT_FALSE(fields.good());
  EXPECT_THAT(fields.failure().value().message, HasSubstr("metadata a.texts at byte"));
  EXPECT_THAT(fields.failure().value().message,
              HasSubstr("is a list of string, not a list of f32"));
}

TEST(Gguf, ReadsVersion2AndOtherAlignments) {
  GgufBuilder file = small_llama();
  file.version = 2;
  file.alignment = 128;
  file.add_u32("general.alignment", 128);
  const auto checkpoint = open_bytes(file);
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_EQ(values_of(checkpoint->embedding())[0], 1.0F / 1024.0F);
}

TEST(Gguf, DescribesAndBindsALlama) {
  GgufBuilder file = small_llama();
  file.add_u32("tokenizer.ggml.bos_token_id", 1);
  file.add_u32("tokenizer.ggml.eos_token_id", 2);
  file.add_u32("tokenizer.ggml.eot_token_id", 5);
  const auto checkpoint = open_bytes(file);
  ASSERT_NE(checkpoint, nullptr);
  const ModelDescription& d = checkpoint->description();
  EXPECT_EQ(d.model_type, "llama");
  EXPECT_EQ(d.hidden, 8);
  EXPECT_EQ(d.head_dim, 4);
  EXPECT_EQ(d.vocabulary, 16);
  EXPECT_EQ(d.rms_epsilon, 1e-5);
  EXPECT_TRUE(d.tied_embeddings);
  EXPECT_FALSE(d.qkv_bias);
  EXPECT_EQ(d.bos, TokenId{1});
  EXPECT_THAT(d.eos, ElementsAre(TokenId{2}, TokenId{5}));
  EXPECT_TRUE(checkpoint->lm_head().same_storage(checkpoint->embedding()));
  EXPECT_EQ(checkpoint->weight_formats(), "F32 20");
  // The bytes themselves, where rows are not permuted.
  EXPECT_NE(checkpoint->embedding().data, nullptr);
  EXPECT_EQ(values_of(checkpoint->layer(0).v).size(), 32U);
}

TEST(Gguf, UndoesTheOrderOfRowsForRotation) {
  const auto checkpoint = open_bytes(small_llama());
  ASSERT_NE(checkpoint, nullptr);
  // Rows of the file: 0 … 7 of 8 values each; the tensor begins after 128 + 8 + 8 + 8 values.
  const auto values = values_of(checkpoint->layer(0).q);
  std::vector<int> rows;
  for (std::size_t row = 0; row < 8; ++row) {
    rows.push_back(static_cast<int>(std::lround(values[8 * row] * 1024.0F)) - 153);
  }
  // Two heads of 4 rows, in each first the even ones.
  EXPECT_THAT(rows, ElementsAre(0, 16, 8, 24, 32, 48, 40, 56));
  EXPECT_EQ(checkpoint->layer(0).q.dtype, Dtype::f32);
}

TEST(Gguf, ReadsRotation) {
  GgufBuilder file = small_llama();
  file.add_f32("llama.rope.freq_base", 500000.0F);
  file.tensors.push_back({"rope_freqs.weight", {2}, 0, f32_text(1.0F) + f32_text(4.0F)});
  auto checkpoint = open_bytes(file);
  ASSERT_NE(checkpoint, nullptr);
  const ModelDescription& d = checkpoint->description();
  EXPECT_EQ(d.rope_theta, 500000.0);
  EXPECT_EQ(d.rope_scaling.kind, RopeScaling::Kind::divisors);
  EXPECT_THAT(d.rope_scaling.short_divisors, ElementsAre(1.0, 4.0));

  file = small_llama();
  file.add_text("llama.rope.scaling.type", "yarn");
  file.add_f32("llama.rope.scaling.factor", 8.0F);
  file.add_u32("llama.rope.scaling.original_context_length", 16);
  file.add_f32("llama.rope.scaling.yarn_beta_fast", 20.0F);
  checkpoint = open_bytes(file);
  ASSERT_NE(checkpoint, nullptr);
  const RopeScaling& yarn = checkpoint->description().rope_scaling;
  EXPECT_EQ(yarn.kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(yarn.factor, 8.0);
  EXPECT_EQ(yarn.original_max_positions, 16);
  EXPECT_EQ(yarn.beta_fast, 32.0);  // never read for llama
  EXPECT_NEAR(yarn.attention_factor, 0.1 * std::log(8.0) + 1.0, 1e-15);
}

TEST(Gguf, ReadsSplitModelsFromAnyPart) {
  const TemporaryDirectory directory;
  const auto u16 = [](char value) { return std::string{value, '\0'}; };
  GgufBuilder whole = small_llama();
  GgufBuilder first = whole;
  first.tensors.resize(7);
  first.add("split.no", 2, u16(0));
  first.add("split.count", 2, u16(2));
  GgufBuilder second;
  second.tensors.assign(whole.tensors.begin() + 7, whole.tensors.end());
  second.add("split.no", 2, u16(1));
  second.add("split.count", 2, u16(2));
  const fs::path path_1 = directory.write("m-00001-of-00002.gguf", first.bytes());
  const fs::path path_2 = directory.write("m-00002-of-00002.gguf", second.bytes());
  for (const fs::path& path : {path_1, path_2}) {
    const auto result = ModelCheckpoint::open(path);
    ASSERT_TRUE(result.has_value()) << result.error().message;
    const auto values = values_of((*result)->layer(1).down);
    EXPECT_EQ(values.size(), 96U);
    EXPECT_EQ(values.back(), values_of(open_bytes(whole)->layer(1).down).back());
    EXPECT_EQ((*result)->files()->size(), 2U);
  }
  fs::remove(path_2);
  const auto missing = ModelCheckpoint::open(path_1);
  ASSERT_FALSE(missing.has_value());
  EXPECT_THAT(missing.error().message, HasSubstr("m-00002-of-00002.gguf"));
}

// Every prefix and many single flipped bytes: a message of one line or a checkpoint.
TEST(Gguf, PrefixesAndFlippedBytes) {
  const std::string good = small_llama().bytes();
  for (std::size_t length = 0; length < good.size(); length += length < 2000 ? 7 : 331) {
    const auto result = parse_gguf(std::string_view(good).substr(0, length), "x.gguf");
    ASSERT_FALSE(result.has_value()) << "length " << length;
    ASSERT_EQ(result.error().message.find('\n'), std::string::npos);
  }
  std::string changed = good;
  for (std::size_t at = 0; at < 1800; ++at) {
    for (const int bit : {0, 3, 7}) {
      changed[at] = static_cast<char>(good[at] ^ (1 << bit));
      const auto result = parse_gguf(changed, "x.gguf");
      if (!result) {
        ASSERT_EQ(result.error().message.find('\n'), std::string::npos);
      } else {
        for (const auto& [name, tensor] : result->tensors) {
          ASSERT_LE(tensor.begin, tensor.end);
          ASSERT_LE(tensor.end, changed.size());
        }
      }
    }
    changed[at] = good[at];
  }
}

// What the description says of a GGUF file is what config.json says of the same model.
TEST(GgufTwins, DescriptionsAgree) {
  const fs::path root = fs::path(DRIFTSCOPE_SHARED_DATA) / "oracle" / "architectures";
  if (!fs::exists(root)) GTEST_SKIP() << "no shared data at " << root;
  for (const char* folder :
       {"qwen2", "qwen3", "llama3_rope", "mistral_tied", "mixtral", "qwen3moe", "qwen2moe",
        "gemma2", "gemma3", "phi3", "gpt2", "llama_yarn", "gpt_oss"}) {
    SCOPED_TRACE(folder);
    const auto hf = ModelCheckpoint::open(root / folder);
    const auto gguf = ModelCheckpoint::open(root / folder / "model.gguf");
    ASSERT_TRUE(hf.has_value()) << hf.error().message;
    ASSERT_TRUE(gguf.has_value()) << gguf.error().message;
    const ModelDescription& a = (*hf)->description();
    const ModelDescription& b = (*gguf)->description();
    if (std::string_view(folder) != "mistral_tied") {
      EXPECT_EQ(a.model_type, b.model_type);
    }
    EXPECT_EQ(a.parameters(), b.parameters());
    EXPECT_EQ(a.rms_epsilon, b.rms_epsilon);
    EXPECT_EQ(a.query_scale(), b.query_scale());
    EXPECT_EQ(a.embedding_scale, b.embedding_scale);
    EXPECT_EQ(a.attention_softcap, b.attention_softcap);
    EXPECT_EQ(a.final_softcap, b.final_softcap);
    EXPECT_EQ(a.rotated(), b.rotated());
    EXPECT_EQ(a.max_positions, b.max_positions);
    EXPECT_EQ(a.activation, b.activation);
    EXPECT_EQ(a.rope_scaling.attention_factor, b.rope_scaling.attention_factor);
    for (std::int64_t layer = 0; layer < a.layers; ++layer) {
      EXPECT_EQ(a.window(layer), b.window(layer)) << layer;
      EXPECT_EQ(a.rotates_locally(layer), b.rotates_locally(layer)) << layer;
    }
    EXPECT_EQ(a.moe.experts, b.moe.experts);
    EXPECT_EQ(a.moe.chosen, b.moe.chosen);
    EXPECT_EQ(a.moe.renormalise, b.moe.renormalise);
    EXPECT_EQ(a.moe.softmax_of_chosen, b.moe.softmax_of_chosen);
    EXPECT_EQ(a.moe.swiglu_limit, b.moe.swiglu_limit);
    EXPECT_EQ(a.moe.router_bias, b.moe.router_bias);
    EXPECT_EQ(a.moe.biases, b.moe.biases);
    for (const bool local : {false, true}) {
      const auto frequencies_a = a.inverse_frequencies(local);
      const auto frequencies_b = b.inverse_frequencies(local);
      ASSERT_EQ(frequencies_a.size(), frequencies_b.size());
      for (std::size_t i = 0; i < frequencies_a.size(); ++i) {
        // Divisors of llama3's scaling are f32 in the GGUF form.
        EXPECT_NEAR(frequencies_a[i] / frequencies_b[i], 1.0, 0x1p-23);
      }
    }
  }
}

void expect_same_values(const TensorView& a, const TensorView& b) {
  ASSERT_EQ(a.present(), b.present()) << a.name << " " << b.name;
  if (!a.present()) return;
  ASSERT_EQ(a.shape, b.shape) << a.name;
  ASSERT_EQ(values_of(a), values_of(b)) << a.name << " and " << b.name;
}

TEST(GgufTwins, TensorsHoldTheSameValues) {
  const fs::path root = fs::path(DRIFTSCOPE_SHARED_DATA) / "oracle" / "architectures";
  if (!fs::exists(root)) GTEST_SKIP() << "no shared data at " << root;
  constexpr TensorView LayerTensors::*kMembers[] = {&LayerTensors::attention_norm,
                                                    &LayerTensors::attention_norm_bias,
                                                    &LayerTensors::post_attention_norm,
                                                    &LayerTensors::q,
                                                    &LayerTensors::k,
                                                    &LayerTensors::v,
                                                    &LayerTensors::q_bias,
                                                    &LayerTensors::k_bias,
                                                    &LayerTensors::v_bias,
                                                    &LayerTensors::q_norm,
                                                    &LayerTensors::k_norm,
                                                    &LayerTensors::o,
                                                    &LayerTensors::o_bias,
                                                    &LayerTensors::sinks,
                                                    &LayerTensors::ffn_norm,
                                                    &LayerTensors::ffn_norm_bias,
                                                    &LayerTensors::post_ffn_norm,
                                                    &LayerTensors::gate,
                                                    &LayerTensors::up,
                                                    &LayerTensors::gate_bias,
                                                    &LayerTensors::up_bias,
                                                    &LayerTensors::down,
                                                    &LayerTensors::down_bias,
                                                    &LayerTensors::router,
                                                    &LayerTensors::router_bias,
                                                    &LayerTensors::shared_gate,
                                                    &LayerTensors::shared_up,
                                                    &LayerTensors::shared_down,
                                                    &LayerTensors::shared_weight};
  for (const char* folder :
       {"qwen2", "qwen3", "llama3_rope", "mistral_tied", "mixtral", "qwen3moe", "qwen2moe",
        "gemma2", "gemma3", "phi3", "gpt2", "llama_yarn", "gpt_oss"}) {
    SCOPED_TRACE(folder);
    const auto hf = ModelCheckpoint::open(root / folder);
    const auto gguf = ModelCheckpoint::open(root / folder / "model.gguf");
    ASSERT_TRUE(hf.has_value()) << hf.error().message;
    ASSERT_TRUE(gguf.has_value()) << gguf.error().message;
    expect_same_values((*hf)->embedding(), (*gguf)->embedding());
    expect_same_values((*hf)->lm_head(), (*gguf)->lm_head());
    expect_same_values((*hf)->final_norm(), (*gguf)->final_norm());
    expect_same_values((*hf)->final_norm_bias(), (*gguf)->final_norm_bias());
    expect_same_values((*hf)->position_embedding(), (*gguf)->position_embedding());
    for (std::int64_t i = 0; i < (*hf)->description().layers; ++i) {
      const LayerTensors& a = (*hf)->layer(i);
      const LayerTensors& b = (*gguf)->layer(i);
      for (const auto member : kMembers) expect_same_values(a.*member, b.*member);
      ASSERT_EQ(a.experts.size(), b.experts.size());
      for (std::size_t e = 0; e < a.experts.size(); ++e) {
        for (const auto member :
             {&ExpertTensors::gate, &ExpertTensors::up, &ExpertTensors::down,
              &ExpertTensors::gate_bias, &ExpertTensors::up_bias, &ExpertTensors::down_bias}) {
          expect_same_values(a.experts[e].*member, b.experts[e].*member);
        }
      }
    }
  }
}

TEST(SharedGguf, EveryFileOpensAndNamesItsFormats) {
  const fs::path models = fs::path(DRIFTSCOPE_SHARED_DATA) / "models";
  if (!fs::exists(models)) GTEST_SKIP() << "no shared data at " << models;
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(models)) {
    if (entry.path().extension() != ".gguf") continue;
    const auto result = ModelCheckpoint::open(entry.path());
    ASSERT_TRUE(result.has_value()) << result.error().message;
    EXPECT_FALSE((*result)->weight_formats().empty());
    ++files;
  }
  EXPECT_GE(files, 22);
  const auto mixed = ModelCheckpoint::open(models / "stories260K/gguf/stories260K-Q4_K_M.gguf");
  ASSERT_TRUE(mixed.has_value());
  EXPECT_EQ((*mixed)->weight_formats(), "Q5_0 28, Q8_0 3, F32 11, F16 5");
  EXPECT_EQ((*mixed)->description().stored_dtype, Dtype::f32);
}

}  // namespace
}  // namespace driftscope
