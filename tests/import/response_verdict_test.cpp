// SPDX-License-Identifier: Apache-2.0
// What a verdict on two answers may claim, and what takes a claim back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/responses/response_compare.h"
#include "analysis/responses/response_lint.h"
#include "analysis/responses/response_set.h"

namespace driftscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Logprob number(double value, int decimals = -1) {
  return {.state = LogprobState::number, .value = value, .decimals = decimals};
}

TokenText token(const std::string& text) {
  return {.text = text, .bytes = text, .bytes_given = true};
}

// The chosen token first, as the largest.
ResponseStep step(const std::string& chosen, Logprob value,
                  const std::vector<std::pair<std::string, Logprob>>& others = {}) {
  ResponseStep out;
  out.token = token(chosen);
  out.logprob = value;
  out.alternatives = {{out.token, value}};
  for (const auto& [text, other] : others) out.alternatives.push_back({token(text), other});
  return out;
}

Response answer(const std::vector<ResponseStep>& steps) {
  Response response;
  response.source = "made";
  response.choices.emplace_back();
  response.choices[0].finish_reason = "stop";
  ResponseChannel& content = response.choices[0].content;
  content.has_text = content.has_steps = true;
  for (const ResponseStep& one : steps) content.text += one.token.bytes;
  content.steps = steps;
  grade_response(response);
  return response;
}

Response text_only(const std::string& text) {
  Response response;
  response.choices.emplace_back();
  response.choices[0].content.text = text;
  response.choices[0].content.has_text = true;
  return response;
}

ResponseComparison compare(const Response& a, const Response& b) {
  ResponseComparison forth = compare_responses(a, 0, b, 0);
  const ResponseComparison back = compare_responses(b, 0, a, 0);
  EXPECT_EQ(forth.tier, back.tier);
  EXPECT_EQ(forth.at_best, back.at_best);
  if (forth.divergence && back.divergence) {
    EXPECT_EQ(forth.divergence->cause, back.divergence->cause);
  }
  return forth;
}

bool has(const std::vector<Finding>& findings, std::string_view id) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.id == id; });
}

const ResponseStep kFirst = step("The", number(-0.125), {{"A", number(-3.0)}});

// So many equal tokens of one value, then two that are 0.125 apart on either side.
std::pair<Response, Response> parts_after(std::size_t count, double value, double b_first) {
  std::vector<ResponseStep> a(count, step("x", number(value))), b = a;
  b.front().logprob = b.front().alternatives[0].logprob = number(b_first);
  a.push_back(step(" cat", number(-0.75), {{" dog", number(-0.8125)}}));
  b.push_back(step(" dog", number(-0.75), {{" cat", number(-0.8125)}}));
  return {answer(a), answer(b)};
}

TEST(ResponseVerdict, ATieAfterEqualValuesBeganAtItsToken) {
  const auto verdict = [](const std::pair<Response, Response>& pair) {
    auto c = compare(pair.first, pair.second);
    EXPECT_EQ(c.divergence->cause, ResponseCause::near_tie);
    return has(c.findings, "no_drift_before_the_tie");
  };
  EXPECT_TRUE(verdict(parts_after(8, -0.5, -0.5)));
  EXPECT_FALSE(verdict(parts_after(7, -0.5, -0.5)));      // too few to tell
  EXPECT_FALSE(verdict(parts_after(8, -0.5, -0.53125)));  // drift from the first token on
  EXPECT_FALSE(verdict(parts_after(8, -0.001, -0.001)));  // certain tokens show no rounding
}

TEST(ResponseVerdict, GrossDriftExcusesNoGap) {
  const Response a = answer({kFirst, step(" cat", number(-0.0625), {{" dog", number(-4.5)}})});
  const Response b = answer({step("The", number(-4.125), {{"A", number(-5.0)}}),
                             step(" dog", number(-0.0625), {{" cat", number(-3.5)}})});
  const auto c = compare(a, b);  // 4.4375 + 3.4375 apart; twice the drift before would be 8
  EXPECT_EQ(c.divergence->cause, ResponseCause::beyond_rounding);
  EXPECT_THAT(c.divergence->reason, HasSubstr("gross 4 (token 0)"));
}

