// SPDX-License-Identifier: Apache-2.0
// Tokenizers from a GGUF file's plain data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "engine/text/gguf_tokenizer.h"
#include "tests/text/gguf_metadata.h"
#include "tests/text/tiny_tokenizer.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

const fs::path kShared(DRIFTSCOPE_SHARED_DATA);

std::shared_ptr<const Tokenizer> must_make(const GgufVocabulary& vocabulary) {
  auto made = tokenizer_from_gguf(vocabulary);
  if (made) return *made;
  ADD_FAILURE() << made.error().message;
  return must_open(bpe_json({"?"}, {}));
}

void expect_refused(const GgufVocabulary& vocabulary, const std::string& reason) {
  const auto made = tokenizer_from_gguf(vocabulary);
  ASSERT_FALSE(made.has_value()) << "accepted, expected: " << reason;
  EXPECT_EQ(made.error().kind, ErrorKind::malformed);
  EXPECT_THAT(made.error().message, HasSubstr("m.gguf: tokenizer.ggml."));
  EXPECT_THAT(made.error().message, HasSubstr(reason));
  EXPECT_EQ(made.error().message.find('\n'), std::string::npos);
}

// "▁" is 259; then pieces with their scores.
GgufVocabulary sentencepiece(const std::vector<std::pair<std::string, float>>& pieces) {
  GgufVocabulary vocabulary{.name = "m.gguf", .model = "llama"};
  const auto add = [&](std::string text, float score, std::int32_t type) {
    vocabulary.tokens.push_back(std::move(text));
    vocabulary.scores.push_back(score);
    vocabulary.token_types.push_back(type);
  };
  add("<unk>", 0, 2);
  add("<s>", 0, 3);
  add("</s>", 0, 3);
  constexpr const char* kDigits = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte) {
    add(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", 0, 6);
  }
  add("\u2581", -100, 1);
  for (const auto& [text, score] : pieces) add(text, score, 1);
  vocabulary.bos_id = 1;
  vocabulary.eos_id = 2;
  return vocabulary;
}

GgufVocabulary byte_level(const std::vector<std::string>& merges, const std::string& pre) {
  const json document = byte_level_json(merges);
  GgufVocabulary vocabulary{.name = "m.gguf", .model = "gpt2", .pre = pre, .merges = merges};
  vocabulary.tokens.resize(document["model"]["vocab"].size());
  for (const auto& [token, id] : document["model"]["vocab"].items()) {
    vocabulary.tokens[id.get<std::size_t>()] = token;
  }
  vocabulary.token_types.assign(vocabulary.tokens.size(), 1);
  return vocabulary;
}

TEST(GgufTokenizer, TheHighestScoreMergesFirst) {
  // 260 a, 261 b, 262 c, 263 ab, 264 bc, 265 ▁a
  GgufVocabulary vocabulary =
      sentencepiece({{"a", -10}, {"b", -11}, {"c", -12}, {"ab", -2}, {"bc", -1}, {"\u2581a", -3}});
  auto t = must_make(vocabulary);
  EXPECT_EQ(t->kind(), "SentencePiece BPE");
  EXPECT_EQ(ids_of(*t, "abc"), (std::vector<int>{1, 265, 264}));
  EXPECT_EQ(ids_of(*t, ""), (std::vector<int>{1}));
  vocabulary.scores[263] = -0.5F;  // now "ab" comes before "bc", and "▁a" no more
  t = must_make(vocabulary);
  EXPECT_EQ(ids_of(*t, "abc"), (std::vector<int>{1, 259, 263, 262}));
  vocabulary.scores[263] = vocabulary.scores[264];  // the left one of equal ones
  EXPECT_EQ(ids_of(*must_make(vocabulary), "abc"), (std::vector<int>{1, 259, 263, 262}));
}

TEST(GgufTokenizer, CharactersThatAreNoPieceBecomeBytes) {
  const auto t = must_make(sentencepiece({{"a", -10}}));
  // é is C3 A9; the byte tokens begin at 3.
  EXPECT_EQ(ids_of(*t, "a\u00e9"), (std::vector<int>{1, 259, 260, 3 + 0xC3, 3 + 0xA9}));
  // Written out, a byte token's text is ordinary text.
  EXPECT_EQ(ids_of(*t, "<0x41>", {.add_special_tokens = false}).size(), 7U);
}

TEST(GgufTokenizer, WithoutByteTokensTheUnknownOnesAreOne) {
  GgufVocabulary vocabulary{.name = "m.gguf", .model = "llama"};
  vocabulary.tokens = {"<unk>", "<s>", "a", "\u2581"};
  vocabulary.scores = {0, 0, -1, -2};
  vocabulary.token_types = {2, 3, 1, 1};
  vocabulary.add_space_prefix = false;
  const auto t = must_make(vocabulary);
  EXPECT_EQ(spans_of(*t, "xya\u00e9"), "1[0,0) 0[0,2) 2[2,3) 0[3,5)");
}

