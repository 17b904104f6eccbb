// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/response_overview.h"

#include <gtest/gtest.h>

namespace driftscope {
namespace {

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
  EXPECT_NE(text.find("1 times: … \"" + std::string(20, 'x') + "dog\"  (first c)"),
            std::string::npos)
      << text;
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
