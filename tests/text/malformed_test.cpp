// SPDX-License-Identifier: Apache-2.0
// tokenizer.json files and texts that are refused, and files that only look odd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/model/temporary_directory.h"
#include "tests/text/tiny_tokenizer.h"

namespace driftscope {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

void expect_refused(const json& document, const std::string& reason) {
  const auto result = open_json(document);
  ASSERT_FALSE(result.has_value()) << "accepted, expected: " << reason;
  EXPECT_EQ(result.error().kind, ErrorKind::malformed);
  EXPECT_THAT(result.error().message, HasSubstr("tokenizer.json: "));
  EXPECT_THAT(result.error().message, HasSubstr(reason));
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
}

void expect_text_refused(std::string_view document, const std::string& reason) {
  const auto result = open_text(document);
  ASSERT_FALSE(result.has_value()) << "accepted, expected: " << reason;
  EXPECT_THAT(result.error().message, HasSubstr(reason));
}

json with_vocabulary(const char* vocabulary) {
  json document = bpe_json({"a"}, {});
  document["model"]["vocab"] = json::parse(vocabulary);
  return document;
}

TEST(MalformedTokenizer, Ids) {
  expect_refused(with_vocabulary(R"({"a":0,"b":0})"), "have the same id 0");
  expect_refused(with_vocabulary(R"({"a":-1})"), "id -1");
  expect_refused(with_vocabulary(R"({"a":4294967296})"), "id 4294967296");
  expect_refused(with_vocabulary(R"({"a":2147483647})"), "id 2147483647");
  expect_refused(with_vocabulary(R"({"a":1.5})"), "id 1.5");
  expect_refused(with_vocabulary(R"({"a":"0"})"), "not an integer");
  expect_refused(with_vocabulary(R"({"a":0,"b":2000000000})"), "too many ids without a token");
  expect_refused(with_vocabulary("{}"), "model.vocab");
  expect_refused(with_vocabulary("[]"), "model.vocab");
  expect_text_refused(R"({"model":{"type":"BPE","merges":[],"vocab":{"a":0,"a":1}}})", "twice");
}

TEST(MalformedTokenizer, SmallGapsAreFine) {
  // Published vocabularies have ids that no token uses.
  const auto t = must_open(with_vocabulary(R"({"a":0,"b":5})"));
  EXPECT_EQ(t->vocabulary_size(), 6U);
  EXPECT_EQ(t->piece(TokenId{3}), "");
  EXPECT_EQ(t->piece(TokenId{5}), "b");
}

TEST(MalformedTokenizer, Merges) {
  json document = bpe_json({"a", "b", "ab"}, {"a b"});
  document["model"]["merges"] = {"a c"};
  expect_refused(document, "model.merges[0]: token \"c\" is not in the vocabulary");
  document["model"]["merges"] = {"a b", "b a"};
  expect_refused(document, "model.merges[1]: token \"ba\" is not in the vocabulary");
  for (const char* merge : {"ab", "a b c", ""}) {
    document["model"]["merges"] = json::array({merge});
    expect_refused(document, "not a pair of tokens");
  }
  document["model"]["merges"] = json::array({json::array({"a", "b", "c"})});
  expect_refused(document, "not a pair of tokens");
  document["model"]["merges"] = json::array({5});
  expect_refused(document, "not a pair of tokens");
  document["model"]["merges"] = "a b";
  expect_refused(document, "is not a list");
  document["model"].erase("merges");
  expect_refused(document, "merges is missing");
}

TEST(MalformedTokenizer, AddedTokens) {
  json document = bpe_json({"a", "b"}, {});
  const auto added = [&](json token) {
    document["added_tokens"] = json::array({std::move(token)});
    return document;
  };
  expect_refused(added({{"id", 1}, {"content", "x"}}), "id 1 belongs to \"b\" and to \"x\"");
  expect_refused(added({{"id", 2}, {"content", "a"}}), "has id 2 here and 0 in vocab");
  expect_refused(added({{"id", -1}, {"content", "x"}}), "id -1");
  expect_refused(added({{"id", 4294967296}, {"content", "x"}}), "id 4294967296");
  expect_refused(added({{"content", "x"}}), "id null");
  expect_refused(added({{"id", 2}, {"content", ""}}), "content is missing or empty");
  expect_refused(added({{"id", 2}}), "content is missing or empty");
  expect_refused(added({{"id", 2}, {"content", std::string(5000, 'x')}}), "5000 bytes");
  expect_refused(added({{"id", 2}, {"content", "x"}, {"special", "yes"}}), "special");
  expect_refused(added(json(5)), "not an object");
  document["added_tokens"] = {{{"id", 2}, {"content", "x"}}, {{"id", 2}, {"content", "x"}}};
  expect_refused(document, "is there twice");
  document["added_tokens"] = json::object();
  expect_refused(document, "is not a list");
}

TEST(MalformedTokenizer, ModelsByName) {
  for (const char* type : {"WordPiece", "WordLevel"}) {
    json document = bpe_json({"a"}, {});
    document["model"]["type"] = type;
    expect_refused(document, std::string("type \"") + type +
                                 "\" is not supported; supported are BPE and Unigram");
  }
  json document = bpe_json({"a"}, {});
  document["model"]["end_of_word_suffix"] = "</w>";
  expect_refused(document, "end_of_word_suffix \"</w>\" is not supported");
  document = bpe_json({"a"}, {});
  document["model"]["dropout"] = 0.1;
  expect_refused(document, "dropout");
  document = bpe_json({"a"}, {});
  document["model"]["unk_token"] = "<unk>";
  expect_refused(document, "unk_token \"<unk>\" is not in vocab");
  expect_refused(json{{"version", "1.0"}}, "model is missing");
  expect_refused(json::array(), "model is missing");
  // The oldest files have no type.
  document = bpe_json({"a", "b", "ab"}, {"a b"});
  document["model"].erase("type");
  EXPECT_EQ(ids_of(*must_open(document), "ab"), std::vector<int>{2});
}

TEST(MalformedTokenizer, Strings) {
  expect_text_refused(R"({"model":{"vocab":{"\ud800":0}}})", "surrogate");
  expect_text_refused("{\"model\":{\"vocab\":{\"\xC0\xAF\":0}}}", "not valid JSON");
  expect_text_refused("\xEF\xBB\xBF{}", "byte order mark");
  expect_text_refused("", "not valid JSON");
  expect_text_refused(std::string(100'000, '['), "deeper than 64");
  std::string nested = "null";
  for (int depth = 0; depth < 70; ++depth) {
    nested = R"({"type":"Sequence","normalizers":[)" + nested + "]}";
  }
  expect_text_refused(R"({"model":{},"normalizer":)" + nested + "}", "deeper than 64");
}

TEST(MalformedTokenizer, PostProcessors) {
  json document = bpe_json({"a"}, {});
  for (
      const char* part :
      {R"({"type":"TemplateProcessing"})", R"({"type":"TemplateProcessing","single":[]})",
       R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"B"}}]})",
       R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}},{"Sequence":{"id":"A"}}]})",
       R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}]})",
       R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}],"special_tokens":{"x":{"ids":[-1]}}})",
       R"({"type":"TemplateProcessing","single":[5]})", R"({"type":"RobertaProcessing"})",
       R"({"type":"Sequence"})", R"({"type":"Other"})", "[]"}) {
    document["post_processor"] = json::parse(part);
    expect_refused(document, "post_processor");
  }
}