TEST(ResponseVerdict, ATokenBelowTheWholeListIsNoNearTie) {
  const Response a = answer({step("p", number(-0.75), {{"q", number(-0.8125)}})});
  const Response far = answer({step("q", number(-0.0625), {{"x", number(-9.0625)}})});
  const auto c = compare(a, far);  // 0.0625 and at least 9
  EXPECT_EQ(c.divergence->cause, ResponseCause::beyond_rounding);
  EXPECT_THAT(c.divergence->reason, HasSubstr("at least 9.062"));
  const Response open = answer({step("q", number(-0.75), {{"x", number(-0.875)}})});
  EXPECT_EQ(compare(a, open).divergence->cause, ResponseCause::near_tie);
  const Response other = answer({step("p", number(-0.75), {{"z", number(-6.0)}})});
  EXPECT_EQ(compare(other, far).divergence->cause, ResponseCause::beyond_rounding);
}

TEST(ResponseVerdict, AValueThatPrintsTheSameIsANearTie) {
  const auto tied = [](const char* chosen, const char* other) {
    return answer(
        {step("The", number(-0.13, 2)), step(chosen, number(-0.7, 1), {{other, number(-0.7, 1)}})});
  };
  const auto c = compare(tied("p", "q"), tied("q", "p"));
  EXPECT_EQ(c.divergence->cause, ResponseCause::near_tie);
  EXPECT_THAT(c.divergence->reason, HasSubstr("same value as printed, to 2 decimals"));
}

TEST(ResponseVerdict, RankTwoAtTemperatureZeroIsNotSampling) {
  const Response a = answer({step("p", number(-0.5), {{"q", number(-1.0)}})});
  Response b = answer({step("q", number(-1.0), {{"p", number(-0.5)}})});
  EXPECT_EQ(compare(a, b).divergence->cause, ResponseCause::sampler);
  b.request.temperature = 0.0;
  const auto c = compare(a, b);
  EXPECT_EQ(c.divergence->cause, ResponseCause::unknown);
  EXPECT_THAT(c.divergence->reason, HasSubstr("although the temperature was 0"));
}

TEST(ResponseVerdict, ToleranceNeedsANumberAtEveryStep) {
  const Response whole = answer({kFirst, step("x", number(-0.25))});
  for (const LogprobState state :
       {LogprobState::sentinel, LogprobState::null, LogprobState::minus_infinity}) {
    const auto c = compare(whole, answer({kFirst, step("x", {.state = state})}));
    EXPECT_EQ(c.tier, Tier::token);
    EXPECT_EQ(c.at_best, Tier::tolerance);
    EXPECT_THAT(c.verdict, HasSubstr("1 of 2 logprobs is known on both sides"));
  }
  EXPECT_EQ(compare(whole, whole).tier, Tier::tolerance);
}

TEST(ResponseVerdict, OtherAlternativesAreNoTolerance) {
  const auto one = [](const std::vector<std::pair<std::string, Logprob>>& others) {
    return answer({step("x", number(-0.25), others)});
  };
  const Response a = one({{"p", number(-2.0)}, {"q", number(-4.0)}});
  const auto moved = compare(a, one({{"p", number(-2.5)}, {"q", number(-4.0)}}));
  EXPECT_EQ(moved.tier, Tier::token);
  EXPECT_EQ(moved.at_best, Tier::token);
  EXPECT_TRUE(has(moved.findings, "alternatives_differ"));
  EXPECT_THAT(moved.verdict, HasSubstr("differ, by 0.5 at token 0"));
  const auto swapped = compare(a, one({{"p", number(-2.0)}, {"z", number(-9.0)}}));
  EXPECT_THAT(swapped.verdict, HasSubstr("by at least 5 at token 0"));  // B would list q before z
  // A tie at the end of the list, and a shorter list, say nothing.
  EXPECT_EQ(compare(a, one({{"p", number(-2.0)}, {"z", number(-4.0)}})).tier, Tier::tolerance);
  EXPECT_EQ(compare(a, one({{"p", number(-2.0)}})).tier, Tier::tolerance);
}

