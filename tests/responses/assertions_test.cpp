// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/assertions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/responses/assertion_tally.h"

namespace driftscope {
namespace {

using ::testing::HasSubstr;

Response answer_with(const std::string& text) {
  Response response;
  response.source = "a.json";
  response.choices.resize(1);
  response.choices[0].content.text = text;
  response.choices[0].content.has_text = true;
  response.choices[0].finish_reason = "stop";
  return response;
}

Assertion one_check(const std::string& members) {
  auto checks = read_assertions(R"({"checks":[{"id":"c",)" + members + "}]}", "checks.json");
  if (!checks) throw std::runtime_error(checks.error().message);
  return (*checks)[0];
}

CheckResult result_of(const std::string& members, const Response& response) {
  return check_answer(one_check(members), {&response, 0});
}

std::string outcome_of(const std::string& members, const std::string& text) {
  return std::string(name_of(result_of(members, answer_with(text)).outcome));
}

TEST(Assertions, TextKinds) {
  EXPECT_EQ(outcome_of(R"("kind":"contains","text":"42")", "it is 42"), "passed");
  EXPECT_EQ(outcome_of(R"("kind":"contains","text":"42","negate":true)", "it is 42"), "failed");
  EXPECT_EQ(outcome_of(R"("kind":"contains","text":"43","negate":true)", "it is 42"), "passed");
  EXPECT_EQ(outcome_of(R"("kind":"equals","text":"a")", "a "), "failed");
  EXPECT_EQ(outcome_of(R"("kind":"regex","pattern":"^[A-Z]{3}-\\d+$")", "ABC-12"), "passed");
  EXPECT_EQ(outcome_of(R"("kind":"regex","pattern":"^[A-Z]{3}-\\d+$")", "ABC-12\n"), "failed");
  EXPECT_EQ(outcome_of(R"("kind":"regex","pattern":"a")", "\xff"), "not_applicable");
  // Neither found nor absent: a pattern that gives up is no pass, also where it must not match.
  EXPECT_EQ(
      outcome_of(R"("kind":"regex","pattern":"^(a+)+$","negate":true)", std::string(60, 'a') + "b"),
      "not_applicable");
  EXPECT_EQ(outcome_of(R"("kind":"length","maximum":2)", "äö"), "passed");
  EXPECT_EQ(outcome_of(R"("kind":"length","minimum":3)", "äö"), "failed");
}

TEST(Assertions, NumberKinds) {
  const char* text = "1,000 of 12.50, so 8 percent";
  EXPECT_EQ(outcome_of(R"("kind":"number_near","value":12.4,"tolerance":0.2)", text), "passed");
  EXPECT_EQ(outcome_of(R"("kind":"number_near","value":12.4,"tolerance":0.05)", text), "failed");
  EXPECT_EQ(outcome_of(R"("kind":"number_near","value":8,"pick":"last")", text), "passed");
  EXPECT_EQ(outcome_of(R"("kind":"number_near","value":1000,"pick":"first")", text), "passed");
  EXPECT_EQ(outcome_of(R"("kind":"number_near","value":8,"pick":"only")", text), "failed");
  EXPECT_EQ(outcome_of(R"("kind":"number_near","value":8)", "none"), "failed");
  EXPECT_EQ(outcome_of(R"("kind":"numbers_equal","values":[1000,"12.5",8])", text), "passed");
  EXPECT_EQ(outcome_of(R"("kind":"numbers_equal","values":[1000,8])", text), "failed");
}

TEST(Assertions, JsonKinds) {
  const char* text = R"( {"total":12.5,"items":[{"n":1},{"n":1}]} )";
  EXPECT_EQ(outcome_of(R"("kind":"json")", text), "passed");
  EXPECT_EQ(outcome_of(R"("kind":"json")", "{\"a\":1} and more"), "failed");
  EXPECT_EQ(outcome_of(R"("kind":"json")", R"({"a":1,"a":2})"), "failed");
  EXPECT_EQ(outcome_of(R"("kind":"json")", R"([{"a":1},{"a":2}])"), "passed");
  EXPECT_EQ(outcome_of(R"("kind":"json","fenced":true)", "So:\n```json\n[1]\n```\nbye"), "passed");
  EXPECT_EQ(outcome_of(R"("kind":"json")", "So:\n```json\n[1]\n```\nbye"), "failed");
  EXPECT_EQ(outcome_of(R"("kind":"json_path_equals","path":"$.items[*].n","value":1)", text),
            "passed");
  EXPECT_EQ(outcome_of(R"("kind":"json_path_equals","path":"$.total","value":12)", text), "failed");
  EXPECT_EQ(
      outcome_of(R"("kind":"json_path_equals","path":"$.total","value":12,"tolerance":0.5)", text),
      "passed");
  EXPECT_EQ(outcome_of(R"("kind":"json_path_equals","path":"$.none","value":12)", text), "failed");
  EXPECT_EQ(outcome_of(R"("kind":"json_path_exists","path":"$..n","minimum":3)", text), "failed");
  const CheckResult result = result_of(
      R"("kind":"json_schema","schema":{"properties":{"items":{"items":{"properties":{"n":{"type":"string"}}}}}})",
      answer_with(text));
  EXPECT_EQ(result.outcome, CheckOutcome::failed);
  EXPECT_EQ(result.place, "content at /items/0/n");
  EXPECT_EQ(outcome_of(R"("kind":"json")", std::string(5000, '[')), "failed");
}

TEST(Assertions, WhereAndWhetherACheckApplies) {
  Response response = answer_with("text");
  response.custom_id = "q1";
  response.choices[0].tool_calls = {{"pay", R"({"sum":3})"}, {"note", "no json"}};
  const auto outcome = [&](const std::string& members) {
    return result_of(members, response).outcome;
  };
  EXPECT_EQ(outcome(R"("kind":"json","where":"tool_calls")"), CheckOutcome::failed);
  EXPECT_EQ(outcome(R"("kind":"json","where":"tool_calls","tool":"pay")"), CheckOutcome::passed);
  EXPECT_EQ(outcome(R"("kind":"json","where":"tool_calls","tool":"ask")"), CheckOutcome::failed);
  EXPECT_EQ(outcome(R"("kind":"tool_called","value":"pay")"), CheckOutcome::passed);
  EXPECT_EQ(outcome(R"("kind":"tool_called","value":"ask")"), CheckOutcome::failed);
  EXPECT_EQ(outcome(R"("kind":"finish","value":"stop")"), CheckOutcome::passed);
  EXPECT_EQ(outcome(R"("kind":"finish","value":"length")"), CheckOutcome::failed);
  EXPECT_EQ(outcome(R"("kind":"contains","text":"x","where":"reasoning")"),
            CheckOutcome::not_applicable);
  EXPECT_EQ(outcome(R"("kind":"contains","text":"x","custom_ids":["q2"])"),
            CheckOutcome::not_applicable);
  EXPECT_EQ(outcome(R"("kind":"contains","text":"t","custom_ids":["q1"])"), CheckOutcome::passed);
  // No content is no pass.
  response.choices[0].content = {};
  const CheckResult missing = result_of(R"("kind":"contains","text":"x")", response);
  EXPECT_EQ(missing.outcome, CheckOutcome::failed);
  EXPECT_THAT(missing.reason, HasSubstr("calls tools"));
  response.error = "overloaded";
  EXPECT_EQ(outcome(R"("kind":"contains","text":"x")"), CheckOutcome::not_applicable);
}

TEST(Assertions, PairsAreComparedField) {
  const Response a = answer_with(R"({"total":10,"who":"A","n":[1,2]})");
  const Response b = answer_with(R"({"total":10.0,"who":"B","n":[1,3]})");
  const auto outcome = [&](const std::string& members) {
    return check_pair(one_check(members), {&a, 0}, {&b, 0});
  };
  EXPECT_EQ(outcome(R"("kind":"pair_fields_equal","paths":["$.total"])").outcome,
            CheckOutcome::passed);
  const CheckResult other = outcome(R"("kind":"pair_fields_equal","paths":["$.total","$.n[*]"])");
  EXPECT_EQ(other.outcome, CheckOutcome::failed);
  EXPECT_EQ(other.place, "$['n'][1]");
  EXPECT_EQ(other.reason, "is 2 in A and 3 in B");
  EXPECT_EQ(outcome(R"("kind":"pair_fields_equal","paths":["$.n"],"tolerance":1)").outcome,
            CheckOutcome::passed);
  EXPECT_EQ(outcome(R"("kind":"pair_numbers_equal")").outcome, CheckOutcome::failed);
  // 2 insertions, 2 replacements in 34 characters.
  EXPECT_EQ(outcome(R"("kind":"pair_edit","minimum":0.8823)").outcome, CheckOutcome::passed);
  EXPECT_EQ(outcome(R"("kind":"pair_edit","minimum":0.8824)").outcome, CheckOutcome::failed);
  EXPECT_EQ(outcome(R"("kind":"pair_chrf","minimum":1)").outcome, CheckOutcome::failed);
}

TEST(Assertions, AFileThatSaysSomethingElseIsRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"checks":[]})", R"({"checks":[{"kind":"json"}]})",
        R"({"checks":[{"id":"a","kind":"jsn"}]})",
        R"({"checks":[{"id":"a","kind":"json"},{"id":"a","kind":"json"}]})",
        R"({"checks":[{"id":"a","kind":"contains"}]})",
        R"({"checks":[{"id":"a","kind":"contains","text":"x","tolerance":1}]})",
        R"({"checks":[{"id":"a","kind":"contains","txt":"x"}]})",
        R"({"checks":[{"id":"a","kind":"json","negate":true}]})",
        R"({"checks":[{"id":"a","kind":"regex","pattern":"("}]})",
        R"({"checks":[{"id":"a","kind":"json_path_equals","path":"a","value":1}]})",
        R"({"checks":[{"id":"a","kind":"json_schema","schema":{"format":"date"}}]})",
        R"({"checks":[{"id":"a","kind":"json","min_rate":2}]})",
        R"({"checks":[{"id":"a","kind":"json","tool":"t"}]})",
        R"({"checks":[{"id":"a","kind":"pair_edit","minimum":1,"where":"tool_calls"}]})",
        R"({"checks":[{"id":"a","kind":"json"}],"more":1})"}) {
    const auto read = read_assertions(text, "c.json");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().kind, ErrorKind::malformed);
    EXPECT_THAT(read.error().message, HasSubstr("c.json")) << text;
  }
}

