// SPDX-License-Identifier: Apache-2.0
// Where bytes were lost, the prompt is echoed or a text is long: what is still known, and no more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/import/response_file.h"
#include "analysis/responses/response_compare.h"
#include "analysis/responses/response_documents.h"
#include "analysis/responses/response_lint.h"
#include "analysis/responses/similarity.h"

namespace driftscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kLost = "\xEF\xBF\xBD";

Logprob number(double value, int decimals = -1) {
  return {.state = LogprobState::number, .value = value, .decimals = decimals};
}

struct Listed {
  std::string token;
  double logprob = -0.5;
  std::string other = {};
  double other_logprob = 0.0;
  int decimals = -1;
};

std::vector<ResponseStep> steps(const std::vector<Listed>& tokens) {
  std::vector<ResponseStep> out;
  for (const Listed& one : tokens) {
    ResponseStep step;
    step.token.text = step.token.bytes = one.token;
    step.logprob = number(one.logprob, one.decimals);
    step.alternatives = {{step.token, step.logprob}};
    if (!one.other.empty()) {
      step.alternatives.push_back(
          {{.text = one.other, .bytes = one.other}, number(one.other_logprob, one.decimals)});
    }
    out.push_back(std::move(step));
  }
  return out;
}

Response answer(const std::optional<std::string>& text, const std::vector<Listed>& tokens) {
  Response response;
  response.choices.emplace_back();
  ResponseChannel& content = response.choices[0].content;
  content.has_text = text.has_value();
  content.has_steps = true;
  content.text = text.value_or("");
  content.steps = steps(tokens);
  grade_response(response);
  return response;
}

ResponseComparison compare(const Response& a, const Response& b) {
  return compare_responses(a, 0, b, 0);
}

bool has(const std::vector<Finding>& findings, std::string_view id) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.id == id; });
}

// ---- lost bytes ----

// "é" and "猫" in two tokens each: what follows stands in other texts.
TEST(LostBytes, NothingIsPairedPastWhereTheTextsPart) {
  const auto c =
      compare(answer("I é cat sat", {{"I "}, {kLost}, {kLost}, {" cat", -0.25}, {" sat"}}),
              answer("I 猫 cat ran", {{"I "}, {kLost}, {kLost}, {" cat", -6.25}, {" ran"}}));
  EXPECT_EQ(c.alignment, ResponseAlignment::positions);
  EXPECT_EQ(c.equal_tokens, 1);
  EXPECT_EQ(c.drift.count, 1);
  EXPECT_EQ(c.drift.max_abs, 0.0);
  ASSERT_TRUE(c.divergence);
  EXPECT_EQ(c.divergence->byte, 2);
  EXPECT_EQ(c.divergence->step, 1);
}

// C3 A9 and C3 A8: the first bytes are the same.
TEST(LostBytes, TextsMayPartInsideACharacter) {
  const auto c = compare(answer("I é", {{"I "}, {kLost, -0.5}, {kLost, -0.5}}),
                         answer("I è", {{"I "}, {kLost, -0.75}, {kLost, -3.0}}));
  EXPECT_EQ(c.equal_tokens, 2);
  EXPECT_EQ(c.drift.max_abs, 0.25);
  ASSERT_TRUE(c.divergence);
  EXPECT_EQ(c.divergence->byte, 3);
  EXPECT_EQ(c.divergence->step, 2);
  EXPECT_EQ(c.divergence->text_a, "é");
  EXPECT_EQ(c.divergence->text_b, "è");
}

TEST(LostBytes, OtherWordsAreNotSkipped) {
  const auto c = compare(
      answer("I é the cat", {{"I "}, {kLost}, {kLost}, {" the", -0.25}, {" cat"}}),
      answer("I é x y the cat", {{"I "}, {kLost}, {" x"}, {" y"}, {" the", -9.25}, {" cat"}}));
  EXPECT_EQ(c.equal_tokens, 1);  // "é" is two tokens and one
  EXPECT_EQ(c.drift.max_abs, 0.0);
  ASSERT_TRUE(c.divergence);
  EXPECT_EQ(c.divergence->step, 3);
  EXPECT_EQ(c.divergence->step_b, 2);
  EXPECT_EQ(c.divergence->text_a, " the");
  EXPECT_EQ(c.divergence->text_b, " x");
}

