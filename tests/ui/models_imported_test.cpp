// SPDX-License-Identifier: GPL-3.0-or-later
// Captures read from other programs' files, in the tables and the verdict of the window; one answer
// without a partner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ui/response_files.h"
#include "tests/ui/synthetic_comparison.h"
#include "ui/models/cursor_delta.h"
#include "ui/models/finding_models.h"
#include "ui/models/metric_table_model.h"
#include "ui/models/response_fact_model.h"
#include "ui/models/response_series.h"
#include "ui/models/response_set_models.h"
#include "ui/models/response_top_k_model.h"
#include "ui/models/response_verdict.h"
#include "ui/models/top_k_model.h"
#include "ui/models/verdict_summary.h"

namespace driftscope::ui {
namespace {

std::string utf8(const QString& text) { return text.toStdString(); }

TEST(ImportedVerdict, SaysWhatIsKnownAndWhatIsNot) {
  const auto c = listed_comparison();
  const std::string text = utf8(to_text(verdict_summary(*c)));
  for (const char* part : {"Margin A: 1 nat", "Margin B: not known", "Drift: not known",
                           "Steps: 2, where A holds 3 and B 2", "Equal tokens: 1 of 2"}) {
    EXPECT_THAT(text, testing::HasSubstr(part));
  }
  for (const char* part : {"NaN", "logit", "planned"}) {
    EXPECT_THAT(text, testing::Not(testing::HasSubstr(part)));
  }
}

TEST(ImportedVerdict, OneSideSaysHowToGetTheOther) {
  auto c = listed_comparison();
  c->imported_b.reset();
  c->steps.clear();
  c->lanes.pop_back();
  c->first_divergence.reset();
  const VerdictSummary summary = verdict_summary(*c);
  EXPECT_THAT(utf8(summary.headline), testing::HasSubstr("One side only"));
  EXPECT_THAT(utf8(summary.reason), testing::HasSubstr("driftscope import A B -o PAIR.h5"));
}

TEST(ImportedTables, SpeakOfLogProbabilities) {
  const auto c = listed_comparison();
  TopKModel best;
  best.show(c, 0);
  EXPECT_EQ(utf8(best.headerData(TopKModel::logit_a, Qt::Horizontal, Qt::DisplayRole).toString()),
            "Logprob A");
  EXPECT_EQ(utf8(best.index(0, TopKModel::difference).data().toString()), "-0.25");
  EXPECT_EQ(utf8(cursor_delta_text(*c, 0, 1)),
            "steps 0 → 1 (Δ 1): margin A 1 → –, margin B 0.5 → – nat");
  DifferenceModel differences;
  differences.show(c);
  EXPECT_THAT(utf8(differences.empty_text()), testing::HasSubstr("not known"));
  // A run's words stay.
  best.show(synthetic_comparison({.steps = 4, .divergence = -1}), 0);
  EXPECT_EQ(utf8(best.headerData(TopKModel::logit_a, Qt::Horizontal, Qt::DisplayRole).toString()),
            "Logit A");
}

TEST(ImportedTables, MetricsThatAreNotKnownAreOneRowWithTheReason) {
  const auto c = listed_comparison();  // statistics of margin_a and dlogp
  MetricTableModel model;
  model.show(c, 0);
  ASSERT_EQ(model.rowCount(), 3);
  EXPECT_EQ(utf8(model.index(0, MetricTableModel::title).data().toString()),
            "Log-probability of the emitted token, B minus A");
  EXPECT_EQ(utf8(model.index(1, MetricTableModel::unit).data().toString()), "nat");
  EXPECT_EQ(utf8(model.index(1, MetricTableModel::at_step).data().toString()), "1");
  const auto others = static_cast<int>(metric_registry().size()) - 2;
  EXPECT_EQ(utf8(model.index(2, MetricTableModel::title).data().toString()),
            std::to_string(others) + " others: not known, they need the whole vocabulary");
  EXPECT_THAT(
      utf8(model.index(2, MetricTableModel::title).data(Qt::ToolTipRole).toString()),
      testing::AllOf(testing::HasSubstr("max_abs"), testing::HasSubstr("a few tokens of each")));
}

TEST(OneAnswer, ShowsItsTokensLogprobsFieldsAndFindings) {
  const auto files = parsed({chat_json({{"It", -0.5, {{"So", -1.5}}}, {" is", -0.25}})});
  const auto view = view_alone(files, 0);
  ASSERT_EQ(view->columns.columns.size(), 2U);
  const TokenRibbon ribbon = response_ribbon(view->columns);
  EXPECT_EQ(utf8(ribbon.items[1].text_a), " is");
  EXPECT_TRUE(ribbon.items[1].missing_b);
  EXPECT_FALSE(ribbon.items[1].differs);
  EXPECT_EQ(utf8(column_text(*view, 0)), "‘It’ (-0.5)");
  const ResponseSeries series = response_series(*view);
  EXPECT_EQ(series.logprob_a, (StepValues{-0.5, -0.25}));
  EXPECT_EQ(series.known_b, 0);
  EXPECT_EQ(utf8(series.unit), "nat");
  EXPECT_EQ(utf8(series.logprob_reason), "");
  EXPECT_THAT(utf8(series.difference_reason), testing::HasSubstr("drop a second file"));
  ResponseTopKModel best;
  best.show(view, 0);
  ASSERT_EQ(best.rowCount(), 2);
  EXPECT_EQ(utf8(best.index(1, ResponseTopKModel::logprob_a).data().toString()), "-1.5");
  EXPECT_EQ(utf8(best.index(1, ResponseTopKModel::logprob_b).data().toString()), "–");
  ResponseFactModel facts;
  facts.show(view);
  EXPECT_EQ(facts.difference_count(), 0);
  bool told = false;
  for (int row = 0; row < facts.rowCount(); ++row) {
    told = told || facts.index(row, ResponseFactModel::side_a).data().toString() == "fp_1";
    EXPECT_EQ(utf8(facts.index(row, ResponseFactModel::side_b).data().toString()), "–");
  }
  EXPECT_TRUE(told);
}

TEST(OneAnswer, WithoutTokensIsItsTextInPieces) {
  const auto files = parsed({chat_json({{"It is", -0.5}, {" so", -0.5}}, "fp_1", false)});
  const auto view = view_alone(files, 0);
  EXPECT_EQ(view->columns.unit, ColumnUnit::words);
  ASSERT_EQ(view->columns.steps_a.size(), 3U);
  EXPECT_EQ(view->columns.steps_a[2].token.bytes, " so");
  EXPECT_THAT(utf8(response_series(*view).logprob_reason),
              testing::StartsWith("The answer lists no logprobs"));
}

TEST(PairTable, TheWholeNameIsInTheToolTip) {
  auto files = std::make_shared<ResponseFiles>();
  const QString folder =
      QStringLiteral("a/very/long/folder/that/no/column/has/the/room/for/in/full/");
  files->names = {folder + "one.json", folder + "two.json"};
  files->answers.resize(2);
  auto survey = std::make_shared<PairSurvey>();
  survey->files = files;
  survey->outcomes = {{.choice = {0, 1}}};
  PairListModel model;
  model.show(survey);
  const auto cell = model.index(0, PairListModel::side_b);
  EXPECT_EQ(cell.data().toString(), files->names[1]);  // never cut by us
  EXPECT_EQ(cell.data(Qt::ToolTipRole).toString(), files->names[1]);
}

}  // namespace
}  // namespace driftscope::ui