// Fisher's tea: 3 of 4 against 1 of 4 gives 34 of 70; two-sided all tables but the middle one.
TEST(FisherExact, TablesThatAreKnown) {
  EXPECT_NEAR(fisher_exact(3, 1, 1, 3), 34.0 / 70.0, 1e-12);
  EXPECT_NEAR(fisher_exact(4, 0, 0, 4), 2.0 / 70.0, 1e-12);
  EXPECT_NEAR(fisher_exact(2, 2, 2, 2), 1.0, 1e-12);
  EXPECT_EQ(fisher_exact(5, 0, 0, 0), 1.0);
  // 2 (C(10,1) C(14,11) + C(10,0) C(14,12)) / C(24,12): 12 of 24 pass, so both tails are alike.
  EXPECT_NEAR(fisher_exact(1, 9, 11, 3), 0.002759456, 1e-9);
}

TEST(CheckTally, RatesTestsAndVerdict) {
  const auto checks = read_assertions(
      R"({"checks":[{"id":"yes","kind":"contains","text":"y","min_rate":0.5},
                    {"id":"json","kind":"json","custom_ids":["none"]},
                    {"id":"same","kind":"pair_numbers_equal"}]})",
      "c.json");
  ASSERT_TRUE(checks);
  std::vector<std::vector<Response>> sides(2);
  for (int i = 0; i < 10; ++i) {
    sides[0].push_back(answer_with(i == 0 ? "y" : "n"));
    sides[1].push_back(answer_with(i < 8 ? "y" : "n 1"));
  }
  const CheckReport report = hold_checks(*checks, sides);
  EXPECT_TRUE(report.failed);
  EXPECT_TRUE(report.unknown);
  ASSERT_EQ(report.checks.size(), 3U);
  EXPECT_EQ(report.checks[0].sides[0].passed.hits, 1);
  EXPECT_FALSE(report.checks[0].sides[0].met);
  EXPECT_TRUE(report.checks[0].sides[1].met);
  EXPECT_EQ(report.checks[0].sides[0].failures.size(), 9U);
  EXPECT_NEAR(*report.checks[0].p_value, fisher_exact(1, 9, 8, 2), 1e-15);
  EXPECT_EQ(*report.checks[0].corrected_p, *report.checks[0].p_value);  // the only one
  EXPECT_FALSE(report.checks[1].p_value);
  EXPECT_EQ(report.checks[1].sides[0].not_applicable, 10);
  EXPECT_EQ(report.checks[2].sides[0].passed.count, 10);
  EXPECT_EQ(report.checks[2].sides[0].passed.hits, 8);
  EXPECT_EQ(report.answer_count, 30);
  EXPECT_EQ(check_report_json(report)["verdict"], "failed");
  EXPECT_THAT(check_report_text(report), HasSubstr("A: 1 of 10 pass (10.0%, 1.8 to 40.4%)"));
}

