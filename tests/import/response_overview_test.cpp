// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/response_overview.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace driftscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Response saying(const std::string& source, const std::string& text) {
  Response response;
  response.source = source;
  response.choices.emplace_back();
  response.choices[0].content.text = text;
  response.choices[0].content.has_text = true;
  return response;
}

TEST(Overview, LongAnswersAreShownFromWhereTheyPart) {
  const std::string common(100, 'x');
  const std::vector<Response> responses{saying("a", common + "cat"), saying("b", common + "cat"),
                                        saying("c", common + "dog")};
  const auto answers = answers_of(responses);
  const std::string text = clusters_text(answers, cluster_answers(answers));
  EXPECT_THAT(text, HasSubstr("    2 times: a, b\n"));
  // Both at the same place, 20 bytes before it.
  EXPECT_THAT(text, HasSubstr("  … \"" + std::string(20, 'x') + "cat\"\n"));
  EXPECT_THAT(text, HasSubstr("    1 time : c; parts from the largest group at byte 100: "));
  EXPECT_THAT(text, HasSubstr("  … \"" + std::string(20, 'x') + "dog\"\n"));
}

// Tokens "one", " two" and so on of probability 1/2, the last of the text of the alternative given.
Response of_tokens(const std::string& source, const std::vector<std::string>& tokens,
                   const std::string& other, double gap) {
  Response response = saying(source, "");
  ResponseChannel& content = response.choices[0].content;
  content.has_steps = true;
  for (const std::string& token : tokens) {
    ResponseStep step;
    step.token = {.text = token, .bytes = token};
    step.logprob = {.state = LogprobState::number, .value = -0.6875};
    step.alternatives.push_back({step.token, step.logprob});
    content.text += token;
    content.steps.push_back(step);
  }
  ResponseStep& last = content.steps.back();
  last.alternatives.push_back({{.text = other, .bytes = other},
                               {.state = LogprobState::number, .value = last.logprob.value - gap}});
  return response;
}

TEST(Overview, AGroupSaysWhoWhereWhyAndWhatVersion) {
  std::vector<Response> responses;
  for (int i = 0; i < 10; ++i)
    responses.push_back(of_tokens("r" + std::to_string(i), {"lies", " on"}, " near", 0.0078125));
  responses.push_back(of_tokens("odd", {"lies", " near"}, " on", 0.0078125));
  for (Response& response : responses) response.fingerprint = "fp_a";
  responses.back().fingerprint = "fp_b";
  const auto answers = answers_of(responses);
  const std::string text = clusters_text(answers, cluster_answers(answers));
  EXPECT_THAT(text, HasSubstr("   10 times: r0, r1, r2, r3, r4, r5, r6, r7 and 2 more\n"));
  EXPECT_THAT(text, HasSubstr("    1 time : odd; parts from the largest group at token 1: "
                              "\" on\" there, \" near\" here (near_tie); system_fingerprint fp_b, "
                              "there fp_a\n"));
}

// A group that parts far behind the others: the largest is shown there, too.
TEST(Overview, TheLargestIsShownWhereEachGroupParts) {
  const std::string same = "abcdefghijklmnopqrstuvwxyz";
  const std::string largest = same + same + same + same + " end";
  const std::vector<Response> responses{saying("a", largest), saying("b", largest),
                                        saying("c", "other"),
                                        saying("d", same + same + same + same + " fin")};
  const auto answers = answers_of(responses);
  const std::string text = clusters_text(answers, cluster_answers(answers));
  EXPECT_THAT(text, HasSubstr("there … \"" + largest.substr(105 - 20, 20) + "end\"\n"));
  EXPECT_THAT(text, HasSubstr("… \"" + largest.substr(105 - 20, 20) + "fin\"\n"));
}

TEST(Overview, GroupsOfOtherQuestionsDoNotPart) {
  std::vector<Response> responses{saying("a", "red"), saying("b", "red"), saying("c", "dog")};
  responses[0].custom_id = responses[1].custom_id = "p1";
  responses[2].custom_id = "p2";
  const auto answers = answers_of(responses);
  const std::string text = clusters_text(answers, cluster_answers(answers));
  EXPECT_THAT(text, HasSubstr("c; of another question"));
  EXPECT_THAT(text, Not(HasSubstr("parts from")));
}

TEST(Overview, ErrorsAreNamed) {
  std::vector<Response> responses{saying("a", "x"), Response()};
  responses[1].source = "b:2";
  responses[1].error = "HTTP 429\x1b[31m";
  const std::string text = errors_text(responses);
  EXPECT_NE(text.find("b:2: HTTP 429"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(Overview, OddThingsAreCountedOnce) {
  std::vector<Response> responses{saying("a", "x"), saying("b", "x"), saying("c", "x")};
  responses[1].warn("stream_cut", "it was cut off");
  responses[2].warn("stream_cut", "it was cut off");
  const auto findings = common_findings({&responses[0], &responses[1], &responses[2]});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].text.find("2 of 3 answers, first b: "), 0U) << findings[0].text;
}

}  // namespace
}  // namespace driftscope
