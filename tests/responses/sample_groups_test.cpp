// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/sample_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/responses/population_caveats.h"

namespace driftscope {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Response answer(const std::string& text, const std::string& prompt, double temperature,
                const std::string& custom_id = "") {
  Response response;
  response.custom_id = custom_id;
  response.request.prompt = prompt;
  response.request.temperature = temperature;
  response.temperature = temperature;
  response.choices.emplace_back();
  response.choices[0].content.text = text;
  return response;
}

Response failure() {
  Response response;
  response.error = "overloaded";
  return response;
}

using Side = std::vector<Response>;

Side repeated(const Response& response, std::size_t count) { return Side(count, response); }

PopulationCaveats caveats(const SampleSides& sides) {
  return caveats_of(sides, compare_populations(sides.a, sides.b, 99, 1));
}

TEST(SampleGroups, AnswersToOtherPromptsAreNotCompared) {
  Side a = repeated(answer("x", "p", 1.0), 3);
  a.push_back(answer("y", "q", 1.0));
  const SampleSides sides = sample_sides(a, repeated(answer("x", "p", 1.0), 2));
  ASSERT_EQ(sides.a.size(), 2U);
  EXPECT_EQ(sides.a[0].prompt, "p");
  EXPECT_EQ(sides.a[0].texts.size(), 3U);
  ASSERT_EQ(sides.only_a.size(), 1U);
  EXPECT_EQ(sides.only_a[0].prompt, "q");
  EXPECT_EQ(sides.only_a[0].samples, 1);
  EXPECT_TRUE(sides.only_b.empty());
  const PopulationCaveats said = caveats(sides);
  EXPECT_TRUE(said.inconclusive);  // nothing changed, something was left out
  EXPECT_THAT(said.sentences, Contains(HasSubstr("left out: 1 prompt of A (1 samples)")));
}

TEST(SampleGroups, NoPromptOfBothSidesIsInconclusive) {
  const SampleSides sides =
      sample_sides(repeated(answer("x", "p", 1.0), 9), repeated(answer("y", "q", 1.0), 9));
  const PopulationCaveats said = caveats(sides);
  EXPECT_TRUE(said.inconclusive);
  EXPECT_THAT(said.sentences, Contains(HasSubstr("nothing was compared")));
}

TEST(SampleGroups, OneIdForTwoPromptsIsTwoGroups) {
  const Side a{answer("x", "p", 1.0, "i"), answer("x", "r", 1.0, "j")};
  const Side b{answer("x", "q", 1.0, "i"), answer("x", "r", 1.0, "j")};
  const SampleSides sides = sample_sides(a, b);
  ASSERT_EQ(sides.only_a.size(), 1U);
  EXPECT_EQ(sides.only_a[0].prompt, "i: p");
  ASSERT_EQ(sides.only_b.size(), 1U);
  EXPECT_EQ(sides.only_b[0].prompt, "i: q");
  EXPECT_EQ(sides.a[1].prompt, "j");
}

TEST(SampleGroups, OtherSettingsAreSaidAndInconclusive) {
  const SampleSides sides =
      sample_sides(repeated(answer("x", "p", 1.0), 9), repeated(answer("y", "p", 0.2), 9));
  ASSERT_EQ(sides.settings.size(), 1U);
  const PopulationCaveats said = caveats(sides);
  EXPECT_TRUE(said.inconclusive);
  EXPECT_EQ(said.sentences.at(0),
            "asked with temperature 1 and 0.2 (1 prompt): a difference is to be expected");
}

TEST(SampleGroups, SeedsOfTheirOwnAreAlikeOneSeedForAllIsNot) {
  const auto seeded = [](int step) {
    Side side = repeated(answer("x", "p", 1.0), 4);
    for (int i = 0; i < 4; ++i)
      side[static_cast<std::size_t>(i)].request.seed = std::to_string(7 + step * i);
    return side;
  };
  EXPECT_TRUE(sample_sides(seeded(1), seeded(2)).settings.empty());
  const SampleSides one = sample_sides(seeded(1), seeded(0));
  ASSERT_EQ(one.settings.size(), 1U);
  EXPECT_EQ(one.settings[0].name, "seed");
  EXPECT_EQ(one.settings[0].a, "several");
  EXPECT_EQ(one.settings[0].b, "7");
}

TEST(SampleGroups, WhatAFileDoesNotTellIsNoDifference) {
  Side silent = repeated(answer("x", "", 1.0), 4);
  for (Response& response : silent) response.request = {};
  for (Response& response : silent) response.temperature.reset();
  const SampleSides sides = sample_sides(repeated(answer("x", "p", 1.0), 4), silent);
  EXPECT_FALSE(sides.by_prompt);
  EXPECT_TRUE(sides.settings.empty());
  EXPECT_TRUE(sides.only_a.empty());
  const PopulationCaveats said = caveats(sides);
  EXPECT_FALSE(said.inconclusive);
  EXPECT_THAT(said.sentences, Contains(HasSubstr("taken on trust")));
}

// Three prompts in one file and nothing that tells them apart.
TEST(SampleGroups, PooledPromptsAreSaid) {
  Side bare = repeated(answer("x", "", 1.0), 4);
  for (Response& response : bare) response.request = {};
  const SampleSides pooled = sample_sides(bare, bare);
  ASSERT_EQ(pooled.a.size(), 1U);
  const PopulationCaveats said = caveats(pooled);
  EXPECT_FALSE(said.inconclusive);
  EXPECT_THAT(said.sentences, Contains(HasSubstr("do not tell prompts apart")));
  EXPECT_THAT(said.sentences, Contains(HasSubstr("\"custom_id\": \"q1\"")));
  EXPECT_EQ(caveats_json(pooled, said)["caveats"], nlohmann::ordered_json(said.sentences));
  // Part of them with an id is as good as none; all of them, or the prompts, are enough.
  Side named = bare;
  for (Response& response : named) response.custom_id = "i";
  Side part = named;
  part[0].custom_id.clear();
  EXPECT_THAT(caveats(sample_sides(part, named)).sentences,
              Contains(HasSubstr("do not tell prompts apart")));
  EXPECT_THAT(caveats(sample_sides(named, named)).sentences, IsEmpty());
  const Side asked = repeated(answer("x", "p", 1.0), 4);
  EXPECT_THAT(caveats(sample_sides(asked, asked)).sentences, IsEmpty());
  const Side one{bare[0]};
  EXPECT_THAT(caveats(sample_sides(one, one)).sentences, IsEmpty());
}

TEST(SampleGroups, ErrorsAreCountedAndMoreThanFivePercentAreInconclusive) {
  Side a = repeated(answer("x", "p", 1.0), 20);
  Side b = repeated(answer("x", "p", 1.0), 19);
  b.push_back(failure());
  PopulationCaveats said = caveats(sample_sides(a, b));
  EXPECT_FALSE(said.inconclusive);  // 1 of 20 is 5%
  EXPECT_THAT(said.sentences, Contains(HasSubstr("1 of 20 answers of B is an error")));
  b.push_back(failure());
  const SampleSides sides = sample_sides(a, b);
  said = caveats(sides);
  EXPECT_TRUE(said.inconclusive);
  EXPECT_THAT(said.sentences, Contains(HasSubstr("2 of 21 answers of B are errors")));
  const auto document = caveats_json(sides, said);
  EXPECT_EQ(document["errors"]["a"]["errors"], 0);
  EXPECT_EQ(document["errors"]["b"]["errors"], 2);
  EXPECT_EQ(document["errors"]["b"]["answers"], 21);
}

}  // namespace
}  // namespace driftscope