TEST(CheckTally, ErrorsAreNoPasses) {
  const auto checks =
      read_assertions(R"({"checks":[{"id":"yes","kind":"contains","text":"y"}]})", "c.json");
  ASSERT_TRUE(checks);
  Response error;
  error.error = "overloaded";
  std::vector<std::vector<Response>> sides(2, {answer_with("y"), answer_with("y")});
  EXPECT_FALSE(hold_checks(*checks, sides).unknown);
  sides[1].push_back(error);
  const CheckReport report = hold_checks(*checks, sides);
  EXPECT_FALSE(report.failed);
  EXPECT_TRUE(report.unknown);
  const auto document = check_report_json(report);
  EXPECT_EQ(document["verdict"], "inconclusive");
  EXPECT_EQ(document["not_answered"][0]["errors"], 0);
  EXPECT_EQ(document["not_answered"][1]["errors"], 1);
  EXPECT_EQ(document["not_answered"][1]["answers"], 3);
  EXPECT_THAT(check_report_text(report), HasSubstr("1 of 3 answers of B is an error"));
  // What fails, fails whatever else was not answered.
  sides[0].push_back(answer_with("n"));
  EXPECT_TRUE(hold_checks(*checks, sides).failed);
}

}  // namespace
}  // namespace driftscope
