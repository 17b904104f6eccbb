// SPDX-License-Identifier: Apache-2.0
// Answers that list a few tokens with log probabilities, as tables and pages show them: in their
// own words, and nothing said that is not known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/compare/listed_step.h"
#include "analysis/compare/value_words.h"
#include "analysis/report/documents.h"
#include "tests/report/sample_comparison.h"
#include "tests/report/schema_check.h"

namespace driftscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

ImportedSide side(const char* values = "log_probability") {
  return {
      .format = "openai", .values = values, .listed = true, .interned = true, .prompt_text = {}};
}

// Step 0: both choose token 1 and list three tokens. Step 1: A lists its token only, B nothing.
// A holds one token more.
Comparison answers() {
  const ListedRow a0{
      TokenId{1}, {{TokenId{1}, -0.5F}, {TokenId{2}, -1.5F}, {TokenId{3}, -3.0F}}, true};
  const ListedRow b0{
      TokenId{1}, {{TokenId{1}, -0.75F}, {TokenId{2}, -1.25F}, {TokenId{3}, -3.0F}}, true};
  const ListedRow a1{TokenId{2}, {{TokenId{2}, -1.0F}}, true};
  const ListedRow b1{TokenId{3}, {}, true};
  Comparison c;
  c.state = TraceState::complete;
  c.planned_steps = 3;
  c.imported_a = c.imported_b = side();
  c.steps = {compare_listed_step(0, a0, b0, 10), compare_listed_step(1, a1, b1, 10)};
  c.lanes = {{Lane::a, TraceState::complete, {TokenId{1}, TokenId{2}, TokenId{1}}, "length"},
             {Lane::b, TraceState::complete, {TokenId{1}, TokenId{3}}, "stop"}};
  c.first_divergence =
      Divergence{.step = 1, .token_a = TokenId{2}, .token_b = TokenId{3}, .reason = {}};
  c.first_divergence->margin_a = c.first_divergence->margin_b = c.first_divergence->drift =
      std::numeric_limits<double>::quiet_NaN();
  c.statistics = {{.metric = "max_abs", .count = 0},
                  {.metric = "margin_a", .count = 1, .maximum = 1.0, .argmax_step = 0}};
  c.verdict = Tier::different;
  c.pieces = {{TokenId{1}, "one"}, {TokenId{2}, "two"}, {TokenId{3}, "three"}};
  return c;
}

std::vector<std::vector<std::string>> rows_of(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back(1);
    for (const char c : line) {  // no cell here holds a comma
      if (c == ',') {
        rows.back().emplace_back();
      } else if (c != '"') {
        rows.back().back() += c;
      }
    }
  }
  return rows;
}

std::string cell(const std::vector<std::vector<std::string>>& rows, std::size_t row,
                 const std::string& head) {
  const auto& heads = rows.at(0);
  const auto found = std::find(heads.begin(), heads.end(), head);
  return found == heads.end() ? "no column " + head
                              : rows.at(row).at(static_cast<std::size_t>(found - heads.begin()));
}

TEST(ImportedCsv, WhatIsNotKnownIsAnEmptyField) {
  const auto rows = rows_of(csv_document(answers()));
  ASSERT_EQ(rows.size(), 3U);
  for (const auto& row : rows) EXPECT_EQ(row.size(), 8 + metric_registry().size());
  // Of step 0 the lists say this much, worked out by hand.
  EXPECT_EQ(cell(rows, 1, "margin_a [nat]"), "1");
  EXPECT_EQ(cell(rows, 1, "margin_b [nat]"), "0.5");
  EXPECT_EQ(cell(rows, 1, "pair_drift [nat]"), "0.5");  // -0.25 of the best, +0.25 of the second
  EXPECT_EQ(cell(rows, 1, "dlogp [nat]"), "-0.25");
  EXPECT_EQ(cell(rows, 1, "k1 [nat]"), "0.25");
  EXPECT_EQ(cell(rows, 1, "top1_match"), "1");
  EXPECT_EQ(cell(rows, 1, "topk_overlap"), "1");
  EXPECT_EQ(cell(rows, 1, "rank_flips [count]"), "0");  // measured, so a number
  EXPECT_EQ(cell(rows, 1, "flipped"), "0");
  // What needs whole rows, or where it was found, is not known.
  for (const char* head :
       {"max_abs_token", "max_abs [nat]", "rms [nat]", "kl_ab [nat]", "entropy_a [nat]", "headroom",
        "tie_ulps [ulp]", "error_a [nat]", "different_entries [count]", "drift_excess"}) {
    EXPECT_EQ(cell(rows, 1, head), "") << head;
  }
  // Of step 1 nothing but the tokens, by text: their places in the list are no ids of the model.
  for (const char* head : {"token_a", "choice_b", "token_b"}) {
    EXPECT_EQ(cell(rows, 2, head), "") << head;
  }
  EXPECT_EQ(cell(rows, 2, "text_a"), "two");
  EXPECT_EQ(cell(rows, 2, "text_b"), "three");
  EXPECT_EQ(cell(rows, 2, "flipped"), "1");
  for (std::size_t i = 7; i < rows[2].size(); ++i) EXPECT_EQ(rows[2][i], "") << rows[0][i];
}

