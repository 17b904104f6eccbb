// SPDX-License-Identifier: Apache-2.0
// Files of many answers: compared line by line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace driftscope::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kPairs = 250;  // more than what is read at once

json token(const std::string& text, double logprob) {
  return {{"token", text}, {"logprob", logprob}, {"bytes", {static_cast<int>(text[0])}}};
}

// Every tenth answer of B parts from A's at its second token, by a gap of 1/16 on both sides.
std::string line(int number, bool side_b, bool batch) {
  const bool parts = side_b && number % 10 == 9;
  json steps = json::array();
  for (const auto& [chosen, other] : {std::pair("a", "b"), std::pair("x", "y")}) {
    const bool second = chosen == std::string("x");
    json step = token(second && parts ? other : chosen, -0.50390625);
    step["top_logprobs"] = {step, token(second && parts ? chosen : other, -0.56640625)};
    steps.push_back(step);
  }
  const json body{{"object", "chat.completion"},
                  {"model", "m-2024-01-01"},
                  {"choices",
                   {{{"index", 0},
                     {"message", {{"role", "assistant"}, {"content", parts ? "ay" : "ax"}}},
                     {"logprobs", {{"content", steps}}},
                     {"finish_reason", "stop"}}}}};
  if (!batch) return body.dump() + "\n";
  return json{{"id", "r"},
              {"custom_id", "q" + std::to_string(number)},
              {"response", {{"status_code", 200}, {"body", body}}},
              {"error", nullptr}}
             .dump() +
         "\n";
}

class LongFiles : public ::testing::Test {
 protected:
  std::vector<std::string> lines(bool side_b, bool batch) const {
    std::vector<std::string> all;
    for (int i = 0; i < kPairs; ++i) all.push_back(line(i, side_b, batch));
    return all;
  }
  void write(const std::string& name, const std::vector<std::string>& lines) const {
    std::string text;
    for (const std::string& one : lines) text += one;
    write_file(m_folder.path() / name, text);
  }
  [[nodiscard]] ProgramResult vendor(std::vector<std::string> more) const {
    more.insert(more.begin(), {"vendor", "A.jsonl", "B.jsonl", "-q"});
    return run_program(more, m_folder.path());
  }
  ScratchFolder m_folder;
};

TEST_F(LongFiles, AreSummarisedAndThreadsChangeNothing) {
  write("A.jsonl", lines(false, true));
  auto turned = lines(true, true);
  std::reverse(turned.begin(), turned.end());
  write("B.jsonl", turned);
  const ProgramResult one = vendor({"--threads", "1"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("250 pairs: 225 tolerance, 25 different\n"));
  EXPECT_THAT(one.out, HasSubstr("the answers part by: 25 near_tie\n"));
  EXPECT_THAT(one.out, HasSubstr("[q9] the answers part at token 1"));
  EXPECT_THAT(one.out, Not(HasSubstr("[q8]")));
  EXPECT_EQ(vendor({"--threads", "4"}).out, one.out);
  const ProgramResult all = vendor({"--all"});
  EXPECT_THAT(all.out, HasSubstr("[q8] tolerance: "));
  const ProgramResult json_one = vendor({"--json", "--threads", "1"});
  EXPECT_EQ(vendor({"--json", "--threads", "3"}).out, json_one.out);
  const json document = json::parse(json_one.out);
  ASSERT_EQ(document["pairs"].size(), 250U);
  EXPECT_EQ(document["pairs"][19]["key"], "q19");
  EXPECT_EQ(document["pairs"][19]["first_divergence"]["cause"], "near_tie");
  EXPECT_EQ(document["summary"]["tiers"]["different"], 25);
  EXPECT_EQ(document["complete"], true);
  EXPECT_EQ(document["verdict"], "different");
  EXPECT_EQ(vendor({"--fail-on", "semantic"}).exit_code, 1);
}

TEST_F(LongFiles, OneBadLineLosesOnlyItself) {
  auto a = lines(false, true);
  a[100] = a[100].substr(0, 120) + "\n";
  a[101] = "{\"weather\": \"fine\"}\n";
  write("A.jsonl", a);
  write("B.jsonl", lines(true, true));
  const ProgramResult result = vendor({"--json"});
  EXPECT_EQ(result.exit_code, 3);  // not all pairs could be compared
  const json document = json::parse(result.out);
  EXPECT_EQ(document["pairs"].size(), 250U - 1U);
  EXPECT_EQ(document["summary"]["tiers"]["inconclusive"], 1);
  EXPECT_EQ(document["summary"]["tiers"]["different"], 25);
  EXPECT_EQ(document["only_b"], (std::vector<std::string>{"q101"}));
  // What is missing does not undo what is known: 25 pairs part.
  EXPECT_EQ(vendor({"--fail-on", "semantic"}).exit_code, 1);
  ASSERT_EQ(document["only_a"].size(), 1U);
}

TEST_F(LongFiles, BareBodiesAreComparedInOrder) {
  write("A.jsonl", lines(false, false));
  write("B.jsonl", lines(true, false));
  const ProgramResult result = vendor({});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("250 pairs: 225 tolerance, 25 different\n"));
}

TEST_F(LongFiles, RepeatedIdsAreStated) {
  auto a = lines(false, true);
  a.push_back(a[3]);
  write("A.jsonl", a);
  write("B.jsonl", lines(true, true));
  const ProgramResult result = vendor({});
  EXPECT_THAT(result.out, HasSubstr("repeated custom_ids: 1 lines of A, 0 of B\n"));
  EXPECT_THAT(result.out, HasSubstr("only in A: q3#2\n"));
  EXPECT_EQ(result.exit_code, 3);  // an answer was compared with nothing
}

TEST_F(LongFiles, PopulationsAreReadLineByLine) {
  // All samples of one prompt: A answers "ax" always, B in one case of ten "ay".
  write("A.jsonl", lines(false, false));
  write("B.jsonl", lines(true, false));
  const ProgramResult result = vendor({"--population", "--json", "--threads", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json document = json::parse(result.out);
  EXPECT_EQ(document["prompts"][0]["a"]["samples"], kPairs);
  EXPECT_EQ(document["prompts"][0]["b"]["unique"], 2);
  EXPECT_LE(document["prompts"][0]["p_value"], 0.01);
  EXPECT_EQ(document["verdict"], "different");
  EXPECT_EQ(vendor({"--population", "--json", "--threads", "1"}).out, result.out);
}

}  // namespace
}  // namespace driftscope::test
