// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/responses/json_path.h"

namespace driftscope {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

// "" where the value is valid, else the place; "?" where nothing can be said.
std::string place_of_problem(const std::string& schema, const std::string& value) {
  const auto compiled = JsonSchema::compile(Json::parse(schema), "t");
  if (!compiled) return "refused: " + compiled.error().message;
  const auto problem = compiled->check(Json::parse(value));
  if (!problem) return "?";
  return *problem ? "at " + (*problem)->place : "";
}

struct Case {
  const char* schema;
  const char* value;
  const char* place;  // "" for valid
};

TEST(JsonSchema, KeywordsMeanWhatTheStandardSays) {
  const std::vector<Case> cases{
      {R"({"type":"integer"})", "1", ""},
      {R"({"type":"integer"})", "1.0", ""},
      {R"({"type":"integer"})", "1.5", "at "},
      {R"({"type":["string","null"]})", "null", ""},
      {R"({"type":["string","null"]})", "0", "at "},
      {R"({"type":"number"})", "true", "at "},
      {R"({"const":{"a":[1]}})", R"({"a":[1.0]})", ""},
      {R"({"enum":["a",2]})", "2", ""},
      {R"({"enum":["a",2]})", "\"2\"", "at "},
      {R"({"required":["a"]})", "{}", "at "},
      {R"({"required":["a"]})", "[]", ""},  // says nothing of what is no object
      {R"({"properties":{"a":{"type":"string"}}})", R"({"a":1})", "at /a"},
      {R"({"properties":{"a":true},"additionalProperties":false})", R"({"a":1,"b":2})", "at "},
      {R"({"patternProperties":{"^x":{"type":"null"}},"additionalProperties":false})",
       R"({"x1":null})", ""},
      {R"({"patternProperties":{"^x":{"type":"null"}}})", R"({"x1":1})", "at /x1"},
      {R"({"additionalProperties":{"type":"integer"}})", R"({"n":"t"})", "at /n"},
      {R"({"propertyNames":{"maxLength":2}})", R"({"abc":1})", "at /abc"},
      {R"({"minProperties":2})", R"({"a":1})", "at "},
      {R"({"dependentRequired":{"a":["b"]}})", R"({"a":1})", "at "},
      {R"({"dependentRequired":{"a":["b"]}})", R"({"c":1})", ""},
      {R"({"items":{"type":"integer"}})", "[1,2,\"3\"]", "at /2"},
      {R"({"prefixItems":[{"type":"string"}],"items":{"type":"integer"}})", R"(["a",1])", ""},
      {R"({"prefixItems":[{"type":"string"}],"items":{"type":"integer"}})", R"(["a","b"])",
       "at /1"},
      {R"({"minItems":1})", "[]", "at "},
      {R"({"maxItems":1})", "[1,2]", "at "},
      {R"({"uniqueItems":true})", "[1,2,1.0]", "at "},
      {R"({"minLength":2})", "\"ä\"", "at "},  // one character, two bytes
      {R"({"maxLength":1})", "\"ä\"", ""},
      {R"({"pattern":"b+"})", "\"abbc\"", ""},
      {R"({"pattern":"^b"})", "\"abbc\"", "at "},
      {R"({"pattern":"c$"})", "\"c\\n\"", "at "},
      {R"({"minimum":3})", "3", ""},
      {R"({"exclusiveMinimum":3})", "3", "at "},
      {R"({"maximum":9007199254740992})", "9007199254740993", "at "},  // beyond double
      {R"({"exclusiveMaximum":3})", "2.999", ""},
      {R"({"multipleOf":0.1})", "0.3", ""},
      {R"({"multipleOf":3})", "10", "at "},
      {R"({"allOf":[{"minimum":1},{"maximum":2}]})", "3", "at "},
      {R"({"anyOf":[{"type":"string"},{"minimum":5}]})", "6", ""},
      {R"({"anyOf":[{"type":"string"},{"minimum":5}]})", "4", "at "},
      {R"({"oneOf":[{"minimum":1},{"minimum":5}]})", "3", ""},
      {R"({"oneOf":[{"minimum":1},{"minimum":5}]})", "6", "at "},
      {R"({"not":{"type":"null"}})", "null", "at "},
      {R"({"if":{"type":"string"},"then":{"minLength":3},"else":{"minimum":3}})", "\"ab\"", "at "},
      {R"({"if":{"type":"string"},"then":{"minLength":3},"else":{"minimum":3}})", "3", ""},
      {R"({"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}},
           "$ref":"#/$defs/n"})",
       R"({"next":{"next":3}})", "at /next/next"},
      {R"({"properties":{"child":{"$ref":"#"}},"required":["v"]})", R"({"v":1,"child":{}})",
       "at /child"},
      {R"({"additionalProperties":{"type":"null"}})", R"({"a/b~c":1})", "at /a~1b~0c"},
      {"true", "1", ""},
      {"false", "1", "at "},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(place_of_problem(one.schema, one.value), one.place) << one.schema << one.value;
  }
}

