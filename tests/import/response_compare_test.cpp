// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/response_compare.h"

#include <gtest/gtest.h>

#include "analysis/import/response_file.h"
#include "analysis/responses/response_lint.h"

namespace driftscope {
namespace {

// A chat answer of tokens with a logprob each, and one other token that it was chosen over.
struct Token {
  std::string text;
  double logprob;
  std::string other;
  double other_logprob;
};

Response answer(const std::vector<Token>& tokens) {
  Response response;
  response.source = "made";
  response.choices.emplace_back();
  ResponseChannel& content = response.choices[0].content;
  content.has_text = content.has_steps = true;
  for (const Token& token : tokens) {
    const auto number = [](double value) {
      return Logprob{.state = LogprobState::number, .value = value};
    };
    ResponseStep step;
    step.token.text = step.token.bytes = token.text;
    step.token.bytes_given = true;
    step.logprob = number(token.logprob);
    TokenAlternative chosen{.token = step.token, .logprob = step.logprob};
    TokenAlternative other;
    other.token.text = other.token.bytes = token.other;
    other.logprob = number(token.other_logprob);
    step.alternatives = {chosen, other};
    content.text += token.text;
    content.steps.push_back(step);
  }
  grade_response(response);
  return response;
}

// Tokens of these bytes; U+FFFD stands for bytes that were lost. The text is "é!" or what is given.
Response pieces(const std::vector<std::string>& tokens, const std::string& text = "\xC3\xA9!") {
  Response response;
  response.choices.emplace_back();
  ResponseChannel& content = response.choices[0].content;
  content.has_text = content.has_steps = true;
  content.text = text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    ResponseStep step;
    step.token.text = step.token.bytes = tokens[i];
    step.token.lossy = tokens[i].find("\xEF\xBF\xBD") != std::string::npos;
    step.logprob = {.state = LogprobState::number, .value = -0.25 * static_cast<double>(i + 1)};
    content.steps.push_back(step);
  }
  return response;
}

const std::string kLost = "\xEF\xBF\xBD";

// One token holds the character that the other side splits: "!" is the one token that both have,
// the third here and the second there.
TEST(ResponseCompare, ACharacterThatOneSideSplitsCountsOnNeither) {
  const Response whole = pieces({"\xC3\xA9", "!"});
  for (const Response& split : {pieces({"\xC3", "\xA9", "!"}), pieces({kLost, kLost, "!"})}) {
    const auto c = compare_responses(split, 0, whole, 0);
    EXPECT_EQ(c.equal_tokens, 1);
    EXPECT_EQ(c.tokens_a, 3);
    EXPECT_EQ(c.tokens_b, 2);
    ASSERT_EQ(c.drift.count, 1);
    EXPECT_DOUBLE_EQ(c.drift.max_abs, 0.25);  // -0.75 and -0.5
    EXPECT_EQ(c.drift.argmax_step, 2);
    const auto back = compare_responses(whole, 0, split, 0);
    EXPECT_EQ(back.equal_tokens, 1);
    EXPECT_EQ(back.drift.argmax_step, 1);
  }
}

// Four bytes of text in three tokens, each printed as three bytes of U+FFFD: none is behind the
// text's end.
TEST(ResponseCompare, LostBytesDoNotRunPastTheText) {
  Response lost = pieces({kLost, kLost, kLost}, "\xF0\x9F\x98\x8A");
  for (ResponseStep& step : lost.choices[0].content.steps) step.token.bytes_given = true;
  const auto c =
      compare_responses(pieces({"\xF0\x9F", "\x98", "\x8A"}, "\xF0\x9F\x98\x8A"), 0, lost, 0);
  EXPECT_EQ(c.tokens_a, 3);
  EXPECT_EQ(c.tokens_b, 3);
  EXPECT_EQ(c.equal_tokens, 3);
  EXPECT_EQ(c.drift.count, 3);
}

TEST(ResponseCompare, LostPiecesStandForAsManyPieces) {
  const auto c =
      compare_responses(pieces({"\xC3", "\xA9", "!"}), 0, pieces({kLost, kLost, "!"}), 0);
  EXPECT_EQ(c.alignment, ResponseAlignment::positions);
  EXPECT_EQ(c.equal_tokens, 3);
  // Up to where the texts part, also right behind the lost ones.
  const auto parts = compare_responses(pieces({kLost, kLost, "!"}), 0,
                                       pieces({kLost, kLost, "?"}, "\xC3\xA9?"), 0);
  EXPECT_EQ(parts.equal_tokens, 2);
  // Nothing tells where three pieces and two end: none is counted.
  const auto open = compare_responses(pieces({kLost, kLost, kLost, "!"}), 0,
                                      pieces({kLost, kLost, "?"}, "\xC3\xA9?"), 0);
  EXPECT_EQ(open.equal_tokens, 0);
}

TEST(ResponseCompare, NearTieAddsBothMargins) {
  const Response a = answer({{"x", -0.1, "y", -3.0}, {"p", -0.70, "q", -0.75}});
  const Response b = answer({{"x", -0.1, "y", -3.0}, {"q", -0.68, "p", -0.78}});
  const auto c = compare_responses(a, 0, b, 0);
  ASSERT_TRUE(c.divergence);
  EXPECT_EQ(c.divergence->step, 1);
  EXPECT_NEAR(*c.divergence->margin_a, 0.05, 1e-12);
  EXPECT_NEAR(*c.divergence->margin_b, 0.10, 1e-12);
  EXPECT_EQ(c.divergence->cause, ResponseCause::near_tie);  // 0.15 is within two bf16 steps, 0.25
  EXPECT_EQ(c.tier, Tier::different);
  ASSERT_TRUE(c.similarity);
  EXPECT_EQ(c.similarity->edit, 0.5);
}

TEST(ResponseCompare, AWideGapIsNoRounding) {
  const Response a = answer({{"p", -0.1, "q", -2.4}});
  const Response b = answer({{"q", -0.1, "p", -2.4}});
  EXPECT_EQ(compare_responses(a, 0, b, 0).divergence->cause, ResponseCause::beyond_rounding);
}

TEST(ResponseCompare, ExactTieAndSampledTokensAreNamed) {
  const Response tie_a = answer({{"p", -0.7, "q", -0.7}});
  const Response tie_b = answer({{"q", -0.7, "p", -0.7}});
  EXPECT_EQ(compare_responses(tie_a, 0, tie_b, 0).divergence->cause, ResponseCause::exact_tie);
  const Response drawn = answer({{"q", -2.0, "p", -0.2}});
  EXPECT_EQ(compare_responses(tie_a, 0, drawn, 0).divergence->cause, ResponseCause::sampler);
}

TEST(ResponseCompare, TheEndOfOneAnswerIsADivergence) {
  const Response a = answer({{"x", -0.1, "y", -3.0}});
  const Response b = answer({{"x", -0.1, "y", -3.0}, {"z", -0.1, "y", -3.0}});
  const auto c = compare_responses(a, 0, b, 0);
  EXPECT_EQ(c.divergence->step, 1);
  EXPECT_TRUE(c.divergence->text_a.empty());
  EXPECT_EQ(c.divergence->cause, ResponseCause::stopped);
}

// Without tokens a divergence is shown with the word or number that it lies in.
TEST(ResponseCompare, TextsArePartedInWholeWordsAndNumbers) {
  const auto saying = [](const std::string& text) {
    Response response;
    response.choices.emplace_back();
    response.choices[0].content.text = text;
    response.choices[0].content.has_text = true;
    return response;
  };
  struct Case {
    std::string a, b;
    std::int64_t byte;
    std::string text_a, text_b;
  };
  const std::string run(30, 'x');
  for (const Case& one :
       std::vector<Case>{{"total: 12.5 EUR", "total: 13.0 EUR", 8, "12.5 EUR", "13.0 EUR"},
                         {"total: 12.5", "total: 12.7", 10, "12.5", "12.7"},
                         {"total: -12", "total: -13", 9, "-12", "-13"},
                         {"a nearby end", "a nearly end", 6, "nearby end", "nearly end"},
                         {"caf\xC3\xA9 x", "caf\xC3\xA8 x", 4, "caf\xC3\xA9 x", "caf\xC3\xA8 x"},
                         {"1, 2", "1; 2", 1, ", 2", "; 2"},          // no word goes on
                         {"cat", "cats", 3, "", "s"},                // the end stays the end
                         {"a red", "a blue", 2, "red", "blue"},      // the whole word already
                         {run + "ab", run + "cd", 30, "ab", "cd"}})  // nobody's word
  {
    const ResponseComparison c = compare_responses(saying(one.a), 0, saying(one.b), 0);
    ASSERT_TRUE(c.divergence) << one.a;
    EXPECT_EQ(c.divergence->byte, one.byte) << one.a;
    EXPECT_EQ(c.divergence->text_a, one.text_a);
    EXPECT_EQ(c.divergence->text_b, one.text_b);
  }
}

TEST(ResponseCompare, OtherTokenizersAreAlignedByBytes) {
  const Response a = answer({{"ab", -0.1, "y", -3.0}, {"c", -0.2, "y", -3.0}});
  const Response b =
      answer({{"a", -0.1, "y", -3.0}, {"b", -0.1, "y", -3.0}, {"c", -0.3, "y", -3.0}});
  const auto c = compare_responses(a, 0, b, 0);
  EXPECT_EQ(c.alignment, ResponseAlignment::byte_offsets);
  EXPECT_EQ(c.tier, Tier::semantic);
  ASSERT_EQ(c.drift.count, 1);  // "c" begins at byte 2 in both
  EXPECT_NEAR(*c.drift.per_step[0], -0.1, 1e-12);
}

TEST(ResponseCompare, OtherPromptsAreOtherTasks) {
  Response a = answer({{"x", -0.1, "y", -3.0}});
  Response b = a;
  a.prompt_ids = {1, 2};
  b.prompt_ids = {1, 1, 2};
  EXPECT_EQ(compare_responses(a, 0, b, 0).tier, Tier::inconclusive);
}

TEST(ResponseCompare, ProbabilitiesAndLogarithmsAreNotSubtracted) {
  const Response a = answer({{"x", -0.1, "y", -3.0}});
  const Response b = answer({{"x", 0.9, "y", 0.05}});
  const auto c = compare_responses(a, 0, b, 0);
  EXPECT_EQ(c.tier, Tier::token);
  EXPECT_EQ(c.drift.count, 0);
}

}  // namespace
}  // namespace driftscope
