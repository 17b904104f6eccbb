// SPDX-License-Identifier: Apache-2.0
#include "engine/model/strict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace driftscope {
namespace {

using ::testing::HasSubstr;

void expect_refused(const std::string& text, const std::string& reason) {
  const auto result = parse_strict_json(text, "f.json");
  ASSERT_FALSE(result.has_value()) << "accepted, expected: " << reason;
  EXPECT_EQ(result.error().kind, ErrorKind::malformed);
  EXPECT_THAT(result.error().message, ::testing::StartsWith("f.json: not valid JSON"));
  EXPECT_THAT(result.error().message, HasSubstr(reason));
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
}

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(StrictJson, ReadsWhatTheStandardAllows) {
  const auto result =
      parse_strict_json(R"( {"a":[1,-2,2.5,true,null,"x\u00e9\ud83d\ude00"],"b":{}} )", "f");
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ((*result)["a"][0], 1);
  EXPECT_EQ((*result)["a"][1], -2);
  EXPECT_EQ((*result)["a"][2], 2.5);
  EXPECT_EQ((*result)["a"][5], "x\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_TRUE((*result)["b"].is_object());
}

TEST(StrictJson, KeepsIntegersExactly) {
  const auto result = parse_strict_json("[9007199254740993, 18446744073709551615]", "f");
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ((*result)[0].get<std::uint64_t>(), 9007199254740993U);
  EXPECT_EQ((*result)[1].get<std::uint64_t>(), 18446744073709551615U);
}

TEST(StrictJson, DepthSixtyFourIsTheLimit) {
  EXPECT_TRUE(parse_strict_json(nested(64), "f").has_value());
  expect_refused(nested(65), "deeper than 64");
  expect_refused(std::string(100'000, '['), "deeper than 64");
  expect_refused(R"({"a":)" + nested(64) + "}", "deeper than 64");
}

TEST(StrictJson, RefusesKeysTwice) {
  expect_refused(R"({"a":1,"a":1})", "key \"a\" twice");
  expect_refused(R"([{"x":{"a":1,"b":2,"a":3}}])", "key \"a\" twice");
  EXPECT_TRUE(parse_strict_json(R"([{"a":1},{"a":1}])", "f").has_value());
}

TEST(StrictJson, RefusesNumbersOutsideTheStandard) {
  for (const char* text : {"1e400", "NaN", "[Infinity]", "-", "01", "+1", ".5", "1."}) {
    expect_refused(text, "");
  }
}

TEST(StrictJson, RefusesBadStrings) {
  expect_refused(R"("\u12)", "");
  expect_refused(R"("\ud800")", "surrogate");
  expect_refused("\"\xC0\xAF\"", "byte");      // overlong "/"
  expect_refused("\"\xED\xA0\x80\"", "byte");  // a surrogate in UTF-8
  expect_refused("\"a\nb\"", "");
  expect_refused("'a'", "");
}

TEST(StrictJson, RefusesMarksAndGarbageAround) {
  expect_refused("\xEF\xBB\xBF{}", "byte order mark at byte 0");
  expect_refused(std::string("{}\0", 3), "NUL byte at byte 2");
  expect_refused(std::string("{\0}", 3), "NUL byte at byte 1");
  expect_refused("{} x", "");
  expect_refused("{}{}", "");
  expect_refused("", "");
  expect_refused("{\"a\":1,}", "");
  expect_refused("// c\n{}", "");
}

TEST(StrictJson, SaysWhere) { expect_refused(R"({"a": tru})", "at byte 9"); }

}  // namespace
}  // namespace driftscope