// Each lists the other's token 1/64 below its own; B holds the whole character in one token.
TEST(LostBytes, TheMarginsBehindThemAreFound) {
  const auto c = compare(answer("é cat", {{kLost}, {kLost}, {" cat", -0.6875, " dog", -0.703125}}),
                         answer("é dog", {{"é"}, {" dog", -0.6875, " cat", -0.703125}}));
  ASSERT_TRUE(c.divergence);
  EXPECT_EQ(c.divergence->step, 2);
  EXPECT_EQ(c.divergence->step_b, 1);
  ASSERT_TRUE(c.divergence->margin_a && c.divergence->margin_b);
  EXPECT_EQ(*c.divergence->margin_a, 0.015625);
  EXPECT_EQ(*c.divergence->margin_b, 0.015625);
  EXPECT_EQ(c.divergence->cause, ResponseCause::near_tie);
  EXPECT_THAT(c.divergence->reason, HasSubstr("drift before is not known"));
}

// U+1F60A is F0 9F 98 8A: where its three tokens end inside is not known, the next one's place is.
TEST(LostBytes, AKnownTokenSaysWhereTheLostOnesEnd) {
  const Response a =
      answer("\xF0\x9F\x98\x8A\xC3\xA9 x", {{kLost}, {kLost}, {kLost}, {"é"}, {" x"}});
  const Response b =
      answer("\xF0\x9F\x98\x8A\xC3\xA9 x", {{"\xF0\x9F\x98\x8A"}, {kLost}, {kLost}, {" x"}});
  EXPECT_EQ(compare(a, b).equal_tokens, 1);  // " x": the characters are split on one side each
  EXPECT_EQ(compare(a, a).equal_tokens, 5);
}

TEST(LostBytes, AStrippedSpaceAtTheFrontCountsAsNothing) {
  const Response a = answer("I é!", {{" I "}, {kLost}, {kLost}, {"!"}});
  EXPECT_EQ(compare(a, a).equal_tokens, 4);
}

// ---- U+FFFD on both sides ----

TEST(ReplacementCharacters, AreNotKnownToBeEqual) {
  const Response cut = answer("a" + kLost, {{"a"}, {kLost}});
  const Response no_text = answer(std::nullopt, {{"a"}, {kLost}});
  Response given = cut;  // the bytes of the sign itself: a server prints the text's bytes
  for (ResponseStep& step : given.choices[0].content.steps) step.token.bytes_given = true;
  grade_response(given);
  for (const Response& one : {cut, no_text, given}) {
    const auto c = compare(one, one);
    EXPECT_EQ(c.tier, Tier::semantic);
    EXPECT_EQ(c.at_best, Tier::tolerance);
    EXPECT_THAT(c.verdict, HasSubstr("other ones would show the same"));
  }
  EXPECT_TRUE(has(lint_response(no_text), "lossy_token_bytes"));
  EXPECT_FALSE(has(lint_response(cut), "lossy_token_bytes"));  // the text may mean it
  const auto drifted = compare(cut, answer("a" + kLost, {{"a", -0.75}, {kLost}}));
  EXPECT_EQ(drifted.tier, Tier::semantic);
  EXPECT_EQ(drifted.at_best, Tier::token);
}

// "é" in its two bytes: where pieces are listed as what they are, U+FFFD is a character.
TEST(ReplacementCharacters, AreRealWherePiecesAreListed) {
  const Response real = answer("é" + kLost, {{"\xC3"}, {"\xA9"}, {kLost}});
  EXPECT_EQ(compare(real, real).tier, Tier::tolerance);
}

