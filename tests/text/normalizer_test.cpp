// SPDX-License-Identifier: Apache-2.0
// Normalisers: what the text becomes, and where each byte came from.
#include "engine/text/normalizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/text/tiny_tokenizer.h"

namespace driftscope {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

AlignedText normalized(const json& description, std::string_view text) {
  const auto normalizer = Normalizer::read(description, "normalizer");
  if (!normalizer) {
    ADD_FAILURE() << normalizer.error().message;
    return {};
  }
  auto result = normalizer->apply(AlignedText::view_of(text, 0));
  if (!result) {
    ADD_FAILURE() << result.error().message;
    return {};
  }
  return *result;
}

std::string text_of(const json& description, std::string_view text) {
  return std::string(normalized(description, text).text());
}

// Spans of the bytes, as "begin-end".
std::string origins_of(const json& description, std::string_view text) {
  const AlignedText result = normalized(description, text);
  std::string origins;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const ByteSpan span = result.span_of_byte(i);
    origins += fmt::format("{}{}-{}", i == 0 ? "" : " ", span.begin, span.end);
  }
  return origins;
}

const json kNfc{{"type", "NFC"}};
const json kNfd{{"type", "NFD"}};
const json kNfkc{{"type", "NFKC"}};

TEST(Normalizer, NoneChangesNothing) {
  EXPECT_EQ(text_of(nullptr, "a b"), "a b");
  EXPECT_EQ(origins_of(nullptr, "ab"), "0-1 1-2");
}

TEST(Normalizer, PrependAndReplace) {
  const json sentencepiece{
      {"type", "Sequence"},
      {"normalizers",
       {{{"type", "Prepend"}, {"prepend", "_"}},
        {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "__"}}}}};
  EXPECT_EQ(text_of(sentencepiece, "a b"), "_a__b");
  EXPECT_EQ(origins_of(sentencepiece, "a b"), "0-0 0-1 1-2 1-2 2-3");
  EXPECT_EQ(text_of(sentencepiece, ""), "");
  const json squeeze{{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}};
  EXPECT_EQ(text_of(squeeze, "a   b c"), "a b c");
  EXPECT_EQ(origins_of(squeeze, "a   b"), "0-1 1-4 4-5");
  const json remove{{"type", "Replace"}, {"pattern", {{"String", "x"}}}, {"content", ""}};
  EXPECT_EQ(text_of(remove, "axxb"), "ab");
  EXPECT_EQ(origins_of(remove, "axxb"), "0-1 3-4");
}

// Values from the Unicode standard (UAX #15, figures 3 to 6).
TEST(Normalizer, UnicodeForms) {
  EXPECT_EQ(text_of(kNfc, "e\xCC\x81"), "\xC3\xA9");  // e + acute
  EXPECT_EQ(text_of(kNfd, "\xC3\xA9"), "e\xCC\x81");
  EXPECT_EQ(text_of(kNfc, "\xE2\x84\xAB"), "\xC3\x85");  // angstrom sign
  EXPECT_EQ(text_of(kNfd, "\xE2\x84\xAB"), "A\xCC\x8A");
  EXPECT_EQ(text_of(kNfc, "d\xCC\x87\xCC\xA3"), "\xE1\xB8\x8D\xCC\x87");  // d + dot above + below
  EXPECT_EQ(text_of(kNfd, "\xE1\xB8\x8B\xCC\xA3"), "d\xCC\xA3\xCC\x87");
  EXPECT_EQ(text_of(kNfc, "\xEF\xAC\x81"), "\xEF\xAC\x81");  // the fi ligature stays
  EXPECT_EQ(text_of(kNfkc, "\xEF\xAC\x81"), "fi");
  EXPECT_EQ(text_of(kNfkc, "2\xE2\x81\xB5"), "25");  // superscript five
  // U+1E9B U+0323: long s with dot above, dot below.
  EXPECT_EQ(text_of(kNfc, "\xE1\xBA\x9B\xCC\xA3"), "\xE1\xBA\x9B\xCC\xA3");
  EXPECT_EQ(text_of(kNfkc, "\xE1\xBA\x9B\xCC\xA3"), "\xE1\xB9\xA9");
  // Composition exclusion: U+0958 decomposes and is not composed again.
  EXPECT_EQ(text_of(kNfc, "\xE0\xA5\x98"), "\xE0\xA4\x95\xE0\xA4\xBC");
}

