// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/json_document.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace driftscope {
namespace {

std::vector<std::string> oddities(const JsonDocument& document) {
  std::vector<std::string> all;
  for (const JsonOddity& oddity : document.oddities()) {
    all.push_back(std::string(oddity.what) + "@" + std::to_string(oddity.offset));
  }
  return all;
}

TEST(JsonDocument, ReadsWhatAStrictReaderLoses) {
  JsonDocument document;
  ASSERT_TRUE(document.parse(R"({"a":NaN,"b":[-Infinity,1e400,-1e400,1e-999],"c":-0.0,)"
                             R"("d":18446744073709551615,"e":9007199254740993})"));
  const JsonValue root = document.root();
  EXPECT_TRUE(std::isnan(*root["a"].number()));
  EXPECT_EQ(*root["b"].at(0).number(), -INFINITY);
  EXPECT_EQ(*root["b"].at(1).number(), INFINITY);
  EXPECT_EQ(*root["b"].at(2).number(), -INFINITY);
  EXPECT_EQ(*root["b"].at(3).number(), 0.0);
  EXPECT_TRUE(std::signbit(*root["c"].number()));
  EXPECT_FALSE(root["d"].integer());
  EXPECT_EQ(root["d"].raw(), "18446744073709551615");
  EXPECT_EQ(root["e"].integer(), 9007199254740993);
  EXPECT_EQ(oddities(document),
            (std::vector<std::string>{"literal NaN@5", "literal -Infinity@14"}));
}

// A list of plain digits is kept as its text; it reads like any other list.
TEST(JsonDocument, ListsOfDigitsReadLikeOthers) {
  JsonDocument document;
  ASSERT_TRUE(document.parse(R"({"a":[1, 22,333 ],"b":[7],"c":[ 1,2],"d":[1,-2],"e":[],)"
                             R"("f":[18446744073709551615,0],"g":[256],"h":[1,[2]],"i":9})"));
  const JsonValue root = document.root();
  const auto listed = [](JsonValue list) {
    std::string out;
    for (const JsonValue item : list) {
      EXPECT_TRUE(item.is_number());
      EXPECT_EQ(item.size(), 0U);
      out += std::string(item.raw()) + ";";
    }
    return out;
  };
  EXPECT_EQ(listed(root["b"]), "7;");
  EXPECT_EQ(listed(root["c"]), "1;2;");
  EXPECT_EQ(listed(root["d"]), "1;-2;");
  EXPECT_EQ(listed(root["e"]), "");
  EXPECT_EQ(root["f"].size(), 2U);
  EXPECT_FALSE(root["f"].at(0).integer());
  EXPECT_EQ(root["f"].at(0).raw(), "18446744073709551615");
  EXPECT_EQ(root["f"].at(1).integer(), 0);
  EXPECT_FALSE(root["f"].at(2));
  EXPECT_EQ(root["f"].canonical(), "[18446744073709551615,0]");
  EXPECT_EQ(root["h"].at(1).at(0).integer(), 2);
  EXPECT_EQ(root["i"].integer(), 9);
  EXPECT_EQ(root["b"].bytes(), "\a");
  EXPECT_EQ(root["c"].bytes(), "\x01\x02");
  EXPECT_EQ(root["e"].bytes(), "");
  EXPECT_FALSE(root["d"].bytes());
  EXPECT_FALSE(root["g"].bytes());
  EXPECT_FALSE(root["i"].bytes());
  // A space before the bracket.
  EXPECT_EQ(listed(root["a"]), "1;22;333;");
  EXPECT_EQ(root["a"].size(), 3U);
  for (const char* broken : {"[1,]", "[1 2]", "[1,2", "[,1]", "[1,,2]", "[1.]"}) {
    EXPECT_FALSE(document.parse(broken)) << broken;
  }
}

TEST(JsonDocument, ArraysOfAKeyCanBeLeftOut) {
  JsonDocument document;
  document.leave_out("top");
  ASSERT_TRUE(document.parse(R"([{"top":[{"a":NaN},[2]],"b":1},{"top":[],"c":{"top":[1,2]}}, 5])"));
  const JsonValue root = document.root();
  ASSERT_EQ(root.size(), 3U);
  const JsonValue list = root.at(0)["top"];
  EXPECT_EQ(list.left_out(), 2U);
  EXPECT_EQ(list.size(), 0U);
  EXPECT_EQ(list.raw(), R"([{"a":NaN},[2]])");
  EXPECT_TRUE(list.begin() == list.end());
  EXPECT_EQ(root.at(0)["b"].integer(), 1);
  EXPECT_EQ(root.at(1)["top"].left_out(), 0U);   // empty: nothing was left out
  EXPECT_EQ(root.at(1)["c"]["top"].size(), 2U);  // digits are kept
  EXPECT_EQ(root.at(2).integer(), 5);
  EXPECT_EQ(document.arrays_left_out(), 1U);
  EXPECT_EQ(oddities(document), std::vector<std::string>{"literal NaN@14"});
  // It is checked all the same: what is refused, and what is noted, is what it is without.
  for (const char* inside : {R"({"a":})",
                             R"("\ud83d")",
                             R"("\ud83d\ude0a")",
                             R"("\q")",
                             R"({"a":1,"a":2})",
                             "\"\x01\"",
                             "\"\xff\"",
                             "\"\xC3\xA9\"",
                             "-",
                             "1.",
                             "[1.5,]",
                             R"({"a" 1})",
                             R"({"a":1 "b":2})",
                             "nul",
                             "null",
                             R"("\u00e9\n\/")",
                             R"({"k": {"l": [true, false, {}, [], -1.5e-7]}})",
                             "\"a",
                             "1e",
                             R"({"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,"1":0})"}) {
    const std::string text = std::string("{\"top\":[\"x\",") + inside + "],\"b\":1}";
    JsonDocument plain;
    const auto expected = plain.parse(text);
    const auto parsed = document.parse(text);
    ASSERT_EQ(parsed.has_value(), expected.has_value()) << inside;
    EXPECT_EQ(oddities(document), oddities(plain)) << inside;
    if (!parsed) {
      EXPECT_EQ(parsed.error().message, expected.error().message) << inside;
      continue;
    }
    EXPECT_EQ(document.root()["top"].left_out(), 2U) << inside;
    EXPECT_EQ(plain.root()["top"].size(), 2U) << inside;
    EXPECT_EQ(document.root()["b"].integer(), 1);
  }
  document.leave_out({});
  ASSERT_TRUE(document.parse(R"({"top":[{"a":7}]})"));
  EXPECT_EQ(document.root()["top"].at(0)["a"].integer(), 7);
}