TEST(ReplacementCharacters, WithIdsAreToldApartByThem) {
  Response one = answer("a" + kLost, {{"a"}, {kLost}});
  one.choices[0].content.steps[0].token.id = 1;
  one.choices[0].content.steps[1].token.id = 2;
  EXPECT_EQ(compare(one, one).tier, Tier::tolerance);
}

// ---- words for what is not known ----

TEST(UnknownDrift, IsNotCalledZero) {
  const Response a = answer("x p", {{"x"}, {" p", -0.75, " q", -0.8125}});
  const Response b = answer("x q", {{"x"}, {" q", -0.75, " p", -0.8125}});
  EXPECT_THAT(compare(a, b).divergence->reason, HasSubstr("drift before was at most 0"));
  Response unknown = a;
  unknown.choices[0].content.steps[0].logprob = {.state = LogprobState::null};
  EXPECT_THAT(compare(unknown, b).divergence->reason, HasSubstr("drift before is not known"));
  const Response c = answer("p", {{"p", -0.75, "q", -0.8125}});
  const Response d = answer("q", {{"q", -0.75, "p", -0.8125}});
  EXPECT_THAT(compare(c, d).divergence->reason, HasSubstr("no token of the answers comes before"));
}

TEST(UnknownDrift, ScalesAreNamed) {
  const auto text_of = [](const ResponseComparison& c) {
    for (const Finding& finding : c.findings) {
      if (finding.id == "numbers_not_comparable") return finding.text;
    }
    return std::string();
  };
  const Response logits = answer("x", {{"x", 17.5, "y", 16.0}});
  const Response logarithms = answer("x", {{"x", -0.25, "y", -2.0}});
  const Response shares = answer("x", {{"x", 0.75, "y", 0.125}});
  EXPECT_THAT(text_of(compare(logits, logits)), HasSubstr("fields of both sides hold logits"));
  EXPECT_THAT(text_of(compare(shares, shares)), HasSubstr("both sides hold probabilities"));
  EXPECT_THAT(text_of(compare(logits, logarithms)),
              HasSubstr("A's logprob fields hold logits and B's log probabilities"));
}

// ---- similarity of long texts ----

// Characters that repeat after 9973 without a space.
std::string long_text(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t code = 0x4E00 + i * i % 9973;
    text += static_cast<char>(0xE0U | (code >> 12U));
    text += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
    text += static_cast<char>(0x80U | (code & 0x3FU));
  }
  return text;
}

// Two characters that the other text does not have, one at each end: two edits and no fewer, by
// bit vectors and, where those take too much, by the furthest rows.
TEST(LongTexts, AreComparedByCharacters) {
  for (const std::size_t count : {std::size_t{25'000}, std::size_t{90'000}}) {
    const std::string middle = long_text(count - 2);
    const Similarity s = compare_texts("X" + middle + "X", "Y" + middle + "Y");
    ASSERT_TRUE(s.edit);
    EXPECT_DOUBLE_EQ(*s.edit, 1.0 - 2.0 / static_cast<double>(count));
  }
}

// One character of 20,000.
TEST(LongTexts, OfWhichSomethingDiffersAreNotRoundedToAll) {
  ResponseComparison c;
  c.similarity = compare_texts("X" + std::string(19'999, 'a'), "Y" + std::string(19'999, 'a'));
  EXPECT_THAT(comparison_text(c), HasSubstr("agree by 99.9950% in characters"));
  c.similarity->edit = 1.0 - 1e-12;
  EXPECT_THAT(comparison_text(c), HasSubstr("agree by 99.9999% in characters"));
}

