// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/metrics/measured.h"

namespace driftscope {
namespace {

using test::kInf;
using test::kNan;
using test::measure;
using test::metric;

std::vector<std::int32_t> ids(const std::vector<RankedToken>& list) {
  std::vector<std::int32_t> result;
  for (const RankedToken& entry : list) result.push_back(entry.token.value);
  return result;
}

// All tokens that are numbers, by a stable sort of rising ids: the definition of the order.
std::vector<std::int32_t> whole_ranking(const std::vector<float>& row) {
  std::vector<std::int32_t> order;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!std::isnan(row[i])) order.push_back(static_cast<std::int32_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t x, std::int32_t y) {
    return row[static_cast<std::size_t>(x)] > row[static_cast<std::size_t>(y)];
  });
  return order;
}
std::int32_t rank_of(const std::vector<std::int32_t>& order, std::int32_t token) {
  return static_cast<std::int32_t>(std::find(order.begin(), order.end(), token) - order.begin());
}

TEST(TopTokens, HigherLogitFirstThenLowerId) {
  const std::vector<float> row{1.0F, 3.0F, 2.0F, 3.0F, 1.0F};
  EXPECT_EQ(ids(top_tokens(row, 3)), (std::vector<std::int32_t>{1, 3, 2}));
  EXPECT_EQ(ids(top_tokens(row, 4)), (std::vector<std::int32_t>{1, 3, 2, 0}));
  EXPECT_EQ(ids(top_tokens(row, 99)), (std::vector<std::int32_t>{1, 3, 2, 0, 4}));
  EXPECT_TRUE(top_tokens(row, 0).empty());
  EXPECT_EQ(top_tokens(row, 1), (std::vector<RankedToken>{{TokenId{1}, 3.0F}}));
}

TEST(TopTokens, NanIsLeftOutAndInfinitiesRank) {
  EXPECT_EQ(ids(top_tokens(std::vector<float>{kNan, -kInf, kInf, 0.0F, kNan}, 5)),
            (std::vector<std::int32_t>{2, 3, 1}));
  EXPECT_TRUE(top_tokens(std::vector<float>{kNan, kNan}, 2).empty());
}

TEST(TopTokens, IsTheHeadOfTheWholeRanking) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> row(60);
    for (float& value : row) {
      value = random() % 20U == 0 ? kNan : static_cast<float>(random() % 9U);  // many ties
    }
    std::vector<std::int32_t> expected = whole_ranking(row);
    const auto k = static_cast<std::size_t>(1U + random() % 59U);
    expected.resize(std::min(k, expected.size()));
    EXPECT_EQ(ids(top_tokens(row, static_cast<std::int64_t>(k))), expected);
  }
}

TEST(Rankings, SwappedNeighboursByHand) {
  const StepMeasurement measured =
      measure({5.0F, 4.0F, 3.0F, 2.0F, 1.0F}, {5.0F, 3.0F, 4.0F, 1.0F, 2.0F}, {.top_k = 3});
  EXPECT_EQ(metric(measured, "top1_match"), 1.0);
  EXPECT_EQ(metric(measured, "topk_overlap"), 1.0);
  EXPECT_NEAR(metric(measured, "topk_kendall"), 1.0 / 3.0, 1e-15);  // (2 - 1) / 3
  EXPECT_EQ(metric(measured, "rank_flips"), 1.0);
  // A_1 = 1, A_2 = 1/2, A_3 = 1: 0.729 + (0.9 + 0.405 + 0.729) / 9
  EXPECT_NEAR(metric(measured, "rbo"), 0.955, 1e-15);
  const RankFlip expected{.x = TokenId{1},
                          .y = TokenId{2},
                          .rank_a_x = 1,
                          .rank_a_y = 2,
                          .rank_b_x = 2,
                          .rank_b_y = 1,
                          .gap_a = 1.0,
                          .gap_b = -1.0};
  EXPECT_EQ(measured.flips, std::vector<RankFlip>{expected});
}