TEST(GgufTokenizer, SpacesBeforeEveryStretchOfText) {
  GgufVocabulary vocabulary = sentencepiece({{"a", -10}, {"\u2581a", -1}});
  EXPECT_EQ(ids_of(*must_make(vocabulary), "a</s>a a"), (std::vector<int>{1, 261, 2, 261, 261}));
  EXPECT_EQ(ids_of(*must_make(vocabulary), "a</s>", {.parse_special_tokens = false}).size(), 6U);
  vocabulary.add_space_prefix = false;
  vocabulary.add_eos = true;
  vocabulary.add_bos = false;
  EXPECT_EQ(ids_of(*must_make(vocabulary), "a</s>a a"), (std::vector<int>{260, 2, 260, 261, 2}));
}

TEST(GgufTokenizer, UnusedPiecesAreTakenApart) {
  GgufVocabulary vocabulary =
      sentencepiece({{"a", -10}, {"b", -11}, {"c", -12}, {"ab", -1}, {"abc", -2}});
  vocabulary.add_space_prefix = false;
  EXPECT_EQ(ids_of(*must_make(vocabulary), "abc"), (std::vector<int>{1, 264}));
  vocabulary.token_types[264] = 5;
  EXPECT_EQ(ids_of(*must_make(vocabulary), "abc"), (std::vector<int>{1, 263, 262}));
  vocabulary.token_types[263] = 5;
  EXPECT_EQ(ids_of(*must_make(vocabulary), "abc"), (std::vector<int>{1, 260, 261, 262}));
}

TEST(GgufTokenizer, UserDefinedTokensAreFoundInAnyText) {
  GgufVocabulary vocabulary = sentencepiece({{"a", -10}, {"\u2581\u2581", -1}});
  vocabulary.token_types[261] = 4;
  vocabulary.add_space_prefix = false;
  for (const bool parse : {true, false}) {
    EXPECT_EQ(ids_of(*must_make(vocabulary), "a  a", {.parse_special_tokens = parse}),
              (std::vector<int>{1, 260, 261, 260}));
  }
}

TEST(GgufTokenizer, DecodesWithoutTheSpaceThatWasAdded) {
  const auto t = must_make(sentencepiece({{"a", -10}, {"\u2581a", -1}}));
  const std::vector<TokenId> ids{TokenId{1}, TokenId{261}, TokenId{261}, TokenId{3 + 0xC3},
                                 TokenId{3 + 0xA9}};
  EXPECT_EQ(t->decode(ids, true), "a a\u00e9");
}

TEST(GgufTokenizer, ByteLevelMergesInsideTheWordsOfThePattern) {
  // 256 "12", 257 "123", 258 "1234": how far digits merge depends on the pattern.
  const std::vector<std::string> merges{"1 2", "12 3", "123 4"};
  struct Row {
    const char* pre;
    std::vector<int> ids;
  };
  for (const Row& row :
       {Row{"gpt-2", {258}}, Row{"qwen2", {'1', '2', '3', '4'}}, Row{"llama-bpe", {257, '4'}},
        Row{"deepseek-v3", {257, '4'}}, Row{"gpt-4o", {257, '4'}},
        Row{"tekken", {'1', '2', '3', '4'}}, Row{"smollm", {'1', '2', '3', '4'}},
        Row{"deepseek-llm", {258}}, Row{"default", {257, '4'}}, Row{"", {257, '4'}}}) {
    GgufVocabulary vocabulary = byte_level(merges, row.pre);
    vocabulary.add_bos = false;
    EXPECT_EQ(ids_of(*must_make(vocabulary), "1234"), row.ids) << row.pre;
  }
}

TEST(GgufTokenizer, LlamaBpeTakesAWholeWordBeforeItsMerges) {
  // No merge leads to "ab"; only ignore_merges finds it.
  for (const char* pre : {"llama-bpe", "qwen2"}) {
    GgufVocabulary vocabulary = byte_level({}, pre);
    vocabulary.tokens.emplace_back("ab");
    vocabulary.token_types.push_back(1);
    vocabulary.add_bos = false;
    const std::vector<int> expected =
        std::string(pre) == "llama-bpe" ? std::vector<int>{256} : std::vector<int>{'a', 'b'};
    EXPECT_EQ(ids_of(*must_make(vocabulary), "ab"), expected) << pre;
  }
}