// One character more at the front, one less at the end, and one replaced between. No fewer will do:
// "Y" and "Z" are not in the other text, and a replaced one leaves the lengths unequal.
TEST(LongTexts, InsertedAndDeletedCharactersCount) {
  const std::string half = long_text(45'000);
  const Similarity s = compare_texts(half + "X" + half + "W", "Y" + half + "Z" + half);
  ASSERT_TRUE(s.edit);
  EXPECT_DOUBLE_EQ(*s.edit, 1.0 - 3.0 / 90'002.0);
}

TEST(LongTexts, AreNotGuessedWhereTheWorkIsTooMuch) {
  const Similarity s = compare_texts(std::string(100'000, 'a'), std::string(100'000, 'b'));
  EXPECT_FALSE(s.edit);
  EXPECT_EQ(s.chrf, 0.0);
}

// ---- echoed prompts ----

Response exchange(const std::string& request, const std::string& text, const std::string& tokens,
                  const std::string& usage) {
  const std::string file =
      R"({"request":{)" + request +
      R"(},"response":{"id":"c","object":"text_completion","choices":[{"index":0,)"
      R"("text":")" +
      text + R"(","logprobs":{"tokens":[)" + tokens +
      R"(],"token_logprobs":[null,-0.5,-0.25,-0.125]},"finish_reason":"stop"}])" + usage + "}}";
  auto responses = read_responses(file, "made");
  EXPECT_TRUE(responses) << (responses ? "" : responses.error().message);
  if (!responses || responses->empty()) return {};
  grade_response((*responses)[0]);
  return (*responses)[0];
}

std::size_t prompt_tokens(const Response& response) { return response.prompt_steps.size(); }

const std::string kTokens = R"("a"," b"," c"," d")";
const std::string kUsage = R"(,"usage":{"prompt_tokens":2,"completion_tokens":)";

TEST(Echo, TheRequestSaysWhetherAndHowLong) {
  const auto whole = [](const Response& response) {
    return prompt_tokens(response) == 0 && response.choices[0].content.steps.size() == 4 &&
           response.warnings.empty();
  };
  EXPECT_TRUE(whole(exchange(R"("prompt":"x y","echo":false)", "a b c d", kTokens, "")));
  EXPECT_TRUE(whole(exchange(R"("echo":false)", "a b c d", kTokens, kUsage + "2}")));
  EXPECT_TRUE(whole(exchange(R"("prompt":"x y")", "a b c d", kTokens, "")));  // not at the front
  const Response split = exchange(R"("prompt":"a b c","echo":true)", "a b c d", kTokens, "");
  EXPECT_EQ(prompt_tokens(split), 3U);
  EXPECT_EQ(split.prompt_text, "a b c");
  EXPECT_EQ(split.choices[0].content.text, " d");
  // The prompt ends inside a token, and no count says more.
  const Response inside = exchange(R"("prompt":"a b ","echo":true)", "a b c d", kTokens, "");
  EXPECT_EQ(prompt_tokens(inside), 0U);
  ASSERT_EQ(inside.warnings.size(), 1U);
  EXPECT_EQ(inside.warnings[0].id, "echo_unsplit");
}

// The text lacks the mark before the prompt.
TEST(Echo, AMarkBeforeThePromptIsOfThePrompt) {
  const Response split = exchange(R"("prompt":"a b")", "a b c", R"("<s>","a"," b"," c")", "");
  EXPECT_EQ(prompt_tokens(split), 3U);
  EXPECT_EQ(split.choices[0].content.text, " c");
}

TEST(Echo, CountsTellAListOfTheAnswerAlone) {
  EXPECT_EQ(prompt_tokens(exchange("", "a b c d", kTokens, kUsage + "2}")), 2U);
  EXPECT_EQ(prompt_tokens(exchange("", "a b c d", kTokens, kUsage + "4}")), 0U);
  EXPECT_EQ(prompt_tokens(exchange("", "a b c d", kTokens, kUsage + "5}")), 0U);  // an end mark
}

// Both begin with the prompt and drift from token 1 on; token 2 has a logprob of -16.
std::pair<Response, Response> unsplit() {
  std::pair<Response, Response> sides{answer("a b c", {{"a"}, {" b", -0.5}, {" c", -16.0}}),
                                      answer("a b c", {{"a"}, {" b", -0.75}, {" c", -16.0}})};
  for (Response* side : {&sides.first, &sides.second}) {
    side->choices[0].content.steps[0].logprob = {.state = LogprobState::null};
    side->warn("echo_unsplit", "");
  }
  return sides;
}

TEST(Echo, AHotSamplerDrawsWhatIsUnlikely) {
  auto [a, b] = unsplit();
  EXPECT_TRUE(has(compare(a, b).findings, "prefill_drift"));
  a.temperature = 2.0;
  EXPECT_FALSE(has(compare(a, b).findings, "prefill_drift"));
  EXPECT_TRUE(has(compare(a, b).findings, "echo_not_split"));
}

// ---- no drift before a tie ----

std::pair<Response, Response> tie_after(int decimals, double other_of_b = -2.0) {
  std::vector<Listed> a(8, {"x", -0.5, "y", -2.0, decimals});
  std::vector<Listed> b(8, {"x", -0.5, "y", other_of_b, decimals});
  a.push_back({" p", -0.75, " q", -0.8125, decimals});
  b.push_back({" q", -0.75, " p", -0.8125, decimals});
  return {answer("xxxxxxxx p", a), answer("xxxxxxxx q", b)};
}

bool began_at_the_tie(const std::pair<Response, Response>& sides) {
  const auto c = compare(sides.first, sides.second);
  EXPECT_EQ(c.divergence->cause, ResponseCause::near_tie);
  return has(c.findings, "no_drift_before_the_tie");
}

TEST(NoDriftBeforeTheTie, IsSaidOfAllThatIsKnown) {
  EXPECT_TRUE(began_at_the_tie(tie_after(-1)));
  EXPECT_FALSE(began_at_the_tie(tie_after(-1, -2.25)));  // what is listed beside drifts
  auto prompt = tie_after(-1);
  prompt.first.prompt_steps = steps({{"P", -1.0}});
  prompt.second.prompt_steps = steps({{"P", -1.5}});
  EXPECT_FALSE(began_at_the_tie(prompt));
  auto reasoning = tie_after(-1);
  reasoning.first.choices[0].reasoning = {.text = "r", .steps = steps({{"r", -1.0}})};
  reasoning.second.choices[0].reasoning = {.text = "r", .steps = steps({{"r", -1.5}})};
  for (Response* side : {&reasoning.first, &reasoning.second}) {
    side->choices[0].reasoning.has_text = side->choices[0].reasoning.has_steps = true;
  }
  EXPECT_FALSE(began_at_the_tie(reasoning));
}

// Half a unit of the third decimal is 5e-4 and of the sixth 5e-7; rounding moves a value by 1e-4.
TEST(NoDriftBeforeTheTie, NeedsDecimalsThatShowRounding) {
  const auto printed = [](int decimals) {
    auto sides = tie_after(decimals);
    for (Response* side : {&sides.first, &sides.second}) {
      for (ResponseStep& step : side->choices[0].content.steps) step.logprob.decimals = decimals;
    }
    return sides;
  };
  EXPECT_FALSE(began_at_the_tie(printed(3)));
  EXPECT_TRUE(began_at_the_tie(printed(6)));
}

// ---- marks behind the text ----

TEST(EndMarks, OtherOnesAreNamed) {
  const auto ended = [](const std::string& mark) {
    Response response = answer("x", {{"x"}, {mark}});
    response.choices[0].content.steps[1].special = true;
    return response;
  };
  const auto c = compare(ended("<|eot_id|>"), ended("<|end|>"));
  EXPECT_EQ(c.tier, Tier::token);
  EXPECT_TRUE(has(c.findings, "end_marks_differ"));
  EXPECT_THAT(c.verdict, HasSubstr("\"<|eot_id|>\" and \"<|end|>\""));
  const auto same = compare(ended("<|end|>"), ended("<|end|>"));
  EXPECT_EQ(same.tier, Tier::tolerance);
  EXPECT_THAT(same.verdict, Not(HasSubstr("behind")));
}

}  // namespace
}  // namespace driftscope
