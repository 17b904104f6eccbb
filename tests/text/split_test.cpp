// SPDX-License-Identifier: Apache-2.0
// Pre-tokenisers: how text is cut before the model sees it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/text/pre_tokenizer.h"
#include "nlohmann/json.hpp"
#include "tests/text/tiny_tokenizer.h"

namespace driftscope {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The words, each with a bar in front of the place it came from: "the", "-", …
std::vector<std::string> words_of(const json& description, const std::string& text) {
  const auto pre_tokenizer = PreTokenizer::read(description, "pre_tokenizer");
  if (!pre_tokenizer) return {"refused: " + pre_tokenizer.error().message};
  const AlignedText source = AlignedText::view_of(text, 0);
  TextArena arena;
  const auto pieces = pre_tokenizer->apply({&source, 0, text.size()}, arena);
  if (!pieces) return {"failed: " + pieces.error().message};
  std::vector<std::string> words;
  for (const TextPiece& piece : *pieces) words.emplace_back(piece.text());
  return words;
}

json split(const char* behavior, bool invert = false) {
  return {{"type", "Split"},
          {"pattern", {{"String", "-"}}},
          {"behavior", behavior},
          {"invert", invert}};
}

// The example of the reference implementation's documentation.
TEST(Split, Behaviors) {
  const std::string text = "the-final--countdown";
  EXPECT_THAT(words_of(split("Removed"), text), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(words_of(split("Isolated"), text),
              ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(words_of(split("MergedWithPrevious"), text),
              ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(words_of(split("MergedWithNext"), text),
              ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(words_of(split("Contiguous"), text),
              ElementsAre("the", "-", "final", "--", "countdown"));
  EXPECT_THAT(words_of(split("Other"), text), ElementsAre(HasSubstr("behavior")));
}

TEST(Split, InvertSwapsMatchesAndTheRest) {
  EXPECT_THAT(words_of(split("Removed", true), "a--b"), ElementsAre("-", "-"));
  EXPECT_THAT(words_of(split("Isolated", true), "a--b"), ElementsAre("a", "-", "-", "b"));
  EXPECT_THAT(words_of(split("MergedWithPrevious", true), "a-b"), ElementsAre("a", "-b"));
}

TEST(Split, Edges) {
  EXPECT_TRUE(words_of(split("Removed"), "").empty());
  EXPECT_TRUE(words_of(split("Removed"), "--").empty());
  EXPECT_THAT(words_of(split("MergedWithPrevious"), "-a"), ElementsAre("-", "a"));
  EXPECT_THAT(words_of(split("MergedWithNext"), "a-"), ElementsAre("a", "-"));
  // Empty matches cut between characters and give no empty words.
  const json empty{{"type", "Split"}, {"pattern", {{"Regex", "(?=b)"}}}, {"behavior", "Isolated"}};
  EXPECT_THAT(words_of(empty, "abab"), ElementsAre("a", "ba", "b"));
}

TEST(Split, ByteLevelPattern) {
  const json byte_level{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  EXPECT_THAT(words_of(byte_level, "I'm 12  x\n\n y!?"),
              ElementsAre("I", "'m", " 12", " ", " x", "\n\n", " y", "!?"));
  // White space at the end stays together; before a word all but the last is a word of its own.
  EXPECT_THAT(words_of(byte_level, "a   b   "), ElementsAre("a", "  ", " b", "   "));
  const json plain{{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", false}};
  EXPECT_THAT(words_of(plain, "a b"), ElementsAre(" a b"));
  EXPECT_THAT(words_of(plain, " a b"), ElementsAre(" a b"));
}

TEST(Split, PatternsOfPublishedTokenizers) {
  // Llama 3: at most three digits, contractions in any case, one leading other character.
  const json llama3{
      {"type", "Split"},
      {"pattern",
       {{"Regex",
         R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}}},
      {"behavior", "Isolated"}};
  EXPECT_THAT(words_of(llama3, "It'S 12345 (x)\r\n\r\n  y"),
              ElementsAre("It", "'S", " ", "123", "45", " (", "x", ")\r\n\r\n", " ", " y"));
  // Qwen 2: single digits.
  const json qwen2{
      {"type", "Split"},
      {"pattern",
       {{"Regex",
         R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}}},
      {"behavior", "Isolated"}};
  EXPECT_THAT(words_of(qwen2, "a12"), ElementsAre("a", "1", "2"));
}

TEST(Split, WhiteSpaceIsUnicodes) {
  const json spaces{{"type", "WhitespaceSplit"}};
  // U+00A0, U+3000 and U+0085 are white space; U+180E and U+200B are not.
  EXPECT_THAT(words_of(spaces,
                       "a\xC2\xA0"
                       "b\xE3\x80\x80"
                       "c\xC2\x85"
                       "d"),
              ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(words_of(spaces,
                       "a\xE1\xA0\x8E"
                       "b\xE2\x80\x8B"
                       "c"),
              ElementsAre("a\xE1\xA0\x8E"
                          "b\xE2\x80\x8B"
                          "c"));
}

TEST(Split, SimpleOnes) {
  EXPECT_THAT(words_of({{"type", "Digits"}, {"individual_digits", true}}, "a12b"),
              ElementsAre("a", "1", "2", "b"));
  EXPECT_THAT(words_of({{"type", "Digits"}, {"individual_digits", false}}, "a12b"),
              ElementsAre("a", "12", "b"));
  EXPECT_THAT(words_of({{"type", "Whitespace"}}, "Hey man!! a_b  \xC3\xA9"),
              ElementsAre("Hey", "man", "!!", "a_b", "\xC3\xA9"));
  EXPECT_THAT(words_of({{"type", "Punctuation"}}, "Hey!?"), ElementsAre("Hey", "!", "?"));
  EXPECT_THAT(words_of({{"type", "Punctuation"}, {"behavior", "Contiguous"}}, "Hey!?"),
              ElementsAre("Hey", "!?"));
  EXPECT_THAT(words_of({{"type", "CharDelimiterSplit"}, {"delimiter", "x"}}, "axbx"),
              ElementsAre("a", "b"));
}

TEST(Split, Metaspace) {
  json metaspace{{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "always"}};
  EXPECT_THAT(words_of(metaspace, "Hey man"), ElementsAre("_Hey", "_man"));
  EXPECT_THAT(words_of(metaspace, " Hey  man"), ElementsAre("_Hey", "_", "_man"));
  metaspace["split"] = false;
  EXPECT_THAT(words_of(metaspace, "Hey man"), ElementsAre("_Hey_man"));
  metaspace["prepend_scheme"] = "never";
  EXPECT_THAT(words_of(metaspace, "Hey man"), ElementsAre("Hey_man"));
  metaspace["prepend_scheme"] = "sometimes";
  EXPECT_THAT(words_of(metaspace, "Hey man"), ElementsAre(HasSubstr("prepend_scheme")));
  // The older field.
  EXPECT_THAT(words_of({{"type", "Metaspace"}, {"replacement", "_"}, {"add_prefix_space", false}},
                       "Hey man"),
              ElementsAre("Hey", "_man"));
}

TEST(Split, MetaspaceFirstOnlyAtTheBeginning) {
  auto document = bpe_json({"_", "a", "b", "_a"}, {"_ a"});
  document["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}};
  document["added_tokens"] = {{{"id", 4}, {"content", "<x>"}, {"special", true}}};
  const auto t = must_open(document);
  EXPECT_EQ(spans_of(*t, "a<x>a a"), "3[0,1) 4[1,4) 1[4,5) 3[5,7)");
  document["pre_tokenizer"]["prepend_scheme"] = "always";
  EXPECT_EQ(spans_of(*must_open(document), "a<x>a a"), "3[0,1) 4[1,4) 3[4,5) 3[5,7)");
}

TEST(Split, SequencesRunInOrder) {
  const json sequence{
      {"type", "Sequence"},
      {"pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, split("Isolated")}}};
  EXPECT_THAT(words_of(sequence, "a1-b"), ElementsAre("a", "1", "-", "b"));
}

TEST(Split, StepsAfterBytesSeeTheAlphabet) {
  // A space is written as U+0120, which is a letter and no white space.
  const json sequence{{"type", "Sequence"},
                      {"pretokenizers",
                       {{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}},
                        {{"type", "Digits"}, {"individual_digits", true}}}}};
  EXPECT_THAT(words_of(sequence, "a 1"), ElementsAre("a\xC4\xA0", "1"));
  auto document = byte_level_json({"\xC4\xA0 1"});
  document["pre_tokenizer"] = sequence;
  // The merge of space and 1 cannot happen: they are cut apart. 0xC3 0xA9 keep their bytes.
  EXPECT_EQ(spans_of(*must_open(document), "\xC3\xA9 1"), "195[0,1) 169[1,2) 32[2,3) 49[3,4)");
}

TEST(Split, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(words_of({{"type", "BertPreTokenizer"}}, "a"),
              ElementsAre(HasSubstr("type \"BertPreTokenizer\" is not supported")));
  EXPECT_THAT(words_of(json::object(), "a"), ElementsAre(HasSubstr("has no \"type\"")));
  EXPECT_THAT(words_of({{"type", "Sequence"}}, "a"), ElementsAre(HasSubstr("not a list")));
  EXPECT_THAT(words_of({{"type", "Split"}, {"behavior", "Isolated"}}, "a"),
              ElementsAre(HasSubstr("pattern must be")));
  EXPECT_THAT(
      words_of({{"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"String", ""}}}}, "a"),
      ElementsAre(HasSubstr("pattern must be")));
}

}  // namespace
}  // namespace driftscope