TEST(JsonDocument, NumbersAreTheNearestDouble) {
  JsonDocument document;
  for (const char* digits :
       {"0.1", "-0.0006471618", "1e22", "1e23", "9007199254740993", "9007199254740992", "-17.125",
        "4.35", "0.000001", "123456789012345678", "1.7976931348623157e308", "5e-324", "-9999.0",
        "3.4028234663852886e+38", "2.2250738585072011e-308", "1E5", "1e+2",
        "0.30000000000000004"}) {
    ASSERT_TRUE(document.parse(digits));
    EXPECT_EQ(*document.root().number(), std::strtod(digits, nullptr)) << digits;
  }
}

TEST(JsonDocument, TextsOfEveryLengthEndAtTheirQuote) {
  JsonDocument document;
  for (std::size_t length = 0; length < 70; ++length) {
    for (const char* special : {"", "\xC3\xA9", "\\n", "\xff", "\x01"}) {
      const std::string inside = std::string(length, 'a') + special + std::string(length / 2, 'b');
      const std::string text = "[\"" + inside + "\",1]";
      ASSERT_TRUE(document.parse(text));
      EXPECT_EQ(document.root().at(0).raw(), inside);
      EXPECT_EQ(document.root().at(1).integer(), 1);
    }
  }
}

TEST(JsonDocument, KeepsOrderAndDuplicates) {
  JsonDocument document;
  ASSERT_TRUE(document.parse(R"({"b":1,"a":2,"b":3})"));
  std::string keys;
  for (auto it = document.root().begin(); it != document.root().end(); ++it) {
    keys += it.key() + std::string((*it).raw());
  }
  EXPECT_EQ(keys, "b1a2b3");
  EXPECT_EQ(document.root()["b"].integer(), 1);
  EXPECT_EQ(document.oddities().size(), 1U);
  EXPECT_EQ(document.oddities()[0].what, "duplicate key");
}

