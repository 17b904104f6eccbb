// SPDX-License-Identifier: Apache-2.0
// Unigram models of tokenizer.json, the precompiled charsmap, and where Unicode's versions part.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/text/charsmap.h"
#include "engine/text/normalizer.h"
#include "engine/text/pattern.h"
#include "engine/text/unicode_versions.h"
#include "tests/text/tiny_tokenizer.h"

namespace driftscope {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Tokens with their scores, in order of ids.
using Scores = std::vector<std::pair<std::string, double>>;
json list_of(const Scores& scores) {
  json list = json::array();
  for (const auto& [token, score] : scores) list.push_back(json::array({token, score}));
  return list;
}

json unigram_json(const json& vocabulary) {
  json document = bpe_json({"?"}, {});
  document["model"] = {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}};
  return document;
}

void expect_refused(const json& document, const std::string& reason) {
  const auto result = open_json(document);
  ASSERT_FALSE(result.has_value()) << "accepted, expected: " << reason;
  EXPECT_EQ(result.error().kind, ErrorKind::malformed);
  EXPECT_THAT(result.error().message, HasSubstr(reason));
}

TEST(Unigram, TheBestSumWins) {
  // ab+c = -2.5, a+bc = -3.25, a+b+c = -6
  const Scores vocabulary = {{"<unk>", 0}, {"a", -2},    {"b", -2},
                             {"c", -2},    {"ab", -0.5}, {"bc", -1.25}};
  const auto t = must_open(unigram_json(list_of(vocabulary)));
  EXPECT_EQ(t->kind(), "Unigram");
  EXPECT_EQ(ids_of(*t, "abc"), (std::vector<int>{4, 3}));
  Scores other = vocabulary;
  other[5].second = -0.25;  // a+bc = -2.25
  EXPECT_EQ(ids_of(*must_open(unigram_json(list_of(other))), "abc"), (std::vector<int>{1, 5}));
}

TEST(Unigram, UnknownRunsAreOneToken) {
  const auto t = must_open(unigram_json(list_of({{"<unk>", 0}, {"a", -1}})));
  EXPECT_EQ(spans_of(*t,
                     "axy\u00e9"
                     "ax"),
            "1[0,1) 0[1,5) 1[5,6) 0[6,7)");
  EXPECT_EQ(ids_of(*t, ""), std::vector<int>{});
}

TEST(Unigram, BytesInPlaceOfUnknown) {
  json document = unigram_json(list_of({{"<unk>", 0}, {"a", -1}, {"<0xC3>", 0}, {"<0xA9>", 0}}));
  document["model"]["byte_fallback"] = true;
  const auto t = must_open(document);
  EXPECT_EQ(spans_of(*t, "a\u00e9"), "1[0,1) 2[1,2) 3[2,3)");
  EXPECT_EQ(ids_of(*t, "\u00e8"), std::vector<int>{0});  // A8 has no token
}

TEST(Unigram, WordsOfMetaspaceInItsVariants) {
  // 2 ▁, 3 a, 4 ▁a
  const Scores vocabulary = {
      {"<unk>", 0}, {"<s>", 0}, {"\u2581", -1}, {"a", -1}, {"\u2581a", -1.5}};
  const auto ids = [&](const char* scheme, bool split, std::string_view text) {
    json document = unigram_json(list_of(vocabulary));
    document["added_tokens"] = {{{"id", 1}, {"content", "<s>"}, {"special", true}}};
    document["pre_tokenizer"] = {{"type", "Metaspace"},
                                 {"replacement", "\u2581"},
                                 {"prepend_scheme", scheme},
                                 {"split", split}};
    return ids_of(*must_open(document), text);
  };
  for (const bool split : {true, false}) {
    EXPECT_EQ(ids("always", split, "a<s>a a"), (std::vector<int>{4, 1, 4, 4}));
    EXPECT_EQ(ids("first", split, "a<s>a a"), (std::vector<int>{4, 1, 3, 4}));
    EXPECT_EQ(ids("never", split, "a<s>a a"), (std::vector<int>{3, 1, 3, 4}));
  }
}

