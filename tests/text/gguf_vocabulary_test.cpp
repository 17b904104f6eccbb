// SPDX-License-Identifier: Apache-2.0
// The tokenizer and the template that a GGUF file carries, and damage to their keys.
#include "engine/text/gguf_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace driftscope {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string number(std::uint64_t value, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::memcpy(text.data(), &value, bytes);
  return text;
}
std::string text_of(std::string_view text) { return number(text.size(), 8) + std::string(text); }

class GgufText : public ::testing::Test {
 protected:
  void add(std::string_view key, std::uint32_t type, const std::string& value) {
    m_pairs += text_of(key) + number(type, 4) + value;
    ++m_count;
  }
  void add_text(std::string_view key, std::string_view value) { add(key, 8, text_of(value)); }
  void add_vocabulary() {
    add_text("tokenizer.ggml.model", "llama");
    std::string tokens = number(8, 4) + number(4, 8);
    for (const char* token : {"<unk>", "<s>", "</s>",
                              "\xe2\x96\x81"
                              "a"}) {
      tokens += text_of(token);
    }
    add("tokenizer.ggml.tokens", 9, tokens);
    add("tokenizer.ggml.token_type", 9,
        number(5, 4) + number(4, 8) + number(2, 4) + number(3, 4) + number(3, 4) + number(1, 4));
    add("tokenizer.ggml.bos_token_id", 4, number(1, 4));
  }
  void add_scores(std::uint32_t type, std::size_t bytes, std::uint64_t count) {
    add("tokenizer.ggml.scores", 9,
        number(type, 4) + number(count, 8) + std::string(bytes * count, '\0'));
  }
  Result<GgufHeader> header() {
    m_bytes = "GGUF" + number(3, 4) + number(0, 8) + number(m_count, 8) + m_pairs;
    return parse_gguf(m_bytes, "m.gguf");
  }
  void expect_refused(const std::string& reason) {
    const auto parsed = header();
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    const auto vocabulary = read_gguf_vocabulary(*parsed, "m.gguf");
    std::string message;
    if (!vocabulary) {
      EXPECT_EQ(vocabulary.error().kind, ErrorKind::malformed);
      message = vocabulary.error().message;
    } else {
      ASSERT_TRUE(vocabulary->has_value());
      const auto tokenizer = tokenizer_from_gguf(**vocabulary);
      ASSERT_FALSE(tokenizer.has_value());
      EXPECT_EQ(tokenizer.error().kind, ErrorKind::malformed);
      message = tokenizer.error().message;
    }
    EXPECT_THAT(message, HasSubstr(reason));
    EXPECT_THAT(message, HasSubstr("m.gguf"));
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }

 private:
  std::string m_bytes;  // the header points into it
  std::string m_pairs;
  std::uint64_t m_count = 0;
};

TEST_F(GgufText, ReadsTheKeys) {
  add_vocabulary();
  add_scores(6, 4, 4);
  add_text("tokenizer.chat_template", "{{ messages }}");
  const auto parsed = header();
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const auto vocabulary = read_gguf_vocabulary(*parsed, "m.gguf");
  ASSERT_TRUE(vocabulary.has_value()) << vocabulary.error().message;
  ASSERT_TRUE(vocabulary->has_value());
  EXPECT_EQ((*vocabulary)->model, "llama");
  EXPECT_EQ((*vocabulary)->tokens.size(), 4U);
  EXPECT_THAT((*vocabulary)->token_types, ElementsAre(2, 3, 3, 1));
  EXPECT_EQ((*vocabulary)->scores.size(), 4U);
  EXPECT_EQ((*vocabulary)->bos_id, 1);
  EXPECT_EQ((*vocabulary)->eos_id, std::nullopt);
  EXPECT_EQ((*vocabulary)->add_bos, std::nullopt);
  const auto chat = read_gguf_chat(*parsed, "m.gguf");
  ASSERT_TRUE(chat.has_value());
  EXPECT_EQ(chat->chat_template, "{{ messages }}");
  EXPECT_THAT(chat->special_tokens, ElementsAre(std::pair("bos_token", "<s>")));
}

