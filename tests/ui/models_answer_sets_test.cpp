// SPDX-License-Identifier: GPL-3.0-or-later
// Many answers: which are the same, which are errors or answer other questions, what the samples of
// two files say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/ui/response_files.h"
#include "ui/models/response_population.h"
#include "ui/models/response_series.h"
#include "ui/models/response_set_models.h"
#include "ui/models/response_top_k_model.h"
#include "ui/models/response_verdict.h"

namespace driftscope::ui {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
  const auto files = parsed({batch_line("q1", "x") + batch_line("q2", "y"),
                             batch_line("q2", "y") + batch_line("q1", "z")});
  ASSERT_EQ(files->answers.size(), 4U);
  EXPECT_THAT(partners(*files), ElementsAre(AnswerChoice{0, 3}, AnswerChoice{1, 2}));
  EXPECT_EQ(first_choice(*files), (AnswerChoice{0, 3}));
  EXPECT_FALSE(is_population(*files));  // one sample of each prompt
}

PairSurveyPointer surveyed(const ResponseFilesPointer& files) {
  auto survey = std::make_shared<PairSurvey>();
  survey->files = files;
  survey->shown = survey->total = files->answers.size();
  for (std::size_t i = 0; i < survey->shown; ++i) {
    for (std::size_t j = i + 1; j < survey->shown; ++j)
      survey->outcomes.push_back(outcome_of(*files, {i, j}));
  }
  return survey;
}

TEST(ResponseSetTest, AnswersToOtherQuestionsAreNotCompared) {
  const auto files =
      parsed({batch_line("q1", "x") + batch_line("q2", "x") + batch_line("q1", "y")});
  const auto survey = surveyed(files);
  // Of three pairs only the first and the third answer have one question.
  EXPECT_TRUE(survey->at(0, 1)->other_questions);
  EXPECT_FALSE(survey->at(0, 2)->other_questions);
  EXPECT_EQ(survey->at(0, 2)->tier, Tier::different);
  EXPECT_EQ(survey_text(*survey).toStdString(),
            "1 pair: 1 different; not compared, as other custom_ids are other questions: 2 pairs");
  PairListModel pairs;
  pairs.show(survey);
  ASSERT_EQ(pairs.rowCount(), 1);
  EXPECT_EQ(pairs.outcome(0).choice, (AnswerChoice{0, 2}));
  EXPECT_EQ(pairs.row_of({2, 0}), 0);
  EXPECT_EQ(pairs.row_of({0, 1}), -1);
  EXPECT_EQ(first_choice(*files), (AnswerChoice{0, 2}));
  // Chosen by hand: side by side, and said to be no comparison.
  const VerdictSummary summary = response_verdict(*view_pair(files, {0, 1}));
  EXPECT_EQ(summary.tier, QStringLiteral("NOT COMPARED"));
  EXPECT_TRUE(summary.inconclusive);
  EXPECT_EQ(summary.headline.toStdString(),
            "Not compared: the custom_ids q1 and q2 are other questions");
}

TEST(ResponseSetTest, WithoutTwoAnswersToOneQuestionThereIsNoPair) {
  const auto survey = surveyed(parsed({batch_line("q1", "x") + batch_line("q2", "x")}));
  EXPECT_EQ(survey_text(*survey).toStdString(),
            "not compared, as other custom_ids are other questions: 1 pair");
  PairListModel pairs;
  pairs.show(survey);
  EXPECT_EQ(pairs.rowCount(), 0);
  EXPECT_THAT(pairs.empty_text().toStdString(), HasSubstr("custom_id"));
}

TEST(ResponseSetTest, WithoutTokensAPairPartsAtAByte) {
  const auto text = [](const char* said) { return chat_json(words({said}), "fp_1", false); };
  const auto survey = surveyed(parsed({text("abcd"), text("abxd"), text("abcd")}));
  PairListModel pairs;
  pairs.show(survey);
  EXPECT_EQ(pairs.cell(0, PairListModel::parts_at).text.toStdString(), "byte 2");
  EXPECT_EQ(pairs.cell(1, PairListModel::parts_at).text.toStdString(), "–");  // they do not
  EXPECT_EQ(pairs.cell(1, PairListModel::tier).text.toStdString(), "semantic");
}

const char* const kRefused = R"({"error":{"message":"rate limit","code":"429"}})";

TEST(ResponseSetTest, AnErrorIsASideWithItsText) {
  const auto files = parsed({kRefused, chat_json(words({"It", " is"}))});
  ASSERT_EQ(files->answers.size(), 2U);
  EXPECT_EQ(files->answered, 1U);
  EXPECT_EQ(files->clusters.size(), 1U);
  ASSERT_EQ(first_choice(*files), (AnswerChoice{1, 0}));  // the file named first is A
  EXPECT_EQ(files->label(1).toStdString(), "a.json (error)");
  const auto pair = view_pair(files, {1, 0});
  const VerdictSummary summary = response_verdict(*pair);
  EXPECT_EQ(summary.tier, QStringLiteral("INCONCLUSIVE"));
  EXPECT_TRUE(summary.inconclusive);
  EXPECT_THAT(summary.headline.toStdString(),
              testing::AllOf(testing::StartsWith("/data/a.json is an error, not an answer"),
                             HasSubstr("rate limit")));
  ASSERT_EQ(pair->columns.columns.size(), 2U);  // what B said is still seen
  EXPECT_EQ(pair->columns.columns[1].a, -1);
  EXPECT_EQ(column_text(*pair, 1).toStdString(), "A is an error, B ‘ is’ (-0.5)");
  EXPECT_THAT(response_series(*pair).difference_reason.toStdString(),
              testing::StartsWith("A is an error"));
  ResponseTopKModel best;
  best.show(pair, 0);
  EXPECT_EQ(best.rowCount(), 1);
  EXPECT_EQ(outcome_of(*files, {1, 0}).tier, Tier::inconclusive);
}

