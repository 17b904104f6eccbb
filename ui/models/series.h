// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers per step, and their reduction to what a row of pixels can show.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/compare/comparison.h"

namespace driftscope::ui {

// values[i] belongs to step i. NaN: undefined at this step.
using StepValues = std::vector<double>;

// One metric over all steps. Empty where the registry has no such metric.
[[nodiscard]] StepValues metric_values(const Comparison& comparison, std::string_view metric);
// The value of one step, NaN where there is none.
[[nodiscard]] double metric_value(const StepComparison& step, std::string_view metric);

// What one pixel column shows of the steps that fall into it.
struct ColumnRange {
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;  // inclusive
  double minimum = 0.0;        // of the finite values
  double maximum = 0.0;
  bool has_finite = false;
  bool has_nan = false;
  bool has_infinite = false;
};

// Minima and maxima over aligned blocks of 2, 4, 8, … steps: any range is reduced to any number of
// columns in time proportional to the columns.
class MinMaxPyramid {
 public:
  MinMaxPyramid() = default;
  explicit MinMaxPyramid(StepValues values);
  [[nodiscard]] const StepValues& values() const { return m_values; }
  // Steps first … last (inclusive, cut to what is there) in at most `columns` columns. With no more
  // steps than columns, one column per step. Nothing is ever left out: each step is in one column.
  [[nodiscard]] std::vector<ColumnRange> reduce(std::int64_t first, std::int64_t last,
                                                std::int64_t columns) const;

 private:
  struct Node {
    double minimum = 0.0;
    double maximum = 0.0;
    bool has_finite = false;
    bool has_nan = false;
    bool has_infinite = false;
  };
  static void merge(Node& into, const Node& node);
  [[nodiscard]] Node range(std::int64_t first, std::int64_t last) const;
  StepValues m_values;
  std::vector<std::vector<Node>> m_levels;  // level k: blocks of 2^k steps
};

// The two limits of a column's block: steps that column `index` of `columns` covers.
struct StepSpan {
  std::int64_t first = 0;
  std::int64_t last = 0;  // inclusive
};
[[nodiscard]] StepSpan column_span(std::int64_t first, std::int64_t last, std::int64_t columns,
                                   std::int64_t index);

}  // namespace driftscope::ui