TEST(ResponseVerdict, OtherReasoningIsNamed) {
  Response a = answer({kFirst});
  a.choices[0].reasoning = {.text = "I think X", .steps = {}, .has_text = true};
  Response b = a;
  EXPECT_EQ(compare(a, b).tier, Tier::tolerance);
  b.choices[0].reasoning.text = "I know Y";
  const auto c = compare(a, b);
  EXPECT_EQ(c.tier, Tier::token);
  EXPECT_TRUE(has(c.findings, "reasoning_differs"));
  EXPECT_THAT(c.verdict, HasSubstr("the reasoning before differs from byte 2 on"));
}

TEST(ResponseVerdict, TokensThatAreNotTheTextSettleNothing) {
  const Response a = answer({kFirst});
  Response b = a;
  b.choices[0].content.text = "Something else";
  const auto c = compare(a, b);
  EXPECT_EQ(c.tier, Tier::inconclusive);
  EXPECT_THAT(c.verdict, HasSubstr("the tokens of a side do not make up its text"));
}

TEST(ResponseVerdict, ARefusalIsNotAnAnswer) {
  const Response a = answer({kFirst});
  Response b = a;
  b.choices[0].content.text.clear();
  b.choices[0].content.has_text = false;
  b.choices[0].refusal = {.text = "The", .steps = {}, .has_text = true};
  const auto c = compare(a, b);
  EXPECT_EQ(c.tier, Tier::different);
  EXPECT_THAT(c.verdict, HasSubstr("B refuses and A answers"));
}

TEST(ResponseVerdict, AnotherEndIsInTheSentence) {
  const Response a = answer({kFirst});
  Response b = a;
  b.choices[0].finish_reason = "length";
  const auto c = compare(a, b);
  EXPECT_EQ(c.tier, Tier::token);
  EXPECT_THAT(c.verdict, HasSubstr("they ended differently (stop and length)"));
  b.choices[0].finish_reason = "end_turn";  // the same by another name
  EXPECT_EQ(compare(a, b).tier, Tier::tolerance);
}

TEST(ResponseVerdict, AbsentEvidenceContradictsNothing) {
  const auto c = compare(text_only("x"), text_only("x"));
  EXPECT_EQ(c.tier, Tier::semantic);
  EXPECT_EQ(c.at_best, Tier::tolerance);
  Response call = text_only("");
  call.choices[0].tool_calls = {{.name = "f", .arguments = "{}"}};
  EXPECT_THAT(compare(call, call).verdict, HasSubstr("the tool calls are equal"));
}

TEST(ResponseVerdict, AnErrorIsPrintedWithoutControlCharacters) {
  Response failed;
  failed.source = "made";
  failed.error = "bad\x1b[31m";
  PairedSides sides;
  pair_choices("0", failed, text_only("x"), sides);
  ASSERT_EQ(sides.pairs.size(), 1U);
  EXPECT_THAT(sides.pairs[0].comparison.verdict, Not(HasSubstr("\x1b")));
}

TEST(ResponseVerdict, CrumbsAboveZeroAreLogarithmsStill) {
  const Response crumbs = answer({step("x", number(5e-4)), step("y", number(-0.25))});
  EXPECT_EQ(crumbs.scale, LogprobScale::log_probability);
  EXPECT_TRUE(has(lint_response(crumbs), "logprobs_above_zero"));
  EXPECT_EQ(answer({step("x", number(0.9), {{"y", number(0.1)}})}).scale,
            LogprobScale::probability);
  // No probability is below 0.
  EXPECT_EQ(answer({step("x", number(0.9), {{"y", number(-0.5)}})}).scale, LogprobScale::logit);
}

}  // namespace
}  // namespace driftscope