TEST(ResponseSetTest, ErrorsStandBehindTheAnswersAndOutsideTheGroups) {
  const auto text = chat_json(words({"x"}));
  const auto files = parsed({kRefused, text, text, text});
  ASSERT_EQ(files->answers.size(), 4U);
  EXPECT_TRUE(files->is_error(3));
  EXPECT_EQ(files->label(0).toStdString(), "1 · b.json");  // as in the matrix
  EXPECT_EQ(files->clusters.size(), 1U);
  EXPECT_EQ(files_text(*files).toStdString(), "3 answers of 4 files, 1 unique");
}

TEST(ResponseSetTest, PartnersOfTwoFilesMayBeErrors) {
  const auto lost = [](const std::string& id) {
    return R"({"custom_id":")" + id +
           R"(","response":{"status_code":500,"body":{"error":{"message":"down"}}}})" + "\n";
  };
  const auto files = parsed({batch_line("q1", "x") + batch_line("q2", "y") + batch_line("q3", "z"),
                             lost("q2") + batch_line("q1", "x")});
  const auto pairs = partners(*files);
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(outcome_of(*files, pairs[0]).tier, Tier::tolerance);
  EXPECT_EQ(outcome_of(*files, pairs[1]).tier, Tier::inconclusive);
  EXPECT_EQ(unpaired(*files, pairs), 1U);  // q3
  EXPECT_TRUE(is_set(*files));
}

TEST(ResponseSetTest, TheBadgeOfAllAnswersCountsGroupsAndPairs) {
  const auto red = chat_json(words({"red"}));
  const auto blue = chat_json(words({"blue"}));
  const VerdictSummary some = survey_verdict(*surveyed(parsed({red, blue, red})));
  EXPECT_EQ(some.tier.toStdString(), "DIFFERENT");
  EXPECT_FALSE(some.good);
  EXPECT_EQ(some.headline.toStdString(), "3 answers in 2 groups; 2 of 3 pairs differ");
  const VerdictSummary none = survey_verdict(*surveyed(parsed({red, red, red})));
  EXPECT_EQ(none.tier.toStdString(), "TOLERANCE");
  EXPECT_TRUE(none.good);
  EXPECT_EQ(none.headline.toStdString(), "3 answers in 1 group; none of 3 pairs differs");
  const auto others = surveyed(parsed({batch_line("q1", "x") + batch_line("q2", "x")}));
  EXPECT_EQ(survey_verdict(*others).tier.toStdString(), "NOT COMPARED");
  PairSurvey alone = *surveyed(parsed({red, red, red}));
  alone.partners_only = true;
  alone.unpaired = 2;  // what has no partner was not compared
  EXPECT_EQ(survey_verdict(alone).tier.toStdString(), "INCONCLUSIVE");
}

PopulationView compared_samples(const std::string& a, const std::string& b) {
  PopulationView view;
  view.files = parsed({a, b});
  view.sides = sample_sides(view.files->files[0], view.files->files[1]);
  view.permutations = 1000;
  view.comparison = compare_populations(view.sides.a, view.sides.b, 1000, 1);
  return view;
}

TEST(ResponsePopulation, TheBadgeSaysChangedNotOrInconclusive) {
  std::string red, blue, few;
  for (int i = 0; i < 8; ++i) {
    red += batch_line("q1", "red");
    blue += batch_line("q1", "blue");
    if (i < 2) few += batch_line("q1", "red");
  }
  const PopulationView changed = compared_samples(red, blue);
  EXPECT_EQ(population_verdict(changed).tier.toStdString(), "CHANGED");
  EXPECT_FALSE(population_verdict(changed).good);
  EXPECT_EQ(population_verdict(changed).headline.toStdString(), "1 of 1 prompt changed");
  EXPECT_EQ(population_verdict(changed).reason, population_sentence(changed));
  EXPECT_EQ(population_caption(changed, -1).toStdString(), "A a.json, B b.json; prompt q1");
  EXPECT_EQ(population_verdict(compared_samples(red, red)).tier.toStdString(), "NO CHANGE FOUND");
  const VerdictSummary unknown = population_verdict(compared_samples(few, few));
  EXPECT_EQ(unknown.tier.toStdString(), "INCONCLUSIVE");
  EXPECT_TRUE(unknown.inconclusive);
}

TEST(ResponsePopulation, OneSampleOfEachQuestionIsNone) {
  const auto one = batch_line("q1", "x") + batch_line("q2", "y");
  EXPECT_FALSE(is_population(*parsed({one, one})));
  EXPECT_TRUE(is_population(*parsed({one + one, one + one})));
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