TEST(Unigram, WhatIsRefused) {
  expect_refused(unigram_json(json::object()), "model.vocab: is not a list");
  expect_refused(unigram_json(json::array()), "model.vocab: is not a list");
  expect_refused(unigram_json(json::array({json::array({"a", "b"})})), "model.vocab[0]: ");
  expect_refused(unigram_json(json::array({json::array({"a", 1, 2})})),
                 "is not a token with its score");
  json document = unigram_json(list_of({{"a", 0}}));
  document["model"]["unk_id"] = 1;
  expect_refused(document, "unk_id 1 is not an id of vocab");
  document["model"]["unk_id"] = nullptr;
  expect_refused(document, "unk_id null is not an id of vocab");
  document["model"].erase("vocab");
  expect_refused(document, "vocab is missing");
}

// One key of one byte, laid out by hand: the root's children begin at unit 256, where the unit of
// `key` points on to 512, which holds the value 0.
std::string one_rule(char key, const std::string& replacement) {
  std::vector<std::uint32_t> units(768, 0x80000000U);
  const auto byte = static_cast<std::uint8_t>(key);
  const std::uint32_t position = 256U ^ byte;
  units[0] = 256U << 10U;
  units[position] = ((position ^ 512U) << 10U) | 0x100U | byte;
  units[512] = 0x80000000U;
  std::string bytes;
  const auto append = [&](std::uint32_t value) {
    for (unsigned i = 0; i < 4; ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xFFU);
  };
  append(static_cast<std::uint32_t>(units.size() * 4));
  for (const std::uint32_t unit : units) append(unit);
  return bytes + replacement + '\0';
}

TEST(CharsMap, ReplacesAndKeepsOffsets) {
  const auto map = CharsMap::read(one_rule('x', "\u00e9!"), "n");
  ASSERT_TRUE(map.has_value()) << map.error().message;
  const AlignedText source = AlignedText::view_of("axb", 10);
  for (const AlignedText& text : {map->apply_to_graphemes(source), map->apply_longest(source)}) {
    EXPECT_EQ(text.text(), "a\u00e9!b");
    EXPECT_EQ(text.span(1, 4), (ByteSpan{11, 12}));
    EXPECT_EQ(text.span(4, 5), (ByteSpan{12, 13}));
  }
}

TEST(CharsMap, AGraphemeGoesByWhatItBeginsWith) {
  const auto map = CharsMap::read(one_rule('x', "y"), "n");
  ASSERT_TRUE(map.has_value()) << map.error().message;
  // A cluster of less than 6 bytes is replaced as a whole, of a longer one only the character.
  EXPECT_EQ(map->apply_to_graphemes(AlignedText::view_of("x\u0301", 0)).text(), "y");
  EXPECT_EQ(map->apply_to_graphemes(AlignedText::view_of("x\u0301\u0301\u0301", 0)).text(),
            "y\u0301\u0301\u0301");
  EXPECT_EQ(map->apply_longest(AlignedText::view_of("x\u0301", 0)).text(), "y\u0301");
}

TEST(CharsMap, DamageIsRefusedOrHarmless) {
  const std::string good = one_rule('x', "y");
  const auto reason = [](std::string_view bytes) {
    const auto map = CharsMap::read(bytes, "n");
    return map ? std::string() : map.error().message;
  };
  EXPECT_THAT(reason("abc"), HasSubstr("ends inside its header"));
  EXPECT_THAT(reason(good.substr(0, 100)), HasSubstr("ends inside its trie"));
  EXPECT_THAT(reason(std::string(8, '\0')), HasSubstr("wrong size"));
  EXPECT_THAT(reason(one_rule('x', "\xFF")), HasSubstr("not UTF-8"));
  for (std::size_t at = 4; at < good.size(); at += 7) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(0xFF);
    const auto map = CharsMap::read(damaged, "n");
    if (map) static_cast<void>(map->apply_longest(AlignedText::view_of("xxa\u00e9", 0)));
  }
}

TEST(CharsMap, Base64) {
  EXPECT_EQ(decode_base64("Zm9vYg=="), "foob");  // RFC 4648, section 10
  EXPECT_EQ(decode_base64("Zm9vYmFy"), "foobar");
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("Zm9"), std::nullopt);
  EXPECT_EQ(decode_base64("Zm9*"), std::nullopt);
}

