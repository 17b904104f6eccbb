// SPDX-License-Identifier: Apache-2.0
// The cells of a table of reported figures as differences, with what each is a difference of.
// Internal to analysis/responses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/responses/figure_measures.h"
#include "analysis/responses/figure_rules.h"

namespace driftscope {

enum class PairKind : std::uint8_t { unknown, engine, dtype, batch, rerun, several };

struct FigureCell {
  FigureLabel label;
  PairKind kind = PairKind::unknown;
  std::string name;        // of the row or column that says it
  std::size_t group = 0;   // the measure (pairs in rows) or the subject (pairs in columns)
  std::size_t column = 0;  // of the table
  double reported = 0.0;
  double value = 0.0;  // as a difference, not below 0
  double whole = 0.0;  // of which the value is a share, 1 or 100; 0: no share
  FigureMeasure measure;
};

[[nodiscard]] std::vector<FigureCell> figure_cells(const FigureTable& table, bool pairs_in_rows);

// Leaves the cells that are differences: agreements are turned round, what is not known to be a
// difference goes. What was turned and what went is told.
[[nodiscard]] std::vector<FigureCell> keep_differences(const FigureTable& table,
                                                       std::vector<FigureCell> cells,
                                                       std::vector<Finding>& findings);

// "max_abs", "100 - match_pct": what the value of a cell is.
[[nodiscard]] std::string measure_text(const FigureTable& table, const FigureCell& cell);
// A measure that is the largest of its kind says more than a mean.
[[nodiscard]] bool names_a_maximum(std::string_view column);
[[nodiscard]] std::string figure_text_of(double value);

// How a difference behaves from a coarse type to a fine one. Rounding halves with each bit of the
// significand; other orders of sums and fp32 math modes such as tf32 leave some of it, so that less
// is asked for.
enum class Shrinks : std::uint8_t { as_rounding, undecided, not_at_all };
struct TypeShrink {
  double factor = 0.0;  // coarse / fine; infinite where the fine type shows none
  double full = 0.0;    // of the types' own steps
  Shrinks verdict = Shrinks::undecided;
};
[[nodiscard]] TypeShrink shrink_of(const FigureCell& coarse, const FigureCell& fine);
[[nodiscard]] std::string shrink_text(const TypeShrink& shrink, const FigureCell& coarse,
                                      const FigureCell& fine);

// Part of judge_table(): batch sizes and reruns, of differences.
void judge_batches(const FigureTable& table, const std::vector<FigureCell>& cells,
                   std::vector<Finding>& findings);

}  // namespace driftscope
