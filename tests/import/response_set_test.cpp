// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/response_set.h"

#include <gtest/gtest.h>

namespace driftscope {
namespace {

Response with_ids(const std::vector<std::int64_t>& ids) {
  Response response;
  response.choices.emplace_back();
  for (const std::int64_t id : ids) {
    ResponseStep step;
    step.token.id = id;
    response.choices[0].content.steps.push_back(step);
  }
  response.choices[0].content.has_steps = !ids.empty();
  return response;
}

TEST(Clusters, AnswersOfIdsAloneAreToldApart) {
  const std::vector<Response> responses{with_ids({1, 23}), with_ids({12, 3}), with_ids({1, 23})};
  const auto clusters = cluster_answers(answers_of(responses));
  ASSERT_EQ(clusters.size(), 2U);
  EXPECT_EQ(clusters[0].members, (std::vector<std::size_t>{0, 2}));
}

TEST(Clusters, AnswersOfWhichNothingIsKnownAreNotEqual) {
  const std::vector<Response> responses{with_ids({}), with_ids({})};
  EXPECT_EQ(cluster_answers(answers_of(responses)).size(), 2U);
}

TEST(Clusters, EmptyTextsAreEqual) {
  std::vector<Response> responses{with_ids({}), with_ids({})};
  for (Response& response : responses) response.choices[0].content.has_text = true;
  EXPECT_EQ(cluster_answers(answers_of(responses)).size(), 1U);
}

}  // namespace
}  // namespace driftscope