TEST(Normalizer, HangulComposes) {
  const char* syllable = "\xED\x95\x9C";                         // U+D55C
  const char* letters = "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB";  // U+1112 1161 11AB
  EXPECT_EQ(text_of(kNfd, syllable), letters);
  EXPECT_EQ(text_of(kNfc, letters), syllable);
  EXPECT_EQ(origins_of(kNfc, letters), "0-9 0-9 0-9");
}

TEST(Normalizer, BlockedMarksDoNotCompose) {
  // a + cedilla-class below (220) + acute: the acute composes over the lower class.
  EXPECT_EQ(text_of(kNfc, "a\xCC\xA7\xCC\x81"), "\xC3\xA1\xCC\xA7");
  // Two marks of the same class: only the first composes.
  EXPECT_EQ(text_of(kNfc, "a\xCC\x81\xCC\x80"), "\xC3\xA1\xCC\x80");
  // A starter between blocks.
  EXPECT_EQ(text_of(kNfc, "ab\xCC\x81"), "ab\xCC\x81");
}

TEST(Normalizer, FormsKeepOrigins) {
  // x, e + acute (2..5), y: one character of two bytes comes from three.
  EXPECT_EQ(origins_of(kNfc, "xe\xCC\x81y"), "0-1 1-4 1-4 4-5");
  EXPECT_EQ(origins_of(kNfd, "\xC3\xA9y"), "0-2 0-2 0-2 2-3");
  // Characters that stay keep a span per byte.
  EXPECT_EQ(origins_of(kNfc,
                       "\xE4\xBD\xA0"
                       "e\xCC\x81"),
            "0-1 1-2 2-3 3-6 3-6");
}

TEST(Normalizer, CaseAccentsAndStrip) {
  const json lower{{"type", "Lowercase"}};
  EXPECT_EQ(text_of(lower, "ABC \xC3\x89 \xCE\xA3"), "abc \xC3\xA9 \xCF\x83");
  EXPECT_EQ(text_of(lower, "\xC4\xB0"), "i\xCC\x87");  // U+0130 has two characters in lower case
  EXPECT_EQ(text_of({{"type", "StripAccents"}}, "e\xCC\x81x"), "ex");
  json strip{{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}};
  EXPECT_EQ(text_of(strip,
                    " \xC2\xA0"
                    "a "),
            "a ");
  EXPECT_EQ(origins_of(strip, "  a "), "2-3 3-4");
  strip["strip_right"] = true;
  EXPECT_EQ(text_of(strip, "  a b\n"), "a b");
  EXPECT_EQ(text_of(strip, "   "), "");
}

TEST(Normalizer, TokensKeepOffsetsThroughIt) {
  auto document = bpe_json({"\xC3\xA9", "y", "x"}, {});
  document["normalizer"] = kNfc;
  EXPECT_EQ(spans_of(*must_open(document), "xe\xCC\x81y"), "2[0,1) 0[1,4) 1[4,5)");
}

TEST(Normalizer, RefusesWhatItDoesNotKnow) {
  for (const json& part :
       {json{{"type", "Precompiled"}}, json{{"type", "BertNormalizer"}}, json{{"type", "Sequence"}},
        json(5), json::object(), json{{"type", "Replace"}, {"content", "x"}},
        json{{"type", "Prepend"}, {"prepend", 1}}}) {
    const auto result = Normalizer::read(part, "normalizer");
    ASSERT_FALSE(result.has_value()) << part;
    EXPECT_EQ(result.error().kind, ErrorKind::malformed);
    EXPECT_THAT(result.error().message, HasSubstr("normalizer"));
  }
}

}  // namespace
}  // namespace driftscope