TEST(Rankings, TokensOutsideOneListRankInTheWholeRow) {
  const StepMeasurement measured =
      measure({5.0F, 4.0F, 3.0F, 2.0F}, {2.0F, 5.0F, 4.0F, 1.0F}, {.top_k = 2});
  EXPECT_EQ(metric(measured, "top1_match"), 0.0);
  EXPECT_EQ(metric(measured, "topk_overlap"), 0.5);
  // Union {0, 1, 2}; (0,1) and (0,2) turn round, (1,2) does not.
  EXPECT_NEAR(metric(measured, "topk_kendall"), -1.0 / 3.0, 1e-15);
  EXPECT_EQ(metric(measured, "rank_flips"), 2.0);
  EXPECT_NEAR(metric(measured, "rbo"), 0.45, 1e-15);  // A_1 = 0, A_2 = 1/2: 0.405 + 0.405 / 9
  ASSERT_EQ(measured.flips.size(), 2U);
  EXPECT_EQ(measured.flips[1].y, TokenId{2});
  EXPECT_EQ(measured.flips[1].rank_a_y, 2);
  EXPECT_EQ(measured.flips[1].rank_b_x, 2);
}

TEST(Rankings, DisjointListsAgreeInNothing) {
  const StepMeasurement measured =
      measure({4.0F, 3.0F, 0.0F, 0.0F}, {0.0F, 0.0F, 4.0F, 3.0F}, {.top_k = 2});
  EXPECT_EQ(metric(measured, "topk_overlap"), 0.0);
  EXPECT_NEAR(metric(measured, "rbo"), 0.0, 1e-15);
}

TEST(Rankings, TieThatBreaksIsAFlipWithNoGap) {
  const StepMeasurement measured = measure({1.0F, 1.0F}, {1.0F, 2.0F});
  ASSERT_EQ(measured.flips.size(), 1U);
  EXPECT_EQ(measured.flips[0].x, TokenId{0});
  EXPECT_EQ(measured.flips[0].gap_a, 0.0);
  EXPECT_EQ(measured.flips[0].gap_b, -1.0);
}

TEST(Rankings, FlipsAreThoseOfTheWholeRankings) {
  std::mt19937 random(21);
  for (int round = 0; round < 100; ++round) {
    std::vector<float> a(40), b(40);
    for (float& value : a) value = static_cast<float>(random() % 12U);
    for (float& value : b) value = static_cast<float>(random() % 12U);
    const StepMeasurement measured = measure(a, b, {.top_k = 6});
    const auto order_a = whole_ranking(a);
    const auto order_b = whole_ranking(b);
    std::set<std::int32_t> tokens(order_a.begin(), order_a.begin() + 6);
    tokens.insert(order_b.begin(), order_b.begin() + 6);
    std::set<std::pair<std::int32_t, std::int32_t>> expected;
    for (const std::int32_t x : tokens) {
      for (const std::int32_t y : tokens) {
        if (rank_of(order_a, x) < rank_of(order_a, y) &&
            rank_of(order_b, x) > rank_of(order_b, y)) {
          expected.emplace(x, y);
        }
      }
    }
    std::set<std::pair<std::int32_t, std::int32_t>> found;
    for (const RankFlip& flip : measured.flips) {
      found.emplace(flip.x.value, flip.y.value);
      EXPECT_EQ(flip.rank_a_x, rank_of(order_a, flip.x.value));
      EXPECT_EQ(flip.rank_a_y, rank_of(order_a, flip.y.value));
      EXPECT_EQ(flip.rank_b_x, rank_of(order_b, flip.x.value));
      EXPECT_EQ(flip.rank_b_y, rank_of(order_b, flip.y.value));
    }
    EXPECT_EQ(found, expected);
    EXPECT_EQ(metric(measured, "rank_flips"), static_cast<double>(expected.size()));
  }
}

}  // namespace
}  // namespace driftscope
