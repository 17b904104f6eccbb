// SPDX-License-Identifier: Apache-2.0
// Ids of whole tokenizers against independent encoders, and properties that must hold for any
// text.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "kernels/base/utf8.h"
#include "tests/text/tiny_tokenizer.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kShared(DRIFTSCOPE_SHARED_DATA);
const fs::path kSource(DRIFTSCOPE_SOURCE_DIR);

json read_json(const fs::path& path) {
  std::ifstream stream(path);
  return json::parse(stream);
}

std::string random_text(std::mt19937& random, std::size_t characters) {
  constexpr const char32_t kSome[] = {U' ', U'\n',  U'a',   U'T',    U'e',   U'\'',
                                      U'9', U'<',   0xE9,   0x301,   0x4F60, 0x1F600,
                                      0xA0, 0x3000, 0x200D, 0x1F468, 0xD55C, U'.'};
  std::string text;
  for (std::size_t i = 0; i < characters; ++i) {
    const bool any = random() % 4 == 0;
    char32_t code_point = kSome[random() % std::size(kSome)];
    if (any) code_point = static_cast<char32_t>(1 + random() % 0x10FFFF);
    if (code_point >= 0xD800 && code_point < 0xE000) code_point = U'x';
    append_utf8(text, code_point);
  }
  return text;
}

std::vector<TokenId> token_ids(const std::vector<EncodedToken>& tokens) {
  std::vector<TokenId> ids;
  for (const EncodedToken& token : tokens) ids.push_back(token.id);
  return ids;
}

// Tokens cover the text from begin to end, in order, without gap or overlap, and decode to it.
void expect_lossless(const Tokenizer& tokenizer, const std::string& text) {
  const auto tokens = tokenizer.encode(text, {.add_special_tokens = false});
  ASSERT_TRUE(tokens.has_value()) << tokens.error().message;
  std::size_t position = 0;
  for (const EncodedToken& token : *tokens) {
    EXPECT_EQ(token.begin, position);
    position = token.end;
  }
  EXPECT_EQ(position, text.size());
  EXPECT_EQ(tokenizer.decode(token_ids(*tokens), false), text);
}

TEST(Vectors, Stories260K) {
  const fs::path vectors = kShared / "oracle" / "stories260K" / "tokenizer_vectors.json";
  if (!fs::exists(vectors)) GTEST_SKIP() << "no shared data at " << vectors;
  for (const char* folder : {"hf", "hf-bf16"}) {
    const auto t = Tokenizer::open(kShared / "models" / "stories260K" / folder);
    ASSERT_TRUE(t.has_value()) << t.error().message;
    EXPECT_EQ((*t)->kind(), "SentencePiece BPE");
    std::size_t checked = 0;
    for (const json& vector : read_json(vectors)) {
      EXPECT_EQ(ids_of(**t, vector.at("text").get<std::string>()),
                vector.at("ids").get<std::vector<int>>())
          << vector.at("text");
      ++checked;
    }
    EXPECT_GT(checked, 10U);
  }
}

TEST(Vectors, SampleModel) {
  const fs::path vectors = kSource / "samples" / "train" / "tokenizer_vectors.json";
  const auto t = Tokenizer::open(kSource / "samples" / "model");
  ASSERT_TRUE(t.has_value()) << t.error().message;
  EXPECT_EQ((*t)->kind(), "byte-level BPE");
  std::size_t checked = 0;
  for (const json& vector : read_json(vectors)) {
    const std::string text = vector.at("text");
    EXPECT_EQ(ids_of(**t, text, {.add_special_tokens = false}),
              vector.at("ids").get<std::vector<int>>())
        << text;
    EXPECT_EQ(ids_of(**t, text), vector.at("ids_with_bos").get<std::vector<int>>()) << text;
    expect_lossless(**t, text);
    ++checked;
  }
  EXPECT_GT(checked, 40U);
}

TEST(Properties, ByteLevelIsLossless) {
  const auto t = Tokenizer::open(kSource / "samples" / "model");
  ASSERT_TRUE(t.has_value()) << t.error().message;
  std::mt19937 random(3);  // NOLINT: a fixed seed on purpose
  for (int round = 0; round < 400; ++round) {
    expect_lossless(**t, random_text(random, static_cast<std::size_t>(round % 60)));
  }
  expect_lossless(**t, std::string(50'000, 'q'));
  expect_lossless(**t, std::string(50'000, ' '));
}

TEST(Properties, SentencePieceComesBack) {
  const fs::path folder = kShared / "models" / "stories260K" / "hf";
  if (!fs::exists(folder)) GTEST_SKIP() << "no shared data at " << folder;
  const auto t = Tokenizer::open(folder);
  ASSERT_TRUE(t.has_value()) << t.error().message;
  std::mt19937 random(5);  // NOLINT: a fixed seed on purpose
  for (int round = 0; round < 400; ++round) {
    const std::string text = random_text(random, static_cast<std::size_t>(round % 60));
    const auto tokens = (*t)->encode(text, {});
    ASSERT_TRUE(tokens.has_value()) << tokens.error().message;
    EXPECT_EQ((*t)->decode(token_ids(*tokens), true), text);
  }
}

TEST(Properties, TheStreamGivesTheSameBytes) {
  const auto t = Tokenizer::open(kSource / "samples" / "model");
  ASSERT_TRUE(t.has_value()) << t.error().message;
  std::mt19937 random(9);  // NOLINT: a fixed seed on purpose
  for (int round = 0; round < 200; ++round) {
    const std::string text = random_text(random, static_cast<std::size_t>(round % 40));
    const auto tokens = (*t)->encode(text, {.add_special_tokens = false});
    ASSERT_TRUE(tokens.has_value());
    StreamDecoder stream(*t);
    std::string streamed;
    for (const EncodedToken& token : *tokens) {
      const std::string part = stream.push(token.id);
      EXPECT_EQ(find_invalid_utf8(part), std::string_view::npos);
      streamed += part;
    }
    EXPECT_EQ(streamed + stream.finish(), text);
  }
}

TEST(Properties, AnyIdsDecodeToSomething) {
  const auto t = Tokenizer::open(kSource / "samples" / "model");
  ASSERT_TRUE(t.has_value()) << t.error().message;
  std::mt19937 random(13);  // NOLINT: a fixed seed on purpose
  for (int round = 0; round < 200; ++round) {
    StreamDecoder stream(*t);
    std::string streamed;
    for (int i = 0; i < 50; ++i) {
      streamed += stream.push(TokenId{static_cast<std::int32_t>(random() % 3000) - 100});
      EXPECT_EQ(find_invalid_utf8(streamed), std::string_view::npos);
    }
  }
}

}  // namespace
}  // namespace driftscope