TEST(GgufTokenizer, EveryKnownNameMakesATokenizerThatLosesNothing) {
  const std::string text =
      "It's na\u00efve: 12345 \u4f60\u597d\u3002\n\n  x\u0301 \U0001F600 DON'T";
  for (const std::string_view name : gguf_pre_tokenizer_names()) {
    GgufVocabulary vocabulary = byte_level({"a b"}, std::string(name));
    vocabulary.add_bos = false;
    const auto t = must_make(vocabulary);
    std::vector<TokenId> ids;
    for (const int id : ids_of(*t, text)) ids.push_back(TokenId{id});
    EXPECT_EQ(ids.size(), text.size()) << name;  // nothing merges
    EXPECT_EQ(t->decode(ids, false), text) << name;
  }
}

TEST(GgufTokenizer, PhiThreeTokensTakeTheSpaceAfterThem) {
  GgufVocabulary vocabulary = sentencepiece({{"a", -10}, {"<|end|>", 0}});
  vocabulary.token_types[261] = 3;
  vocabulary.add_space_prefix = false;
  EXPECT_EQ(ids_of(*must_make(vocabulary), "<|end|>\na"),
            (std::vector<int>{1, 261, 3 + '\n', 260}));
  vocabulary.general_name = "Phi-3-mini";
  EXPECT_EQ(ids_of(*must_make(vocabulary), "<|end|>\na"), (std::vector<int>{1, 261, 260}));
}

TEST(GgufTokenizer, MergesThatLeadToNoTokenChangeNothing) {
  GgufVocabulary vocabulary = byte_level({"a b"}, "qwen2");
  vocabulary.merges = {"a c", "a b"};
  const auto tokenizer = must_make(vocabulary);
  const auto ids = tokenizer->encode("acab", {});
  ASSERT_TRUE(ids.has_value());
  ASSERT_EQ(ids->size(), 3U);  // a, c, ab
  EXPECT_EQ(tokenizer->piece((*ids)[2].id), "ab");
}

TEST(GgufTokenizer, WhatIsRefused) {
  const GgufVocabulary good = sentencepiece({{"a", -1}});
  GgufVocabulary bad = good;
  bad.model = "bert";
  expect_refused(bad, "model \"bert\" is not supported");
  bad = byte_level({}, "no-such-one");
  expect_refused(bad, "pre \"no-such-one\" is not supported; supported are a.x-4.0");
  bad = byte_level({"a b"}, "qwen2");
  bad.merges = {"ab"};
  expect_refused(bad, "merges[0]: \"ab\" is not a pair of tokens");
  bad = good;
  bad.scores.pop_back();
  expect_refused(bad, "scores has 260 entries for 261 tokens");
  bad.scores.clear();
  expect_refused(bad, "scores is missing");
  bad = good;
  bad.token_types.push_back(1);
  expect_refused(bad, "token_type has 262 entries for 261 tokens");
  bad = good;
  bad.tokens[260] = "<s>";
  expect_refused(bad, "tokens has \"<s>\" twice, as 1 and as 260");
  bad = good;
  bad.bos_id = 261;
  expect_refused(bad, "bos_token_id 261 is outside the 261 tokens");
  bad = good;
  bad.scores[5] = std::numeric_limits<float>::quiet_NaN();
  expect_refused(bad, "scores[5] is not a number");
  bad = good;
  bad.tokens.clear();
  expect_refused(bad, "tokens is missing or empty");
  bad = byte_level({}, "llama-bpe");
  expect_refused(bad, "bos_token_id is missing");
}

TEST(GgufTokenizer, TheDigestFollowsTheContents) {
  const GgufVocabulary vocabulary = sentencepiece({{"a", -1}});
  GgufVocabulary other = vocabulary;
  other.name = "another file.gguf";
  EXPECT_EQ(must_make(vocabulary)->sha256(), must_make(other)->sha256());
  other.scores[260] = -2;
  EXPECT_NE(must_make(vocabulary)->sha256(), must_make(other)->sha256());
}

TEST(GgufTokenizer, Stories260K) {
  const fs::path vectors = kShared / "oracle" / "stories260K" / "tokenizer_vectors.json";
  const fs::path folder = kShared / "models" / "stories260K" / "gguf";
  if (!fs::exists(vectors) || !fs::exists(folder)) GTEST_SKIP() << "no shared data at " << kShared;
  std::ifstream stream(vectors);
  const json expected = json::parse(stream);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto t = must_make(read_gguf_vocabulary(entry.path()));
    for (const json& vector : expected) {
      EXPECT_EQ(ids_of(*t, vector.at("text").get<std::string>()),
                vector.at("ids").get<std::vector<int>>())
          << entry.path() << ' ' << vector.at("text");
    }
    ++files;
  }
  EXPECT_GT(files, 1U);
}

}  // namespace
}  // namespace driftscope
