// SPDX-License-Identifier: Apache-2.0
#include "engine/text/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace driftscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> matches_of(std::string_view expression, const std::string& text) {
  const auto pattern = Pattern::regex(expression, "f");
  if (!pattern) return {"refused: " + pattern.error().message};
  const auto matches = pattern->find_all(text);
  if (!matches) return {"failed: " + matches.error().message};
  std::vector<std::string> result;
  for (const PatternMatch& match : *matches) {
    result.push_back(text.substr(match.begin, match.end - match.begin));
  }
  return result;
}

TEST(Pattern, FindsWithoutOverlap) {
  EXPECT_THAT(matches_of("aa", "aaaaa"), ElementsAre("aa", "aa"));
  EXPECT_THAT(matches_of("a*", "baac"), ElementsAre("", "aa", ""));
  EXPECT_THAT(matches_of("x", ""), ElementsAre());
}

TEST(Pattern, PlainTextIsNoExpression) {
  const auto matches = Pattern::plain("a.").find_all("aba.a.");
  ASSERT_TRUE(matches.has_value());
  ASSERT_EQ(matches->size(), 2U);
  EXPECT_EQ((*matches)[0].begin, 2U);
  EXPECT_EQ((*matches)[1].begin, 4U);
}

TEST(Pattern, CountsCharactersNotBytes) {
  EXPECT_THAT(matches_of(".", "\xC3\xA9\xF0\x9F\x98\x80"),
              ElementsAre("\xC3\xA9", "\xF0\x9F\x98\x80"));
  EXPECT_THAT(matches_of(R"(\p{L}+)", "\xC3\xA9t\xC3\xA9 1"), ElementsAre("\xC3\xA9t\xC3\xA9"));
}

TEST(Pattern, RubysAnchorsAreThoseOfLines) {
  EXPECT_THAT(matches_of("^a$", "a\na\nb"), ElementsAre("a", "a"));
}

TEST(Pattern, TranslatesWhatDiffers) {
  // \h is a hexadecimal digit in Ruby's syntax, horizontal space in PCRE2's.
  EXPECT_THAT(matches_of(R"(\h+)", "xyz0aF g"), ElementsAre("0aF"));
  EXPECT_THAT(matches_of(R"([\h]+)", "xyz0aF g"), ElementsAre("0aF"));
  EXPECT_THAT(matches_of(R"(\s)",
                         "a\xE1\xA0\x8E"
                         "b c"),
              ElementsAre(" "));
  EXPECT_THAT(matches_of(R"(\S+)",
                         "ab \xC2\x85"
                         "c"),
              ElementsAre("ab", "c"));
  EXPECT_THAT(matches_of(R"([^\s]+)",
                         "ab \xE3\x80\x80"
                         "c"),
              ElementsAre("ab", "c"));
  EXPECT_THAT(matches_of(R"([]a]+)", "a]b"), ElementsAre("a]"));
  EXPECT_THAT(matches_of(R"([\]\[]+)", "a[]b"), ElementsAre("[]"));
}

TEST(Pattern, RefusesWhatWouldMeanSomethingElse) {
  EXPECT_THAT(matches_of("[a-z&&[^b]]", "a"), ElementsAre(HasSubstr("not supported")));
  EXPECT_THAT(matches_of("[a[b]]", "a"), ElementsAre(HasSubstr("not supported")));
}

TEST(Pattern, RefusesWhatDoesNotCompile) {
  for (const char* expression : {"(", "[a", "a{2,1}", "(?<x", "\\p{Nothing}", "*", "[[:alpha"}) {
    EXPECT_THAT(matches_of(expression, "a"), ElementsAre(HasSubstr("refused: f: pattern")))
        << expression;
  }
  EXPECT_THAT(matches_of(std::string(251, '(') + "a" + std::string(251, ')'), "a"),
              ElementsAre(HasSubstr("nested")));
  EXPECT_THAT(matches_of(std::string(70'000, 'a'), "a"), ElementsAre(HasSubstr("refused")));
}

TEST(Pattern, CatastrophicPatternsStop) {
  const std::string letters(50'000, 'a');
  EXPECT_THAT(matches_of("(a+)+$", letters), ElementsAre(letters));
  EXPECT_THAT(matches_of("(a+)+$", letters + "b"), ElementsAre(HasSubstr("too many steps")));
  EXPECT_THAT(matches_of("(a|aa)+$", letters + "b"), ElementsAre(HasSubstr("too many steps")));
}

}  // namespace
}  // namespace driftscope
