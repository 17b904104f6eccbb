// SPDX-License-Identifier: Apache-2.0
// Added and special tokens inside text, with their strip flags.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text/tiny_tokenizer.h"

namespace driftscope {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

// Ids 0 to 255 are bytes. Added tokens begin at 256.
json with_added(std::vector<json> tokens) {
  json document = byte_level_json({});
  int id = 256;
  for (json& token : tokens) {
    token["id"] = id++;
    document["added_tokens"].push_back(token);
  }
  return document;
}

json special(const char* content) { return {{"content", content}, {"special", true}}; }

TEST(AddedTokens, SplitTheText) {
  const auto t = must_open(with_added({special("<s>")}));
  EXPECT_EQ(spans_of(*t, "a<s>b"), "97[0,1) 256[1,4) 98[4,5)");
  EXPECT_EQ(spans_of(*t, "<s><s>"), "256[0,3) 256[3,6)");
  EXPECT_EQ(spans_of(*t, "<s"), "60[0,1) 115[1,2)");
}

TEST(AddedTokens, LongestAtTheLeftmostPlace) {
  const auto t = must_open(with_added({special("ab"), special("abc"), special("bcd")}));
  EXPECT_THAT(ids_of(*t, "abcd"), ElementsAre(257, 'd'));
  EXPECT_THAT(ids_of(*t, "abx"), ElementsAre(256, 'x'));
  EXPECT_THAT(ids_of(*t, "xbcd"), ElementsAre('x', 258));
}

TEST(AddedTokens, SpecialOnesCanStayText) {
  json plain = special("<p>");
  plain["special"] = false;
  plain["normalized"] = false;
  const auto t = must_open(with_added({special("<s>"), plain}));
  const EncodeOptions as_text{.add_special_tokens = true, .parse_special_tokens = false};
  EXPECT_THAT(ids_of(*t, "<s><p>", as_text), ElementsAre('<', 's', '>', 257));
  EXPECT_TRUE(t->is_special(TokenId{256}));
  EXPECT_FALSE(t->is_special(TokenId{257}));
}

TEST(AddedTokens, StripFlagsTakeWhiteSpace) {
  json left = special("<l>");
  left["lstrip"] = true;
  json right = special("<r>");
  right["rstrip"] = true;
  const auto t = must_open(with_added({left, right}));
  EXPECT_EQ(spans_of(*t, "a \n<l> b"), "97[0,1) 256[1,6) 32[6,7) 98[7,8)");
  EXPECT_EQ(spans_of(*t,
                     "a <r> \xC2\xA0"
                     "b"),
            "97[0,1) 32[1,2) 257[2,8) 98[8,9)");
  // White space that one token took is not there for the next.
  EXPECT_EQ(spans_of(*t, "<r>  <l>"), "257[0,5) 256[5,8)");
}

TEST(AddedTokens, SingleWordNeedsBoundaries) {
  json word = special("cat");
  word["single_word"] = true;
  const auto t = must_open(with_added({word}));
  EXPECT_EQ(spans_of(*t, "cat"), "256[0,3)");
  EXPECT_EQ(spans_of(*t, "cat!"), "256[0,3) 33[3,4)");
  EXPECT_THAT(ids_of(*t, "cats"), ElementsAre('c', 'a', 't', 's'));
  EXPECT_THAT(ids_of(*t,
                     "\xC3\xA9"
                     "cat"),
              ElementsAre(0xC3, 0xA9, 'c', 'a', 't'));
  EXPECT_THAT(ids_of(*t, "_cat"), ElementsAre('_', 'c', 'a', 't'));
}

TEST(AddedTokens, NormalizedOnesAreFoundInNormalizedText) {
  json document = bpe_json({"a", "b", "A"}, {});
  document["normalizer"] = {{"type", "Lowercase"}};
  document["added_tokens"] = {
      {{"id", 3}, {"content", "<X>"}, {"special", false}, {"normalized", true}},
      {{"id", 4}, {"content", "<Y>"}, {"special", false}, {"normalized", false}}};
  const auto t = must_open(document);
  EXPECT_EQ(spans_of(*t, "A<x>b"), "0[0,1) 3[1,4) 1[4,5)");
  EXPECT_EQ(spans_of(*t, "<X><Y>"), "3[0,3) 4[3,6)");
  EXPECT_THAT(ids_of(*t, "<y>a"), ElementsAre(0));  // as given it must be <Y>
}

TEST(AddedTokens, TemplatesPutIdsAround) {
  json document = with_added({special("<s>"), special("</s>")});
  document["post_processor"] = json::parse(R"({
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
               {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "</s>", "type_id": 0}}],
    "pair": [],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]},
                       "</s>": {"id": "</s>", "ids": [257], "tokens": ["</s>"]}}})");
  const auto t = must_open(document);
  EXPECT_EQ(spans_of(*t, "ab"), "256[0,0) 97[0,1) 98[1,2) 257[2,2)");
  EXPECT_EQ(spans_of(*t, ""), "256[0,0) 257[0,0)");
  EXPECT_EQ(spans_of(*t, "ab", {.add_special_tokens = false}), "97[0,1) 98[1,2)");
  // The text may hold the token as well: it is then there twice.
  EXPECT_EQ(spans_of(*t, "<s>a"), "256[0,0) 256[0,3) 97[3,4) 257[4,4)");

  json sequence = document;
  sequence["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "ByteLevel"}, {"trim_offsets", true}}, document["post_processor"]}}};
  EXPECT_EQ(spans_of(*must_open(sequence), " a"), "256[0,0) 32[0,1) 97[1,2) 257[2,2)");

  json roberta = document;
  roberta["post_processor"] = {
      {"type", "RobertaProcessing"}, {"cls", {"<s>", 256}}, {"sep", {"</s>", 257}}};
  EXPECT_EQ(spans_of(*must_open(roberta), "a"), "256[0,0) 97[0,1) 257[1,1)");
}

}  // namespace
}  // namespace driftscope
