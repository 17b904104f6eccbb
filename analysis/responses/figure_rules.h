// SPDX-License-Identifier: Apache-2.0
// What figures that somebody reported carry, and what they do not: rules over tables, lists, best
// tokens, first differences and KL statistics. They look at structure, numbers and the words of
// labels (types, batch sizes, "vs"), never at names of files.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/comparison.h"
#include "analysis/import/reported_figures.h"

namespace driftscope {

// In the order in which a reader wants them; never empty for figures that were read.
[[nodiscard]] std::vector<Finding> judge_figures(const ReportedFigures& figures);

// A label taken apart: "bloom-560m DS fp16 vs HF fp32", "bf16_b1_vs_b8", "TE blockwise FP8 base".
struct FigureSide {
  std::string dtype;                // "fp16"; empty: not named
  std::string batch;                // "8"; empty: not named
  std::vector<std::string> others;  // the other words, lower case
};
struct FigureLabel {
  FigureSide a, b;
  bool pair = false;   // of two sides; else only `a` is filled
  bool rerun = false;  // the same side twice
};
[[nodiscard]] FigureLabel take_label_apart(std::string_view label);

// How fine a type is: bits of its significand; 0 for a name that is not known.
[[nodiscard]] int figure_dtype_bits(std::string_view dtype);
// Words in lower case; a type behind a hyphen stands apart.
[[nodiscard]] std::vector<std::string> figure_words(std::string_view label);

// -9999 and values beyond 1e8 stand for "outside of what was kept", not for a figure.
[[nodiscard]] bool is_figure_placeholder(double value);

// Parts of judge_figures().
void judge_table(const FigureTable& table, std::vector<Finding>& findings);
// Two columns of values of the same tokens ("vllm_logprob", "hf_logprob"): their differences.
// False: there are no such two.
bool judge_value_pairs(const FigureTable& table, std::vector<Finding>& findings);
void judge_list(const FigureList& list, std::vector<Finding>& findings);
void judge_top(const ReportedFigures& figures, const FigureTop& top,
               std::vector<Finding>& findings);
void judge_divergence(const ReportedFigures& figures, std::vector<Finding>& findings);
void judge_kl(const ReportedFigures& figures, std::vector<Finding>& findings);
void judge_observations(const ReportedFigures& figures, std::vector<Finding>& findings);

}  // namespace driftscope