TEST(ImportedCsv, AMeasuredNanOfWholeRowsStaysNan) {
  Comparison c = testing::handmade_comparison();
  c.imported_a = c.imported_b = ImportedSide{.format = "npy", .values = "logit", .prompt_text = {}};
  auto measured = std::make_shared<StepComparison>(*c.steps[1]);
  measured->metrics.health.nan_a = 1;  // A's row holds a NaN, and kl_ab is NaN because of it
  c.steps[1] = measured;
  EXPECT_EQ(cell(rows_of(csv_document(c)), 2, "kl_ab [nat]"), "NaN");
  // What no file can give was not measured, whatever the rows hold.
  measured = std::make_shared<StepComparison>(*measured);
  for (const char* id : {"tie_ulps", "error_a", "weights_kl", "noise_ratio"}) {
    measured->metrics.values[*metric_index(id)] = std::numeric_limits<double>::quiet_NaN();
  }
  c.steps[1] = measured;
  for (const char* head :
       {"tie_ulps [ulp]", "error_a [logit]", "weights_kl [nat]", "noise_ratio"}) {
    EXPECT_EQ(cell(rows_of(csv_document(c)), 2, head), "") << head;
  }
  measured = std::make_shared<StepComparison>(*measured);
  measured->metrics.health = {};
  c.steps[1] = measured;
  EXPECT_EQ(cell(rows_of(csv_document(c)), 2, "kl_ab [nat]"), "");
  EXPECT_EQ(cell(rows_of(csv_document(c)), 2, "max_abs [logit]"), "0.25");
}