// What is not understood could change the result, so it is refused, wherever it stands.
TEST(JsonSchema, WhatItDoesNotKnowIsRefused) {
  for (const char* schema :
       {R"({"format":"date"})", R"({"properties":{"a":{"unevaluatedProperties":false}}})",
        R"({"contains":{"type":"string"}})", R"({"anyOf":[{"typ":"string"}]})",
        R"({"$ref":"other.json"})", R"({"$ref":"#/$defs/none"})",
        R"({"$schema":"http://json-schema.org/draft-04/schema#"})"}) {
    EXPECT_THAT(place_of_problem(schema, "1"), HasSubstr("refused: t: schema")) << schema;
  }
  for (const char* schema : {R"({"type":"text"})", R"({"minimum":"3"})", R"({"minLength":-1})",
                             R"({"allOf":[]})", R"({"items":[true]})", R"({"required":"a"})",
                             R"({"pattern":"("})", R"([1])", R"({"multipleOf":0})"}) {
    EXPECT_THAT(place_of_problem(schema, "1"), HasSubstr("refused: ")) << schema;
  }
}

TEST(JsonSchema, AReferenceToItselfIsRefusedAndOneToAPartIsNot) {
  EXPECT_THAT(place_of_problem(R"({"$ref":"#"})", "1"), HasSubstr("refers to itself"));
  EXPECT_THAT(
      place_of_problem(
          R"({"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}})",
          "1"),
      HasSubstr("refers to itself"));
  EXPECT_EQ(place_of_problem(R"({"items":{"$ref":"#"}})", "[[[]]]"), "");
}

TEST(JsonSchema, APatternThatNeverEndsIsNoAnswer) {
  const std::string text = "\"" + std::string(60, 'a') + "b\"";
  EXPECT_EQ(place_of_problem(R"({"pattern":"^(a+)+$"})", text), "?");
}

// Also a comparison of every pair of a long list has an end.
TEST(JsonSchema, TooManyStepsAreNoAnswer) {
  Json list = Json::array();
  for (int i = 0; i < 4000; ++i) list.push_back(i);
  EXPECT_EQ(place_of_problem(R"({"uniqueItems":true})", list.dump()), "?");
}

std::string selected(const std::string& path, const std::string& document) {
  const auto parsed = JsonPath::parse(path, "t");
  if (!parsed) return "refused";
  const Json json = Json::parse(document);
  std::string out;
  for (const JsonPathNode& node : parsed->select(json)) {
    out += node.place + "=" + node.value->dump() + " ";
  }
  return out;
}

TEST(JsonPath, SelectsAsTheStandardSays) {
  const std::string document = R"({"o":{"j j":{"k":3}},"a":[5,3,{"j":4}],"'":1})";
  EXPECT_EQ(selected("$.a[0]", document), "$['a'][0]=5 ");
  EXPECT_EQ(selected("$.a[-1].j", document), "$['a'][2]['j']=4 ");
  EXPECT_EQ(selected("$.a[3]", document), "");
  EXPECT_EQ(selected("$['o']['j j'].k", document), "$['o']['j j']['k']=3 ");
  EXPECT_EQ(selected("$.a[*]", document), "$['a'][0]=5 $['a'][1]=3 $['a'][2]={\"j\":4} ");
  EXPECT_EQ(selected("$..j", document), "$['a'][2]['j']=4 ");
  EXPECT_EQ(selected("$..[1]", document), "$['a'][1]=3 ");
  EXPECT_EQ(selected("$.o.*.k", document), "$['o']['j j']['k']=3 ");
  EXPECT_EQ(selected("$['\\'']", document), "$['\\'']=1 ");
  EXPECT_EQ(selected("$", "7"), "$=7 ");
  for (const char* path :
       {"a", "", "$.", "$[", "$[1:2]", "$[?@.a]", "$['a','b']", "$.a b", "$.1"}) {
    EXPECT_EQ(selected(path, document), "refused") << path;
  }
}

}  // namespace
}  // namespace driftscope