TEST(JsonDocument, ResolvesEscapesAndNotesBrokenText) {
  JsonDocument document;
  ASSERT_TRUE(
      document.parse("[\"\\ud83d\\ude0a\", \"\\ud83d\", \"a\\u0000b\", \"\xff\", \"\\n\"]"));
  EXPECT_EQ(document.root().at(0).text(), "\xF0\x9F\x98\x8A");
  EXPECT_EQ(document.root().at(1).text(), "\xEF\xBF\xBD");
  EXPECT_EQ(document.root().at(2).text(), std::string("a\0b", 3));
  EXPECT_EQ(document.root().at(3).text(), "\xff");
  EXPECT_EQ(document.root().at(4).text(), "\n");
  EXPECT_EQ(oddities(document),
            (std::vector<std::string>{"lone surrogate@18", "invalid UTF-8@40"}));
}

TEST(JsonDocument, SaysWhereATextIsBroken) {
  struct Case {
    std::string_view text;
    std::string_view begins;
  };
  for (const Case& c :
       {Case{"", "byte 0"}, Case{"{\"a\":}", "byte 5"}, Case{"[1,2", "byte 4"},
        Case{"{\"a\" 1}", "byte 5"}, Case{"[1] 2", "byte 4"}, Case{"\"abc", "byte 4"},
        Case{"[1.]", "byte 3"}, Case{"[\"\\x\"]", "byte 2"}}) {
    JsonDocument document;
    const auto done = document.parse(c.text);
    ASSERT_FALSE(done) << c.text;
    EXPECT_EQ(done.error().kind, ErrorKind::malformed);
    EXPECT_TRUE(done.error().message.starts_with(c.begins))
        << c.text << ": " << done.error().message;
    EXPECT_FALSE(document.root());
  }
}

TEST(JsonDocument, RefusesDeepNestingWithoutCrashing) {
  JsonDocument document;
  EXPECT_FALSE(document.parse(std::string(1'000'000, '[')));
  std::string fine(500, '[');
  fine += std::string(500, ']');
  EXPECT_TRUE(document.parse(fine));
}

TEST(JsonDocument, AbsentValuesFindNothing) {
  JsonDocument document;
  ASSERT_TRUE(document.parse(R"({"a":[{"b":null}]})"));
  const JsonValue root = document.root();
  EXPECT_TRUE(root["a"].at(0).has("b"));
  EXPECT_TRUE(root["a"].at(0)["b"].is_null());
  EXPECT_FALSE(root["x"]["y"].at(3)["z"]);
  EXPECT_EQ(root["x"].size(), 0U);
  std::size_t steps = 0;
  for (const JsonValue value : root["x"]) steps += value ? 1U : 2U;
  EXPECT_EQ(steps, 0U);
}

TEST(JsonDocument, CanonicalTextIgnoresOrderAndSpace) {
  JsonDocument a;
  JsonDocument b;
  ASSERT_TRUE(a.parse(R"({"x": [1, {"q": "s", "p": true}], "a": null})"));
  ASSERT_TRUE(b.parse(R"({"a":null,"x":[1,{"p":true,"q":"s"}]})"));
  EXPECT_EQ(a.root().canonical(), R"({"a":null,"x":[1,{"p":true,"q":"s"}]})");
  EXPECT_EQ(a.root().canonical(), b.root().canonical());
}

}  // namespace
}  // namespace driftscope