TEST(ImportedHtml, SpeaksOfLogProbabilities) {
  std::string html = html_document(answers(), {});
  for (const char* part :
       {"Difference of the log probabilities that both sides list", "nat, logarithmic",
        "log probability A", "2, where A holds 3 and B 2", "margin not known",
        "the files list a few tokens", "not known as tokens", "No field that both files state"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  EXPECT_THAT(html, Not(HasSubstr("planned")));
  EXPECT_THAT(html, Not(HasSubstr("NaN")));
  const std::string id =
      "logit_rms";  // the name of a metric, that may stand among the unknown ones
  for (auto at = html.find(id); at != std::string::npos; at = html.find(id)) {
    html.erase(at, id.size());
  }
  EXPECT_THAT(html, Not(HasSubstr("logit")));
  EXPECT_THAT(html, Not(HasSubstr("Logit")));
}

TEST(ImportedHtml, RunsAndFilesOfLogitsKeepTheirWords) {
  const std::string own = html_document(testing::handmade_comparison(), {});
  EXPECT_THAT(own, HasSubstr("<th>logit A</th>"));
  EXPECT_THAT(own, HasSubstr("2 of 2 planned"));
  EXPECT_THAT(own, HasSubstr(">Difference of the logits<"));
  Comparison c = answers();
  c.imported_b = side("not_stated");  // nobody says what these are
  EXPECT_THAT(html_document(c, {}), HasSubstr("<th>logit A</th>"));
}

TEST(ImportedJson, UnitsAreThoseOfTheValues) {
  const auto unit = [](const Comparison& c) {
    return Json::parse(compare_document(c, {}))["metrics"]["margin_a"]["unit"];
  };
  Comparison c = answers();
  EXPECT_EQ(unit(c), "nat");
  c.imported_a = c.imported_b = side("logit");
  EXPECT_EQ(unit(c), "logit");
}

TEST(ImportedHtml, PlacesInAListAreNoIds) {
  Comparison c = answers();
  const std::string interned = html_document(c, {});
  EXPECT_THAT(interned, Not(HasSubstr("<th>id</th>")));
  EXPECT_THAT(interned, Not(HasSubstr(", id ")));
  EXPECT_THAT(interned, HasSubstr("two"));
  c.imported_a->interned = c.imported_b->interned = false;
  EXPECT_THAT(html_document(c, {}), HasSubstr("<th>id</th>"));
  EXPECT_THAT(html_document(c, {}), HasSubstr(", id 2"));
}

TEST(ImportedHtml, NumbersOfTwoKindsHaveNoDifference) {
  Comparison c = answers();
  c.imported_b = side("placeholder");
  const std::string html = html_document(c, {});
  EXPECT_THAT(html, HasSubstr("the sides' numbers are not of one kind"));
  EXPECT_THAT(html, Not(HasSubstr("that both sides list")));
}

TEST(ImportedJson, WhatFilesDoNotTellIsNull) {
  const Json json = Json::parse(compare_document(answers(), {.per_step = true}));
  EXPECT_EQ(testing::schema_problem(testing::load_schema("compare.schema.json"), json), "");
  EXPECT_EQ(json["ids"], "interned");
  EXPECT_EQ(json["pieces"]["2"], "two");
  for (const char* field : {"planned_steps", "vocabulary", "prompt_a", "prompt_b"}) {
    EXPECT_TRUE(json[field].is_null()) << field;
  }
  for (const char* field : {"rounding_bound", "rows_a", "rows_b"}) {
    EXPECT_TRUE(json["first_divergence"][field].is_null()) << field;
  }
  EXPECT_TRUE(json["per_step"][0]["max_abs_token"].is_null());
  const Json run = Json::parse(compare_document(testing::handmade_comparison(), {}));
  EXPECT_EQ(run["ids"], "vocabulary");
  EXPECT_FALSE(run.contains("pieces"));
  EXPECT_EQ(run["first_divergence"]["rows_a"], 0);
}

TEST(ImportedCsv, AnEqualValueIsZeroWithoutASign) {
  const ListedRow row{TokenId{1}, {{TokenId{1}, -0.5F}, {TokenId{2}, -1.5F}}, true};
  Comparison c = answers();
  c.steps = {compare_listed_step(0, row, row, 10)};
  const auto rows = rows_of(csv_document(c));
  EXPECT_EQ(cell(rows, 1, "dlogp [nat]"), "0");
  EXPECT_EQ(cell(rows, 1, "k1 [nat]"), "0");
}

TEST(ListedDifference, IsTakenOverTokensThatBothList) {
  const Comparison c = answers();
  EXPECT_EQ(largest_listed_difference(c.steps[0]->metrics), 0.25);
  EXPECT_EQ(listed_difference(c.steps[0]->metrics, TokenId{2}), 0.25);
  EXPECT_EQ(listed_difference(c.steps[0]->metrics, TokenId{3}), 0.0);
  EXPECT_TRUE(std::isnan(listed_difference(c.steps[0]->metrics, TokenId{9})));
  EXPECT_TRUE(std::isnan(largest_listed_difference(c.steps[1]->metrics)));
}

TEST(FittingWords, ReplaceEveryForm) {
  const Comparison c = answers();
  EXPECT_EQ(in_fitting_words(c, "Largest logit difference"), "Largest log probability difference");
  EXPECT_EQ(in_fitting_words(c, "Logits, logits: Logit and logit"),
            "Log probabilities, log probabilities: Log probability and log probability");
  EXPECT_EQ(in_fitting_words(testing::handmade_comparison(), "Logits"), "Logits");
}

}  // namespace
}  // namespace driftscope
