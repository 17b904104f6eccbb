// SPDX-License-Identifier: GPL-3.0-or-later
// Answers side by side: columns, series, tables, from answers written by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ui/response_files.h"
#include "ui/models/response_fact_model.h"
#include "ui/models/response_series.h"
#include "ui/models/response_top_k_model.h"
#include "ui/models/response_verdict.h"

namespace driftscope::ui {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string states_of(const ResponseColumns& columns) {
  std::string text;
  for (const ResponseColumn& column : columns.columns) {
    text += column.state == ColumnState::equal     ? (column.a >= 0 && column.b >= 0 ? '=' : '!')
            : column.state == ColumnState::split   ? 's'
            : column.state == ColumnState::differs ? (column.a < 0   ? '+'
                                                      : column.b < 0 ? '-'
                                                                     : 'x')
                                                   : 'j';
  }
  return text;
}

TEST(ResponseColumnsTest, EqualTokensThenDifferentOnesThenTheEnd) {
  const auto pair = parsed_pair(chat_json(words({"The", " cat", " sat", "."})),
                                chat_json(words({"The", " cat", " ran"})));
  EXPECT_EQ(states_of(pair->columns), "==x-");
  EXPECT_EQ(pair->columns.divergence, 2);
  EXPECT_EQ(pair->columns.joined, -1);
  const TokenRibbon ribbon = response_ribbon(pair->columns);
  ASSERT_EQ(ribbon.items.size(), 4U);
  EXPECT_EQ(ribbon.divergence_step, 2);
  EXPECT_EQ(ribbon.items[1].text_b, QStringLiteral(" cat"));
  EXPECT_FALSE(ribbon.items[1].differs);
  EXPECT_TRUE(ribbon.items[3].missing_b);
  EXPECT_EQ(ribbon.items[3].text_b, QStringLiteral("end"));
}

TEST(ResponseColumnsTest, TextsThatRunTogetherAgainAreLaidAboveEachOther) {
  const std::vector<std::string> tail{" the", " mat", " in", " the", " house", "."};
  std::vector<std::string> a{"He", " sat", " on"};
  std::vector<std::string> b{"He", " lay", " down", " upon"};
  a.insert(a.end(), tail.begin(), tail.end());
  b.insert(b.end(), tail.begin(), tail.end());
  const auto pair = parsed_pair(chat_json(words(a)), chat_json(words(b)));
  EXPECT_EQ(states_of(pair->columns), "=xx+jjjjjj");
  EXPECT_EQ(pair->columns.joined, 4);
  EXPECT_EQ(pair->columns.columns[4].a, 3);
  EXPECT_EQ(pair->columns.columns[4].b, 4);
  EXPECT_EQ(next_difference(pair->columns, 0), 1);
  EXPECT_EQ(next_difference(pair->columns, 1), 4);  // where they run together again
  EXPECT_EQ(next_difference(pair->columns, 4), std::nullopt);
  EXPECT_EQ(previous_difference(pair->columns, 9), 1);
  EXPECT_EQ(previous_difference(pair->columns, 1), std::nullopt);
}

TEST(ResponseColumnsTest, AStretchThatBothHaveInTheMiddleIsFound) {
  const auto pair = parsed_pair(chat_json(words({"x", "a", " one", " two", " three", "b"})),
                                chat_json(words({"y", " one", " two", " three", "c", "d"})));
  // Three tokens in a row count, the runs of one or two do not.
  EXPECT_EQ(states_of(pair->columns), "x-jjjx+");
  EXPECT_THAT(difference_starts(pair->columns), ElementsAre(0, 5));
}

TEST(ResponseColumnsTest, OtherTokenizersStandAtTheSameByte) {
  const auto pair = parsed_pair(chat_json(words({"The", " cat", "s", " sat"})),
                                chat_json(words({"The", " ca", "ts", " sat"})));
  EXPECT_EQ(pair->comparison.alignment, ResponseAlignment::byte_offsets);
  // Above " cat" begins " ca"; then "ts" and "s" begin at bytes of their own.
  EXPECT_EQ(states_of(pair->columns), "=sss=");
  EXPECT_EQ(pair->columns.divergence, -1);
  EXPECT_TRUE(response_ribbon(pair->columns).items[1].split);
}

TEST(ResponseColumnsTest, WithoutTokensPiecesOfTheTextStandForThem) {
  const auto pair = parsed_pair(chat_json(words({"It is", " red", "."}), "fp_1", false),
                                chat_json(words({"It is", " blue", "."})));
  EXPECT_EQ(pair->columns.unit, ColumnUnit::words);
  // A's text is cut where B's tokens end, then into words.
  EXPECT_EQ(response_token(pair->columns.steps_a[0]), QStringLiteral("It is"));
  EXPECT_EQ(response_token(pair->columns.steps_a[1]), QStringLiteral(" red."));
  EXPECT_EQ(states_of(pair->columns), "=x+");
  const ResponseSeries series = response_series(*pair);
  EXPECT_THAT(series.difference_reason.toStdString(), HasSubstr("Only B has logprobs"));
  EXPECT_EQ(series.known_b, 3);
}

TEST(ResponseColumnsTest, ControlCharactersAreEscapedAndIdsNamed) {
  ResponseStep step;
  step.token.bytes = "\n\t\x1b";
  EXPECT_EQ(response_token(step), QStringLiteral("\\n\\t\\x1B"));
  step.token.bytes.clear();
  step.token.id = 30;
  EXPECT_EQ(response_token(step), QStringLiteral("#30"));
  EXPECT_EQ(quoted_response_token(step), QStringLiteral("#30"));
}

TEST(ResponseSeriesTest, DifferencesWhereBothChoseTheSameTokenAndGapsElsewhere) {
  const auto pair =
      parsed_pair(chat_json({{"a", -0.5}, {"b", -1.2}, {"c", -2.0}, {"d", -0.1}}),
                  chat_json({{"a", -0.75}, {"b", -9999.0}, {"x", -2.51}, {"e", -0.25}}));
  const ResponseSeries series = response_series(*pair);
  ASSERT_EQ(series.difference.size(), 4U);
  EXPECT_EQ(series.difference[0], -0.25);
  EXPECT_TRUE(std::isnan(series.difference[1]));  // a sentinel is no number
  EXPECT_TRUE(std::isnan(series.difference[2]));  // other tokens
  EXPECT_TRUE(std::isnan(series.difference[3]));  // other tokens before
  EXPECT_EQ(series.known_differences, 1);
  // Half a unit of the last digit that each side prints: 0.05 of A, 0.005 of B.
  EXPECT_NEAR(series.tolerance[0], 0.055, 1e-12);
  EXPECT_TRUE(std::isnan(series.tolerance[1]));
  EXPECT_EQ(series.logprob_a[3], -0.1);
  EXPECT_TRUE(std::isnan(series.logprob_b[1]));
  EXPECT_EQ(series.beyond_b[1], 1.0);
  EXPECT_TRUE(std::isnan(series.beyond_a[1]));
  EXPECT_EQ(series.unit, QStringLiteral("nat"));
}

TEST(ResponseSeriesTest, AViewStartsWhereItMatters) {
  const auto a = chat_json({{"a", -0.5}, {"b", -0.5}, {"c", -0.5}});
  EXPECT_EQ(initial_column(*parsed_pair(a, a)), 0);
  const auto b = chat_json({{"a", -0.75}, {"b", -1.5}, {"c", -1.0}});
  EXPECT_EQ(initial_column(*parsed_pair(a, b)), 1);
  const auto c = chat_json({{"a", -0.75}, {"b", -1.5}, {"x", -1.0}});
  EXPECT_EQ(initial_column(*parsed_pair(a, c)), 2);
}

TEST(ResponseSeriesTest, StatesAreNamedNotShownAsNumbers) {
  const auto text = [](LogprobState state) {
    return logprob_text({.state = state, .value = -1.0});
  };
  EXPECT_EQ(text(LogprobState::missing), QStringLiteral("–"));
  EXPECT_EQ(text(LogprobState::null), QStringLiteral("null"));
  EXPECT_EQ(text(LogprobState::sentinel), QStringLiteral("sentinel"));
  EXPECT_EQ(text(LogprobState::minus_infinity), QStringLiteral("−∞"));
  EXPECT_EQ(text(LogprobState::not_a_number), QStringLiteral("NaN"));
  EXPECT_EQ(text(LogprobState::number), QStringLiteral("-1"));
}

TEST(ResponseTopK, JoinsBothListsAndNamesWhatIsNotThere) {
  const auto pair =
      parsed_pair(chat_json({{"A", -0.5}, {"x", -0.25, {{"y", -1.5}, {"z", -9999.0}}}}),
                  chat_json({{"A", -0.5}, {"y", -0.5, {{"x", -1.0}, {"w", -4.0}}}}));
  ResponseTopKModel model;
  model.show(pair, 1);
  ASSERT_EQ(model.rowCount(), 4);
  using Model = ResponseTopKModel;
  const auto cell = [&](int row, int column) { return model.cell(row, column).text; };
  EXPECT_EQ(cell(0, Model::token), QStringLiteral("‘x’  ◂ A"));
  EXPECT_EQ(cell(0, Model::rank_a), QStringLiteral("1"));
  EXPECT_EQ(cell(0, Model::rank_b), QStringLiteral("2"));
  EXPECT_EQ(model.cell(0, Model::rank_a).emphasis, Emphasis::alert);
  EXPECT_EQ(cell(0, Model::difference), QStringLiteral("-0.75"));
  EXPECT_EQ(cell(1, Model::token), QStringLiteral("‘y’  ◂ B"));
  EXPECT_EQ(cell(1, Model::difference), QStringLiteral("1"));
  EXPECT_EQ(cell(2, Model::token), QStringLiteral("‘w’"));
  EXPECT_EQ(cell(2, Model::logprob_a), QStringLiteral("not listed"));
  EXPECT_EQ(cell(3, Model::logprob_a), QStringLiteral("sentinel"));
  EXPECT_EQ(cell(3, Model::rank_a), QStringLiteral("?"));
  EXPECT_EQ(cell(3, Model::difference), QStringLiteral("–"));
}

// Two tokens of one text: the list holds the value of the other one.
TEST(ResponseTopK, TheChosenTokensOwnValueCounts) {
  const auto a = chat_json({{"x", -0.25, {{"y", -1.5}}}});
  std::string b = a;
  const std::string listed = "\"top_logprobs\":[{\"token\":\"x\",\"logprob\":-0.25";
  const auto at = b.find(listed);
  ASSERT_NE(at, std::string::npos);
  b.replace(at, listed.size(), "\"top_logprobs\":[{\"token\":\"x\",\"logprob\":-8.5");
  ResponseTopKModel model;
  model.show(parsed_pair(a, b), 0);
  using Model = ResponseTopKModel;
  ASSERT_EQ(model.rowCount(), 3);
  EXPECT_EQ(model.cell(0, Model::token).text, QStringLiteral("‘x’  ◂ A B"));
  EXPECT_EQ(model.cell(0, Model::logprob_b).text, QStringLiteral("-0.25"));
  EXPECT_EQ(model.cell(0, Model::difference).text, QStringLiteral("0"));
  EXPECT_EQ(model.cell(2, Model::token).text, QStringLiteral("‘x’"));
  EXPECT_EQ(model.cell(2, Model::logprob_a).text, QStringLiteral("not listed"));
  EXPECT_EQ(model.cell(2, Model::logprob_b).text, QStringLiteral("-8.5"));
}

TEST(ResponseVerdictTest, NamesTheFirstDivergenceWithBothMargins) {
  const auto pair = parsed_pair(chat_json({{"A", -0.5}, {"x", -0.25, {{"y", -0.375}}}}),
                                chat_json({{"A", -0.5}, {"y", -0.25, {{"x", -0.3125}}}}));
  const VerdictSummary summary = response_verdict(*pair);
  EXPECT_EQ(summary.tier, QStringLiteral("DIFFERENT"));
  EXPECT_EQ(summary.headline, QStringLiteral("First divergence at token 1: A ‘x’, B ‘y’"));
  EXPECT_EQ(summary.cause, QStringLiteral("near tie"));
  EXPECT_FALSE(summary.good);
  ASSERT_GE(summary.facts.size(), 2U);
  EXPECT_EQ(summary.facts[0].value, QStringLiteral("0.125 nat"));
  EXPECT_EQ(summary.facts[1].value, QStringLiteral("0.0625 nat"));
}

TEST(ResponseVerdictTest, EqualAnswersAreGood) {
  const auto body = chat_json(words({"Paris", "."}));
  const VerdictSummary summary = response_verdict(*parsed_pair(body, body));
  EXPECT_EQ(summary.tier, QStringLiteral("TOLERANCE"));
  EXPECT_TRUE(summary.good);
  EXPECT_TRUE(summary.cause.isEmpty());
}

TEST(ResponseFacts, OnlyWhatDiffersOnDemand) {
  const auto pair = parsed_pair(chat_json(words({"Hi"}), "fp_1"), chat_json(words({"Hi"}), "fp_2"));
  ResponseFactModel model;
  model.show(pair);
  EXPECT_GT(model.rowCount(), 3);
  EXPECT_EQ(model.difference_count(), 1);
  model.set_differences_only(true);
  ASSERT_EQ(model.rowCount(), 1);
  EXPECT_EQ(model.cell(0, ResponseFactModel::field).text, QStringLiteral("system_fingerprint"));
  EXPECT_EQ(model.cell(0, ResponseFactModel::side_a).text, QStringLiteral("fp_1"));
  EXPECT_EQ(model.cell(0, ResponseFactModel::side_b).text, QStringLiteral("fp_2"));
  EXPECT_EQ(model.cell(0, ResponseFactModel::proves).text, QStringLiteral("medium"));
  EXPECT_EQ(model.cell(0, ResponseFactModel::field).emphasis, Emphasis::alert);
}

TEST(ResponseFacts, IdsAndTimesOfTheCallsAreNoDifference) {
  const auto a = chat_json(words({"Hi"}));
  std::string b = a;
  b.replace(b.find("chatcmpl-1"), 10, "chatcmpl-2");
  b.replace(b.find("\"created\":1"), 11, "\"created\":2");
  ResponseFactModel model;
  model.show(parsed_pair(a, b));
  EXPECT_EQ(model.difference_count(), 0);
  model.set_differences_only(true);
  EXPECT_EQ(model.rowCount(), 0);
}

TEST(ResponseTopK, SaysWhetherOneSideOrNeitherListsTokens) {
  const auto text = chat_json(words({"Hi"}), "fp_1", false);
  ResponseTopKModel model;
  model.show(parsed_pair(text, text), 0);
  EXPECT_THAT(model.empty_text().toStdString(), testing::StartsWith("Neither side lists tokens"));
  model.show(parsed_pair(text, chat_json(words({"Hi"}))), 0);
  EXPECT_THAT(model.empty_text().toStdString(), testing::StartsWith("One side lists no tokens"));
}

}  // namespace
}  // namespace driftscope::ui
