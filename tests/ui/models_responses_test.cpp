// SPDX-License-Identifier: GPL-3.0-or-later
// Answers side by side: columns, series, tables, from answers written by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ui/response_files.h"
#include "ui/models/response_fact_model.h"
#include "ui/models/response_population.h"
#include "ui/models/response_series.h"
#include "ui/models/response_set_models.h"
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

std::vector<ChatToken> words(const std::vector<std::string>& texts) {
  std::vector<ChatToken> tokens;
  for (const std::string& text : texts) tokens.push_back({.text = text, .logprob = -0.5});
  return tokens;
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

TEST(ResponseSetTest, NamesLoseTheFolderThatAllShare) {
  EXPECT_THAT(without_common_folder({QStringLiteral("/d/x/a.json"), QStringLiteral("/d/y/a.json")}),
              ElementsAre(QStringLiteral("x/a.json"), QStringLiteral("y/a.json")));
  EXPECT_THAT(
      without_common_folder({QStringLiteral("/d/x/a.json:1"), QStringLiteral("/d/x/b.json")}),
      ElementsAre(QStringLiteral("a.json:1"), QStringLiteral("b.json")));
  EXPECT_THAT(without_common_folder({QStringLiteral("a.json"), QStringLiteral("/d/b.json")}),
              ElementsAre(QStringLiteral("a.json"), QStringLiteral("/d/b.json")));
}

TEST(ResponseSetTest, ClustersAndTheMatrix) {
  const auto one = chat_json(words({"red"}));
  const auto files = parsed({one, chat_json(words({"blue"})), one});
  ASSERT_EQ(files->answers.size(), 3U);
  EXPECT_EQ(files_text(*files).toStdString(), "3 answers of 3 files, 2 unique");
  ClusterModel clusters;
  clusters.show(files);
  ASSERT_EQ(clusters.rowCount(), 2);
  EXPECT_EQ(clusters.cell(0, ClusterModel::size).text, QStringLiteral("2"));
  EXPECT_EQ(clusters.cell(0, ClusterModel::text).text, QStringLiteral("red"));
  EXPECT_EQ(clusters.cell(0, ClusterModel::members).text, QStringLiteral("a.json, c.json"));
  auto survey = std::make_shared<PairSurvey>();
  survey->files = files;
  survey->shown = survey->total = 3;
  for (const AnswerChoice choice : {AnswerChoice{0, 1}, {0, 2}, {1, 2}}) {
    survey->outcomes.push_back(outcome_of(*files, choice));
  }
  EXPECT_EQ(survey->at(0, 1)->tier, Tier::different);
  EXPECT_EQ(survey->at(2, 0)->tier, Tier::tolerance);
  EXPECT_EQ(survey->at(2, 0)->choice, (AnswerChoice{0, 2}));
  EXPECT_EQ(survey->at(2, 1)->choice, (AnswerChoice{1, 2}));
  EXPECT_EQ(survey->at(1, 1), nullptr);
  EXPECT_EQ(survey_text(*survey).toStdString(), "3 pairs: 1 tolerance, 2 different");
  PairListModel pairs;
  pairs.show(survey);
  EXPECT_EQ(pairs.row_of({2, 1}), 2);
  EXPECT_EQ(pairs.cell(0, PairListModel::parts_at).text, QStringLiteral("0"));
}

TEST(ResponseSetTest, LinesOfTwoFilesArePartnersByTheirId) {
  const auto line = [](const std::string& id, const std::string& text) {
    return R"({"custom_id":")" + id + R"(","response":{"status_code":200,"body":)" +
           chat_json(words({text})) + "}}\n";
  };
  const auto files = parsed({line("q1", "x") + line("q2", "y"), line("q2", "y") + line("q1", "z")});
  ASSERT_EQ(files->answers.size(), 4U);
  EXPECT_THAT(partners(*files), ElementsAre(AnswerChoice{0, 3}, AnswerChoice{1, 2}));
  EXPECT_EQ(first_choice(*files), (AnswerChoice{0, 3}));
  EXPECT_FALSE(is_population(*files));  // one sample of each prompt
}

TEST(ResponsePopulation, TheCurveIsTheShareOfPairsThatHaveParted) {
  const double never = std::numeric_limits<double>::infinity();
  const PartedCurve curve = parted_curve({5.0, never, 2.0, 5.0});
  EXPECT_EQ(curve.pairs, 4);
  EXPECT_EQ(curve.never, 1);
  EXPECT_THAT(curve.symbol, ElementsAre(2.0, 5.0));
  EXPECT_THAT(curve.share, ElementsAre(0.25, 0.75));
  EXPECT_LT(curve.low[0], 0.25);
  EXPECT_GT(curve.high[0], 0.25);
}

TEST(ResponsePopulation, TooFewSamplesCannotTellAndSaySo) {
  std::string a, b;
  for (const char* text : {"red", "red"}) a += chat_json(words({text})) + "\n";
  for (const char* text : {"red", "blue"}) b += chat_json(words({text})) + "\n";
  const auto files = parsed({a, b});
  ASSERT_TRUE(is_population(*files));
  PopulationView view;
  view.files = files;
  view.sides = sample_sides(files->files[0], files->files[1]);
  view.permutations = 100;
  view.comparison = compare_populations(view.sides.a, view.sides.b, 100, 1);
  EXPECT_THAT(population_sentence(view).toStdString(), HasSubstr("Inconclusive"));
  EXPECT_THAT(population_sentence(view).toStdString(), HasSubstr("so few samples"));
  const PartedCurves curves = parted_curves(view, -1);
  EXPECT_EQ(curves.within_a.never, 1);  // its one pair is equal
  EXPECT_EQ(curves.within_b.never, 0);
  EXPECT_EQ(curves.across.pairs, 2);
  EXPECT_THAT(curves.within_b.symbol, ElementsAre(0.0));
  const auto rates = rate_rows(view.comparison);
  EXPECT_EQ(rates[0].a.hits, 1);
  EXPECT_EQ(rates[0].b.hits, 2);
  PopulationModel model;
  model.show(std::make_shared<const PopulationView>(view));
  ASSERT_EQ(model.rowCount(), 1);
  EXPECT_EQ(model.cell(0, PopulationModel::samples).text, QStringLiteral("2, 2"));
  EXPECT_EQ(model.cell(0, PopulationModel::unique).text, QStringLiteral("1, 2"));
}

TEST(ResponsePopulation, WhatTheCommandSaysBeforeTheNumbersStandsThereToo) {
  // 12 answers a side, the half of B's errors: no fair sample.
  std::string a, b;
  for (int i = 0; i < 12; ++i) {
    a += chat_json(words({"red"})) + "\n";
    b += (i % 2 == 0 ? chat_json(words({"red"})) : std::string(R"({"error":{"message":"busy"}})")) +
         "\n";
  }
  const auto files = parsed({a, b});
  PopulationView view;
  view.files = files;
  view.sides = sample_sides(files->files[0], files->files[1]);
  view.permutations = 100;
  view.comparison = compare_populations(view.sides.a, view.sides.b, 100, 1);
  const std::string text = population_sentence(view).toStdString();
  EXPECT_THAT(text, HasSubstr("6 of 12 answers of B"));
  EXPECT_THAT(text, HasSubstr("Inconclusive"));
}

TEST(ResponseSetTest, TheCommandSaysTheSame) {
  ResponseFiles files;
  files.paths = {QStringLiteral("a.json"), QStringLiteral("b c.json")};
  EXPECT_THAT(
      vendor_arguments(files, false),
      ElementsAre(QStringLiteral("vendor"), QStringLiteral("a.json"), QStringLiteral("b c.json")));
  EXPECT_TRUE(vendor_arguments(files, true).contains(QStringLiteral("--population")));
}

}  // namespace
}  // namespace driftscope::ui