TEST(Normalizer, CharsmapFieldIsBase64) {
  for (const char* text : {"", "*", "AAAA"}) {
    const json part{{"type", "Precompiled"}, {"precompiled_charsmap", text}};
    EXPECT_FALSE(Normalizer::read(part, "normalizer").has_value()) << text;
  }
}

TEST(Normalizer, NmtTakesControlCharactersAndOddSpaces) {
  const auto nmt = Normalizer::read({{"type", "Nmt"}}, "n");
  ASSERT_TRUE(nmt.has_value());
  const std::string text =
      "a\x01\tb\u200b\u2581\x7F"
      "c\u00a0";
  EXPECT_EQ(nmt->apply(AlignedText::view_of(text, 0))->text(), "a b  c\u00a0");
}

std::vector<std::size_t> lengths_of(std::string_view expression, std::string_view text) {
  const auto pattern = Pattern::regex(expression, "f");
  Result<std::vector<PatternMatch>> matches = tl::unexpected(Error{});
  if (pattern) matches = pattern->find_all(text);
  std::vector<std::size_t> lengths;
  if (!matches) {
    ADD_FAILURE() << matches.error().message;
    return lengths;
  }
  for (const PatternMatch& match : *matches) lengths.push_back(match.end - match.begin);
  return lengths;
}

TEST(UnicodeVersions, PatternsKnowUnicodeSixteen) {
  // U+1FA77 (symbol, 15.0), U+1C89 (upper case, 16.0), U+116D0 (digit, 16.0).
  const std::string text = "\U0001FA77\u1C89\U000116D0";
  EXPECT_EQ(lengths_of("\\p{S}", text), (std::vector<std::size_t>{4}));
  EXPECT_EQ(lengths_of("\\p{L}", text), (std::vector<std::size_t>{3}));
  EXPECT_EQ(lengths_of("[\\p{Lu}\\p{N}]+", text), (std::vector<std::size_t>{7}));
  EXPECT_EQ(lengths_of("[^\\p{L}\\p{S}]", text), (std::vector<std::size_t>{4}));
  EXPECT_EQ(lengths_of("\\w+", text), (std::vector<std::size_t>{7}));
  EXPECT_EQ(lengths_of("\\W|\\D", "a\u00b2" + text).size(), 4U);  // a, U+00B2, U+1FA77, U+1C89
  EXPECT_EQ(lengths_of("[[:punct:]]+", "$.a"), (std::vector<std::size_t>{2}));
  EXPECT_TRUE(has_added_characters("ab\u1C89"));
  EXPECT_FALSE(has_added_characters("ab\u00e9\u4F60\U0001F600"));
}

TEST(UnicodeVersions, NormalFormsKnowUnicodeNine) {
  // U+08CC (combining class 230 since 14.0) stays before U+0327 (202); U+0301 (230) does not.
  EXPECT_EQ(to_unicode_form(AlignedText::view_of("a\u08cc\u0327", 0), UnicodeForm::nfd).text(),
            "a\u08cc\u0327");
  EXPECT_EQ(to_unicode_form(AlignedText::view_of("a\u0301\u0327", 0), UnicodeForm::nfd).text(),
            "a\u0327\u0301");
  EXPECT_TRUE(is_accent(0x0301));
  EXPECT_FALSE(is_accent(0x08cc));
  EXPECT_TRUE(is_accent(0x1cf2));  // a mark until Unicode 12
}

TEST(Properties, OneMegabyteOfOneLetterIsFast) {
  std::vector<std::string> merges;
  for (std::string token = "a"; token.size() < 64; token += token) {
    merges.push_back(token + " " + token);
  }
  const auto t = must_open(byte_level_json(merges));
  const auto tokens = t->encode(std::string(1U << 20U, 'a'), {});
  ASSERT_TRUE(tokens.has_value()) << tokens.error().message;
  EXPECT_EQ(tokens->size(), (1U << 20U) / 64);
}

}  // namespace
}  // namespace driftscope