TEST_F(GgufText, MergesThatCanGiveNoTokenAreLeftOut) {
  add_text("tokenizer.ggml.model", "gpt2");
  std::string tokens = number(8, 4) + number(5, 8);
  for (const char* token : {"a", "b", "c", "ab", "abc"}) tokens += text_of(token);
  add("tokenizer.ggml.tokens", 9, tokens);
  std::string merges = number(8, 4) + number(4, 8);
  // "bc" is no token; "ca" is none either, but a merge goes on from it.
  for (const char* merge : {"a b", "b c", "c a", "ca b"}) merges += text_of(merge);
  add("tokenizer.ggml.merges", 9, merges);
  const auto parsed = header();
  ASSERT_TRUE(parsed.has_value());
  const auto vocabulary = read_gguf_vocabulary(*parsed, "m.gguf");
  ASSERT_TRUE(vocabulary.has_value() && vocabulary->has_value());
  EXPECT_THAT((*vocabulary)->merges, ElementsAre("a b", "c a", "ca b"));
}

TEST_F(GgufText, NoVocabularyIsNoError) {
  add_text("tokenizer.ggml.model", "none");
  const auto parsed = header();
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(read_gguf_vocabulary(*parsed, "m.gguf").value(), std::nullopt);
  EXPECT_EQ(read_gguf_chat(*parsed, "m.gguf").value().chat_template, std::nullopt);
}

TEST_F(GgufText, RefusesScoresOfAnotherType) {
  add_vocabulary();
  add_scores(0, 1, 4);
  expect_refused("metadata tokenizer.ggml.scores at byte");
}

TEST_F(GgufText, RefusesListsOfOtherLengths) {
  add_vocabulary();
  add_scores(6, 4, 3);
  expect_refused("3 entries for 4 tokens");
}

TEST_F(GgufText, RefusesATokenListOfNumbers) {
  add_text("tokenizer.ggml.model", "llama");
  add("tokenizer.ggml.tokens", 9, number(4, 4) + number(1, 8) + number(7, 4));
  expect_refused("is a list of u32, not a list of strings");
}

TEST_F(GgufText, RefusesAByteTokenThatIsNone) {
  add_text("tokenizer.ggml.model", "llama");
  add("tokenizer.ggml.tokens", 9,
      number(8, 4) + number(2, 8) + text_of("<unk>") + text_of("<0x-1>"));
  add("tokenizer.ggml.token_type", 9, number(5, 4) + number(2, 8) + number(2, 4) + number(6, 4));
  add_scores(6, 4, 2);
  expect_refused("<0x-1>");
}

TEST_F(GgufText, RefusesAnUnknownModel) {
  add_text("tokenizer.ggml.model", "morse");
  add("tokenizer.ggml.tokens", 9, number(8, 4) + number(1, 8) + text_of("a"));
  expect_refused("morse");
}

TEST(GgufTextOfFiles, TokenizesAsTheDirectory) {
  const fs::path models = fs::path(DRIFTSCOPE_SHARED_DATA) / "models" / "stories260K";
  if (!fs::exists(models)) GTEST_SKIP() << "no shared data at " << models;
  const auto tokenizer = open_gguf_tokenizer(models / "gguf" / "stories260K-Q4_K_M.gguf");
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  ASSERT_NE(*tokenizer, nullptr);
  const auto directory = Tokenizer::open(models / "hf");
  ASSERT_TRUE(directory.has_value());
  for (const std::string prompt : {"Once upon a time, Lily", "  two spaces", "\xf0\x9f\x98\x80"}) {
    const auto a = (*tokenizer)->encode(prompt, {});
    const auto b = (*directory)->encode(prompt, {});
    ASSERT_TRUE(a.has_value() && b.has_value());
    ASSERT_EQ(a->size(), b->size()) << prompt;
    for (std::size_t i = 0; i < a->size(); ++i) EXPECT_EQ((*a)[i].id, (*b)[i].id);
  }
}

}  // namespace
}  // namespace driftscope
