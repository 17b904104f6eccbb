// SPDX-License-Identifier: Apache-2.0
// Reported figures: the statements that the public reports expect, where they are there, and tables
// of the same kinds made for this test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "analysis/compare/difference_grid.h"
#include "analysis/responses/figure_rules.h"

namespace driftscope {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

std::vector<Finding> judge(const std::string& text) {
  const auto figures = read_reported_figures(text, "f");
  EXPECT_TRUE(figures) << (figures ? "" : figures.error().message);
  return figures ? judge_figures(*figures) : std::vector<Finding>();
}

// A copy: the findings may be a temporary.
std::optional<Finding> find(const std::vector<Finding>& findings, std::string_view id) {
  for (const Finding& finding : findings) {
    if (finding.id == id) return finding;
  }
  return std::nullopt;
}

#define EXPECT_TELLS(findings, id, part)       \
  do {                                         \
    const auto found = find(findings, id);     \
    ASSERT_TRUE(found) << (id);                \
    EXPECT_THAT(found->text, HasSubstr(part)); \
  } while (false)

Json evidence(const std::vector<Finding>& findings, std::string_view id) {
  const auto found = find(findings, id);
  return found ? Json::parse(found->evidence) : Json();
}

class ReportedFigures_ : public testing::Test {
 protected:
  static std::vector<Finding> report(const std::string& name) {
    const auto path = std::filesystem::path(DRIFTSCOPE_SHARED_DATA) / "reports" / name;
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return judge(text.str());
  }
  void SetUp() override {
    if (!std::filesystem::exists(std::filesystem::path(DRIFTSCOPE_SHARED_DATA) / "reports")) {
      GTEST_SKIP() << "the reports are not there";
    }
  }
};

TEST_F(ReportedFigures_, EngineExceedsDtype) {  // DeepSpeed 2730
  const auto findings = report("deepspeedai-DeepSpeed-2730__table.json");
  EXPECT_TELLS(findings, "engine_exceeds_dtype", "Look at the kernels, not at the type");
  EXPECT_EQ(evidence(findings, "engine_exceeds_dtype")["engine"], 10.054);
  EXPECT_EQ(evidence(findings, "engine_exceeds_dtype")["dtype"], 0.28771);
}

TEST_F(ReportedFigures_, Fp8OnAGrid) {  // miles 2722
  const auto findings = report("radixark-miles-2722__table.json");
  EXPECT_TELLS(findings, "quantised_logits_grid", "Quantised logits grid");
  EXPECT_EQ(evidence(findings, "quantised_logits_grid")["step"], 0.125);
  EXPECT_TELLS(findings, "error_by_dtype", "fp8");
}

TEST_F(ReportedFigures_, DriftBetweenBatchSizesOnly) {  // verl 6280
  const auto findings = report("verl-project-verl-6280__table.csv");
  EXPECT_TELLS(findings, "repeats_exactly", "0 in all 8 cases");
  EXPECT_TELLS(findings, "batch_dependent_rounding", "finest type shows none");
  EXPECT_EQ(evidence(findings, "batch_dependent_rounding")["bf16"], 60.03);
  EXPECT_EQ(evidence(findings, "batch_dependent_rounding")["fp32"], 0.0);
}

TEST_F(ReportedFigures_, ExactTieUnderTopOne) {  // tpu-inference 3580
  const auto findings = report("vllm-project-tpu-inference-3580__trace.json");
  EXPECT_TELLS(findings, "exact_tie", "exact bf16 tie");
  EXPECT_TELLS(findings, "exact_tie", "about 50% of the time");
  EXPECT_EQ(evidence(findings, "exact_tie")["margin"], 0.0);
}

TEST_F(ReportedFigures_, ListOfDifferences) {  // vllm 18352
  const auto findings = report("vllm-project-vllm-18352__absdiff.json");
  const Json e = evidence(findings, "difference_list");
  EXPECT_EQ(e["n"], 25);
  EXPECT_EQ(e["max"], 0.31972);
  EXPECT_EQ(e["max_index"], 3);
  EXPECT_NEAR(e["mean"].get<double>(), 0.045791, 1e-6);
  EXPECT_FALSE(find(findings, "quantised_logits_grid"));
}

TEST_F(ReportedFigures_, FirstDifferenceWithoutMargin) {  // dflash 159
  const auto findings = report("z-lab-dflash-159__summary.json");
  EXPECT_TELLS(findings, "first_divergence", "step 29 (counted from 0)");
  EXPECT_TELLS(findings, "first_divergence", "494 against 3559");
  EXPECT_TELLS(findings, "first_divergence", "margin is unknown");
}

TEST_F(ReportedFigures_, KlStatistics) {  // llama.cpp 12557
  const auto findings = report("ggml-org-llama.cpp-12557__klstats.json");
  EXPECT_TELLS(findings, "same_top", "about 1 in 10 flips");
  EXPECT_TELLS(findings, "kl_min", "~0");
  EXPECT_TELLS(findings, "kl_min", "no error");
  EXPECT_EQ(evidence(findings, "kl_min")["shown"], 0.0);
}

TEST(Figures, MarkdownTableWhereTheTypeAccounts) {
  const auto findings = judge(
      "| comparison | mean abs diff | max abs diff |\n"
      "|---|---|---|\n"
      "| vLLM bf16 vs HF bf16 | 0.02 | 0.25 |\n"
      "| vLLM fp32 vs HF fp32 | 1e-6 | 2e-5 |\n"
      "| HF bf16 vs HF fp32 | 0.01 | 0.19 |\n");
  EXPECT_FALSE(find(findings, "engine_exceeds_dtype"));
  EXPECT_TELLS(findings, "dtype_exceeds_engine", "The type alone accounts for it");
  EXPECT_EQ(evidence(findings, "dtype_exceeds_engine")["engine"], 2e-5);
}

TEST(Figures, ARerunThatDiffersTakesTrustAway) {
  const auto findings = judge("model,fp16_b1_vs_b4,fp16_b1_rerun\nx,0.5,0.4\ny,0.1,0.0\n");
  EXPECT_TELLS(findings, "does_not_repeat", "1 of 2 cases");
  EXPECT_THAT(find(findings, "batch_dependent_rounding")->text,
              testing::Not(HasSubstr("so it is no chance")));
}

TEST(Figures, BatchesThatChangeNothing) {
  const auto findings = judge("model\tbf16_bs1_vs_bs16\nx\t0.0\ny\t0\n");
  EXPECT_TRUE(find(findings, "batch_invariant"));
  EXPECT_FALSE(find(findings, "batch_dependent_rounding"));
}

TEST(Figures, TypesOnTheOtherAxis) {
  const auto findings = judge(
      "| case | bf16 | fp32 |\n|---|---|---|\n| bs=1 vs bs=8 | **0.5** | 0 |\n"
      "| batch size 1 vs 32 | 0.25 \u00b1 0.1 | 0.0 |\n| rerun | 0 | 0 |\n");
  EXPECT_TELLS(findings, "repeats_exactly", "all 2 cases");
  EXPECT_EQ(evidence(findings, "batch_dependent_rounding")["bf16"], 0.5);
  EXPECT_EQ(evidence(findings, "batch_dependent_rounding")["fp32"], 0.0);
}

TEST(Figures, ADifferenceThatDoesNotShrinkWithTheType) {
  // From bf16 (8 bits) to fp32 (24 bits) rounding shrinks by 2^16.
  EXPECT_TELLS(judge("pair,max\nvLLM bf16 vs HF bf16,0.5\nvLLM fp32 vs HF fp32,0.4\n"),
               "beyond_type", "look at what the two compute");
  EXPECT_TRUE(find(judge("pair,max\nvLLM bf16 vs HF bf16,0.5\nvLLM fp32 vs HF fp32,1e-5\n"),
                   "rounding_of_type"));
}

TEST(Figures, PrintedStatistics) {
  const auto findings = judge(
      "====== KL divergence statistics ======\nMean    KLD:   0.000796 \u00b1   0.000049\n"
      "Maximum KLD:   0.006531\nMinimum KLD:  -0.000003\n"
      "Same top p: 98.942 \u00b1 0.527 %\n");
  EXPECT_EQ(evidence(findings, "kl_statistics")["kld_mean"], 0.000796);
  EXPECT_EQ(evidence(findings, "kl_min")["shown"], 0.0);
  EXPECT_TELLS(findings, "same_top", "about 1 in 95 flips");  // 1 / 0.01058
}

TEST(Figures, DivergenceAsAnObject) {
  const auto findings = judge(R"({"first_divergence": {"step": 3, "a": 10, "b": 11}})");
  EXPECT_EQ(evidence(findings, "first_divergence")["step"], 3);
  EXPECT_TELLS(findings, "first_divergence", "10 against 11");
  EXPECT_FALSE(is_reported_figures(R"({"max_diff_index": 3, "mismatch_count": 4})"));
}

TEST(Figures, BestTokensAsAnObject) {
  EXPECT_TRUE(find(judge(R"({"top_logits": {"x": 5.0, "y": 5.0}})"), "exact_tie"));
}

TEST(Figures, RowsAsObjects) {
  const auto findings = judge(
      R"([{"run": "A fp16 vs B fp16", "max_diff": 3.0}, {"run": "A fp16 vs A fp32", "max_diff": 1.0}])");
  EXPECT_TRUE(find(findings, "engine_exceeds_dtype"));
}

TEST(Figures, OneBasedAndNested) {
  const auto findings = judge(
      R"({"result": {"first_mismatch_one_based": 5, "ref_token": " a", "test_token": " b"}})");
  EXPECT_EQ(evidence(findings, "first_divergence")["step"], 4);
  EXPECT_TELLS(findings, "first_divergence", " a against  b");
}

TEST(Figures, NearTieAndWideMargin) {
  // bf16 numbers between 16 and 32 stand 1/8 apart.
  EXPECT_TELLS(judge(R"({"step": 7, "top_logits": [{"token": "x", "logit": 20.25},)"
                     R"( {"token": "y", "logit": 20.125}]})"),
               "near_tie", "1 steps of bf16");
  EXPECT_TRUE(find(judge(R"({"top": [["x", 20.0], ["y", 11.5]]})"), "margin"));
}

TEST(Figures, KlBelowZeroByTooMuchIsAFault) {
  EXPECT_TELLS(judge(R"({"Mean KLD": 0.01, "Minimum KLD": -0.02})"), "kl_negative", "below 0");
}

TEST(Figures, ListWithAGridAndADominatingFirst) {
  const auto grid = judge(R"({"logit_diffs": [0.125, 0.25, 0, 0.125, 0.5, 0.375, 0.125]})");
  EXPECT_TELLS(grid, "quantised_logits_grid", "6 of 6");
  EXPECT_TELLS(judge(R"({"errors": [1.5, 0.1, 0.1, 0.1]})"), "one_place_dominates", "first token");
}

TEST(Figures, WhatIsNotFigures) {
  EXPECT_FALSE(is_reported_figures(""));
  EXPECT_FALSE(is_reported_figures("hello world"));
  EXPECT_FALSE(is_reported_figures("{\"a\": 1}"));
  EXPECT_FALSE(is_reported_figures("a,b\nc,d\n"));
  EXPECT_FALSE(is_reported_figures(R"({"choices": [{"index": 0, "message": {"content": "x"}}]})"));
  EXPECT_FALSE(is_reported_figures(std::string(100000, '[')));
}

TEST(Figures, TheExpectedFieldIsNotRead) {
  const auto findings = judge(R"({"expected": {"abs_diff": [9, 9]}, "abs_diff": [1.0, 2.0]})");
  EXPECT_EQ(evidence(findings, "difference_list")["max"], 2.0);
}

TEST(Figures, MatchRatesAreTurnedRound) {
  const std::string rows = "llama-8b,60.03,100.00,100.00\nqwen,70.0,100.00,100.00\n";
  for (const std::string what : {"_match_pct", " exact match %"}) {
    const auto findings = judge("model,bf16_b1_vs_b8" + what + ",fp32_b1_vs_b8" + what +
                                ",bf16_b1_rerun" + what + "\n" + rows);
    EXPECT_TELLS(findings, "read_as_agreement", "100 - x");
    EXPECT_TELLS(findings, "repeats_exactly", "0 in all 2 cases");
    EXPECT_TELLS(findings, "batch_dependent_rounding", "finest type shows none");
    // 100 - 60.03, the larger of 39.97 and 30
    EXPECT_NEAR(evidence(findings, "batch_dependent_rounding")["bf16"].get<double>(), 39.97, 1e-9);
    EXPECT_EQ(evidence(findings, "batch_dependent_rounding")["fp32"], 0.0);
    EXPECT_FALSE(find(findings, "does_not_repeat"));
  }
}

TEST(Figures, CosinesAreTurnedRound) {
  const auto findings = judge(
      "| pair | cosine_similarity |\n|---|---|\n| vLLM fp16 vs HF fp16 | 0.9999 |\n"
      "| vLLM fp32 vs HF fp32 | 0.99999999 |\n| HF fp16 vs HF fp32 | 0.97 |\n");
  EXPECT_TELLS(findings, "read_as_agreement", "1 - x");
  EXPECT_FALSE(find(findings, "engine_exceeds_dtype"));
  EXPECT_NEAR(evidence(findings, "dtype_exceeds_engine")["dtype"].get<double>(), 0.03, 1e-12);
  EXPECT_NEAR(evidence(findings, "dtype_exceeds_engine")["engine"].get<double>(), 1e-8, 1e-12);
  // 1 - x of a cosine is a square: 1e4-fold is 100-fold.
  EXPECT_TRUE(find(findings, "rounding_of_type"));
}

TEST(Figures, AnAgreementWithoutItsScaleConcludesNothing) {
  for (const std::string values : {"99.99", "7", "101.5", "-2"}) {
    const auto findings = judge("pair,cosine\nA bf16 vs B bf16," + values +
                                "\nA fp32 vs B fp32,1\nA bf16 vs A fp32,0.5\n");
    EXPECT_TELLS(findings, "agreement_without_scale", "no conclusion");
    EXPECT_FALSE(find(findings, "dtype_exceeds_engine")) << values;
    EXPECT_FALSE(find(findings, "engine_exceeds_dtype")) << values;
  }
}

TEST(Figures, WhatIsNoDifferenceConcludesNothing) {
  const auto types = judge("model,tokens_per_s,latency_ms\nbf16,100,5\nfp32,50,10\n");
  EXPECT_TELLS(types, "not_a_difference", "tokens_per_s");
  EXPECT_FALSE(find(types, "error_by_dtype"));
  for (const std::string what : {"latency_ms", "tokens/s", "peak memory GB", "accuracy",
                                 "accuracy_diff", "first_divergence_step", "std_error"}) {
    const auto pairs = judge("pair," + what + "\nA bf16 vs B bf16,5\nA fp32 vs B fp32,4\n" +
                             "A bf16 vs A fp32,1\n");
    EXPECT_TELLS(pairs, "not_a_difference", "no conclusion");
    EXPECT_FALSE(find(pairs, "engine_exceeds_dtype")) << what;
    EXPECT_FALSE(find(pairs, "beyond_type")) << what;
    const auto batches =
        judge("model,bf16_b1_vs_b8 " + what + ",bf16_b1_rerun " + what + "\nllama,60.03,0.00\n");
    EXPECT_TELLS(batches, "not_a_difference", "no conclusion");
    EXPECT_FALSE(find(batches, "batch_dependent_rounding")) << what;
    EXPECT_FALSE(find(batches, "repeats_exactly")) << what;
  }
}

TEST(Figures, AMeasureWithoutANameNeedsAZero) {
  // A rerun at 100 is an agreement, whatever it is of; without rerun or zero nothing tells.
  for (const std::string rows : {"x,60,100,100\ny,0,100,100\n", "x,0.6,1,1\n", "x,60,40,3\n"}) {
    const auto findings = judge("model,bf16_b1_vs_b8,fp32_b1_vs_b8,bf16_b1_rerun\n" + rows);
    EXPECT_TELLS(findings, "measure_not_named", "no conclusion");
    EXPECT_FALSE(find(findings, "batch_dependent_rounding")) << rows;
    EXPECT_FALSE(find(findings, "batch_beyond_type")) << rows;
  }
  EXPECT_TRUE(
      find(judge("pair,value\nA fp16 vs B fp16,3\nA fp16 vs A fp32,1\n"), "measure_not_named"));
}

TEST(Figures, TheMeasureMayStandInARow) {
  const auto findings =
      judge("model,metric,bf16_b1_vs_b8,fp32_b1_vs_b8\nx,exact match,0.5,1.0\nx,latency ms,3,4\n");
  EXPECT_TRUE(find(findings, "not_a_difference"));
  EXPECT_EQ(evidence(findings, "batch_dependent_rounding")["bf16"], 0.5);
  EXPECT_EQ(evidence(findings, "batch_dependent_rounding")["fp32"], 0.0);
}

TEST(Figures, OneRowForEachMeasure) {
  const auto findings = judge(
      "pair,metric,value\nA bf16 vs B bf16,max abs diff,0.3\nA fp32 vs B fp32,max abs diff,0.2\n"
      "A bf16 vs B bf16,cosine,0.9\nA fp32 vs B fp32,cosine,1\n");
  EXPECT_TELLS(findings, "beyond_type", "0.3 in bf16 and by 0.2 in fp32 (value (max abs diff))");
}

TEST(Figures, BatchesThatDoNotShrinkWithTheTypeAreNoRounding) {
  const auto findings = judge(
      "model,bf16_b1_vs_b8,fp32_b1_vs_b8,bf16_b1_rerun\nllama-8b,5.1,4.80,0.00\n"
      "qwen-7b,3.2,3.00,0.00\n");
  EXPECT_TELLS(findings, "batch_beyond_type", "So it is not rounding");
  EXPECT_TELLS(findings, "batch_beyond_type", "1.062-fold");  // 5.1 / 4.8 = 1.0625
  EXPECT_FALSE(find(findings, "batch_dependent_rounding"));
  // 5.1 / 0.3 = 17 is enough, 5.1 / 0.6 = 8.5 is neither.
  EXPECT_TRUE(find(judge("model,bf16_b1_vs_b8,fp32_b1_vs_b8,bf16_b1_rerun\nx,5.1,0.3,0\n"),
                   "batch_dependent_rounding"));
  EXPECT_TELLS(judge("model,bf16_b1_vs_b8,fp32_b1_vs_b8,bf16_b1_rerun\nx,5.1,0.6,0\n"),
               "batch_dependent", "cannot be told");
  // From bf16 to fp16 three bits: 8-fold at the most, so 4-fold is enough.
  EXPECT_TRUE(find(judge("model,bf16_b1_vs_b8,fp16_b1_vs_b8,bf16_b1_rerun\nx,5,1.2,0\n"),
                   "batch_dependent_rounding"));
}

TEST(Figures, ARerunThatDiffersAsMuchSaysNothingOfTheBatch) {
  const auto findings = judge(
      "model,bf16_b1_vs_b8,fp32_b1_vs_b8,bf16_b1_rerun\nllama-8b,5.1,0.00,4.9\n"
      "qwen-7b,3.2,0.00,3.5\n");
  EXPECT_TELLS(findings, "batch_within_rerun", "Nothing can be said of the batch");
  EXPECT_EQ(evidence(findings, "batch_within_rerun")["batch"], 5.1);
  EXPECT_EQ(evidence(findings, "batch_within_rerun")["rerun"], 4.9);
  EXPECT_FALSE(find(findings, "batch_dependent_rounding"));
  EXPECT_FALSE(find(findings, "batch_invariant"));
  const auto some = judge(
      "model,bf16_b1_vs_b8,fp32_b1_vs_b8,bf16_b1_rerun\nllama-8b,5.1,0.00,0.00\n"
      "qwen-7b,3.2,0.00,3.5\n");
  EXPECT_TELLS(some, "batch_dependent_rounding", "Left out: 1 case");
  EXPECT_TELLS(some, "batch_dependent_rounding", "If that is no chance");
}

TEST(Figures, AShrinkBelowTheTypesStepsIsStillRounding) {
  const auto findings = judge(
      "| pair | cosine | max_elem_diff |\n|---|---|---|\n"
      "| vLLM bf16 vs HF bf16 | 0.99991 | 0.31 |\n"
      "| vLLM fp32 vs HF fp32 | 0.99999999 | 0.0004 |\n| HF bf16 vs HF fp32 | 0.9998 | 0.45 |\n");
  EXPECT_TELLS(findings, "rounding_of_type", "775-fold");  // 0.31 / 0.0004
  EXPECT_TELLS(findings, "rounding_of_type", "65536-fold");
  EXPECT_FALSE(find(findings, "beyond_type"));
  EXPECT_EQ(evidence(findings, "dtype_exceeds_engine")["measures_dtype_larger"], 2);
  // 0.5 / 0.1 = 5: neither
  EXPECT_TELLS(judge("pair,max diff\nA bf16 vs B bf16,0.5\nA fp32 vs B fp32,0.1\n"),
               "partly_by_type", "cannot be told");
  // … unless what is left at fp32 is more than the types make.
  EXPECT_TELLS(judge("pair,max diff\nA bf16 vs B bf16,0.5\nA fp32 vs B fp32,0.1\n"
                     "A bf16 vs A fp32,0.05\n"),
               "beyond_type", "more than the types make");
}

TEST(Figures, PairsOfOtherEnginesAreNotMixed) {
  EXPECT_FALSE(
      find(judge("pair,max diff\nA bf16 vs B bf16,0.5\nC fp32 vs D fp32,0.4\n"), "beyond_type"));
}

TEST(Figures, PlaceholdersInListsAreLeftOut) {
  const auto findings = judge(R"({"logprob_diff": [-0.5, 0.25, 0.001, -9999.0]})");
  EXPECT_TELLS(findings, "placeholder_left_out", "-9999 at index 3");
  EXPECT_EQ(evidence(findings, "difference_list")["n"], 3);
  EXPECT_EQ(evidence(findings, "difference_list")["max"], 0.5);
  EXPECT_EQ(evidence(findings, "difference_list")["max_index"], 0);
}

TEST(Figures, NoNumbersInListsAreNamedAndTheRestIsRead) {
  const auto findings = judge(R"({"abs_logprob_diff": [null, 0.0, NaN, 0.5, 0.001]})");
  EXPECT_TELLS(findings, "not_a_number", "NaN, not a number, at index 2");
  EXPECT_EQ(find(findings, "not_a_number")->severity, Severity::error);
  EXPECT_EQ(evidence(findings, "no_value")["first_index"], 0);
  EXPECT_EQ(evidence(findings, "difference_list")["n"], 3);
  EXPECT_EQ(evidence(findings, "difference_list")["max_index"], 3);
  EXPECT_TRUE(find(judge(R"({"errors": ["NaN", 1.0]})"), "not_a_number"));
  EXPECT_FALSE(find(judge(R"({"errors": [NaN, NaN]})"), "difference_list"));
}

TEST(Figures, NoNumbersInTablesAreNamed) {
  const auto findings =
      judge("pair,max diff\nA bf16 vs B bf16,NaN\nA fp32 vs B fp32,0.5\nA bf16 vs A fp32,-9999\n");
  EXPECT_TELLS(findings, "not_a_number", "A bf16 vs B bf16");
  EXPECT_TELLS(findings, "placeholder_left_out", "A bf16 vs A fp32");
  EXPECT_FALSE(find(findings, "dtype_exceeds_engine"));
}

TEST(Figures, ImpossibleSharesAreNamed) {
  const auto findings = judge(R"({"mean_kld": 0.4, "max_kld": 1.0, "same_top_pct": 101.0})");
  EXPECT_TELLS(findings, "impossible_value", "101");
  EXPECT_FALSE(find(findings, "same_top"));
  EXPECT_TELLS(judge(R"({"mean_kld": 2.0, "max_kld": 1.0})"), "impossible_value", "largest is 1");
  EXPECT_TRUE(find(judge(R"({"mean_kld": NaN, "max_kld": 1.0})"), "impossible_value"));
  EXPECT_FALSE(find(judge(R"({"mean_kld": 0.4, "same_top_pct": 100.0})"), "impossible_value"));
}

TEST(Figures, EqualDecimalsAreNoExactTie) {
  const auto findings =
      judge(R"({"kind": "logprobs_top2", "step": 3, "top": [[" 5", -0.6931], [" 7", -0.6931]]})");
  EXPECT_FALSE(find(findings, "exact_tie"));
  EXPECT_TELLS(findings, "near_tie", "at most 0.0001 apart");
  // -0.5 is a bf16 number, but a log probability is not rounded to bf16.
  EXPECT_FALSE(find(judge(R"({"top_logprobs": {"x": -0.75, "y": -0.75}})"), "exact_tie"));
  EXPECT_TELLS(judge(R"({"top_logits": {"x": 21.37, "y": 21.37}})"), "near_tie", "0.01 apart");
  // Ten digits resolve single precision.
  EXPECT_TRUE(find(judge(R"({"top": [["x", -0.6931471806], ["y", -0.6931471806]]})"), "exact_tie"));
}

TEST(Figures, AReportThatContradictsItself) {
  const auto findings =
      judge(R"({"comparison": {"exact_token_parity": true, "first_difference_zero_based": 29,)"
            R"( "baseline_token_at_difference": 494, "spec_token_at_difference": 3559}})");
  EXPECT_TELLS(findings, "contradiction", "step 29 (counted from 0): 494 against 3559");
  EXPECT_EQ(find(findings, "contradiction")->severity, Severity::error);
  EXPECT_FALSE(find(findings, "first_divergence"));
  EXPECT_TELLS(judge(R"({"first_difference_index": 4, "a": 10, "b": 10})"), "contradiction",
               "same token");
}

TEST(Figures, ParityWithoutADivergenceIsAReport) {
  EXPECT_TELLS(
      judge(R"({"comparison": {"exact_token_parity": true, "first_difference_zero_based": null}})"),
      "no_divergence", "same tokens");
  EXPECT_TELLS(judge(R"({"outputs_match": false})"), "divergence_without_place", "not where");
  EXPECT_FALSE(is_reported_figures(R"({"exact_match": true, "prompt_tokens_equal": true})"));
}

TEST(Figures, TwoColumnsOfLogprobsAreSubtracted) {
  const auto findings = judge(
      "step,token,vllm_logprob,hf_logprob\n10, The,-0.5,-0.5\n11, cat,-1.25,-1.26\n"
      "12, sat,-0.1,-3.2\n");
  EXPECT_TELLS(findings, "value_pairs", "first other at step 11 (\"cat\"), by 0.01");
  EXPECT_TELLS(findings, "value_pairs", "largest difference is 3.1 at step 12 (\"sat\")");
  EXPECT_EQ(evidence(findings, "difference_list")["n"], 3);
  EXPECT_EQ(evidence(findings, "difference_list")["max_index"], 2);
  EXPECT_TELLS(judge("| token | vLLM | HF |\n|---|---|---|\n| The | -0.5 | -0.5 |\n"
                     "| cat | -1.25 | -1.26 |\n"),
               "value_pairs", "row 1 from 0 (\"cat\")");
  EXPECT_TELLS(judge("token,a logprob,b logprob\nx,-1,-1\ny,-2,-2\n"), "value_pairs",
               "equal in all 2 rows");
}

TEST(Labels, TakenApart) {
  const FigureLabel a = take_label_apart("bloom-560m DS fp16 vs HF fp32");
  EXPECT_TRUE(a.pair);
  EXPECT_EQ(a.a.dtype, "fp16");
  EXPECT_EQ(a.b.dtype, "fp32");
  const FigureLabel b = take_label_apart("bf16_b1_vs_b8");
  EXPECT_EQ(b.a.batch, "1");
  EXPECT_EQ(b.b.batch, "8");
  EXPECT_EQ(b.b.dtype, "bf16");
  EXPECT_TRUE(take_label_apart("bf16_b1_rerun").rerun);
}

TEST(Grid, AllSomeAndNone) {
  const std::vector<double> all{0.125, -0.25, 0.0, 0.375, 0.125};
  const auto grid = find_difference_grid(all, 1e-4);
  ASSERT_TRUE(grid);
  EXPECT_EQ(grid->step, 0.125);
  EXPECT_EQ(grid->on_grid, 4);
  EXPECT_TRUE(grid->all);
  const std::vector<double> sixteenth{0.0625, 0.1875, 0.25, 0.3125};
  EXPECT_EQ(find_difference_grid(sixteenth, 1e-4)->step, 0.0625);
  const std::vector<double> some{0.125, 0.25, 0.375, 0.125, 0.031, 0.017, 0.0931, 0.21};
  ASSERT_TRUE(find_difference_grid(some, 1e-4));
  EXPECT_FALSE(find_difference_grid(some, 1e-4)->all);
  const std::vector<double> none{0.1, 0.2131, 0.017, 0.0931, 0.311};
  EXPECT_FALSE(find_difference_grid(none, 1e-4));
  const std::vector<double> few{0.125, 0.25, 0.375};
  EXPECT_FALSE(find_difference_grid(few, 1e-4));
  const std::vector<double> coarse{0.1, 0.2, 0.1, 0.3};
  EXPECT_FALSE(find_difference_grid(coarse, 0.05)) << "printed too coarsely to tell";
}

}  // namespace
}  // namespace driftscope
