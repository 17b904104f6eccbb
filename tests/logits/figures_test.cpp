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
#include "tests/logits/figure_findings.h"

namespace driftscope {
namespace {

using Json = nlohmann::json;

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
              testing::Not(testing::HasSubstr("so it is no chance")));
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