TEST(MalformedTokenizer, CatastrophicPatternIsAnError) {
  json document = bpe_json({"a"}, {});
  document["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(a+)+$"}}}, {"behavior", "Isolated"}};
  const auto t = must_open(document);
  const auto result = t->encode(std::string(50'000, 'a') + "b", {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::malformed);
  EXPECT_THAT(result.error().message, HasSubstr("too many steps"));
  document["pre_tokenizer"]["pattern"]["Regex"] =
      std::string(251, '(') + "a" + std::string(251, ')');
  expect_refused(document, "cannot be compiled");
}

TEST(MalformedTokenizer, NoFileOrNoFileOfThatKind) {
  const TemporaryDirectory directory;
  EXPECT_THAT(Tokenizer::open(directory.path()).error().message,
              HasSubstr("has no tokenizer.json"));
  std::filesystem::create_directory(directory.path() / "tokenizer.json");
  EXPECT_THAT(Tokenizer::open(directory.path()).error().message, HasSubstr("a directory"));
}

TEST(MalformedText, SaysWhereItIsNotUtf8) {
  const auto t = must_open(byte_level_json({}));
  const auto offset_of = [&](std::string_view text) {
    const auto result = t->encode(text, {});
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_THAT(offset_of("ab\xFF"), HasSubstr("not valid UTF-8 at byte 2"));
  EXPECT_THAT(offset_of("\xC0\xAF"), HasSubstr("at byte 0"));                 // overlong
  EXPECT_THAT(offset_of("0123456789\xED\xA0\x80"), HasSubstr("at byte 10"));  // surrogate
  EXPECT_THAT(offset_of("a\xF4\x90\x80\x80"), HasSubstr("at byte 1"));        // above U+10FFFF
  EXPECT_THAT(offset_of("a\xE4\xBD"), HasSubstr("at byte 1"));                // cut
  EXPECT_EQ(offset_of(std::string("a\0b", 3)), "accepted");
}

// A good file with changed bytes: refused or usable, never a crash.
TEST(MalformedTokenizer, ChangedBytes) {
  json document = byte_level_json({"t h", "th e", "i n"});
  document["normalizer"] = {{"type", "NFC"}};
  document["added_tokens"] = {{{"id", 259}, {"content", "<s>"}, {"special", true}}};
  document["model"]["vocab"] = {{"a", 0}, {"b", 1}, {"ab", 2}};
  document["model"]["merges"] = {"a b"};
  document["added_tokens"][0]["id"] = 3;
  const std::string good = document.dump();
  ASSERT_TRUE(open_text(good).has_value());
  std::mt19937 random(11);  // NOLINT: a fixed seed on purpose
  for (int round = 0; round < 300; ++round) {
    std::string changed = good;
    for (int change = 0; change < 1 + round % 4; ++change) {
      changed[random() % changed.size()] = static_cast<char>(' ' + random() % 95);
    }
    const auto result = open_text(changed);
    if (!result) {
      EXPECT_FALSE(result.error().message.empty());
      continue;
    }
    const auto tokens = (*result)->encode("ab <s> the \xC3\xA9", {});
    if (!tokens) continue;
    for (const EncodedToken& token : *tokens) EXPECT_LE(token.end, 13U);
  }
}

}  // namespace
}  // namespace driftscope
