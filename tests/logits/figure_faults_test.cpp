// SPDX-License-Identifier: Apache-2.0
// Figures that are missing, impossible or at odds with each other.
#include "tests/logits/figure_findings.h"

namespace driftscope {
namespace {

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

}  // namespace
}  // namespace driftscope
