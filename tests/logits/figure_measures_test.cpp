// SPDX-License-Identifier: Apache-2.0
// Which figures are differences, and what those of batches and types say.
#include "tests/logits/figure_findings.h"

namespace driftscope {
namespace {

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

}  // namespace
}  // namespace driftscope
