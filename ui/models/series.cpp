// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace driftscope::ui {

double metric_value(const StepComparison& step, std::string_view metric) {
  const auto index = metric_index(metric);
  if (!index || *index >= step.metrics.values.size()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return step.metrics.values[*index];
}

StepValues metric_values(const Comparison& comparison, std::string_view metric) {
  const auto index = metric_index(metric);
  if (!index) return {};
  StepValues values;
  values.reserve(comparison.steps.size());
  for (const auto& step : comparison.steps) {
    const auto& row = step->metrics.values;
    values.push_back(*index < row.size() ? row[*index] : std::numeric_limits<double>::quiet_NaN());
  }
  return values;
}

StepSpan column_span(std::int64_t first, std::int64_t last, std::int64_t columns,
                     std::int64_t index) {
  const std::int64_t count = last - first + 1;
  return {.first = first + index * count / columns,
          .last = first + (index + 1) * count / columns - 1};
}

MinMaxPyramid::MinMaxPyramid(StepValues values) : m_values(std::move(values)) {
  std::vector<Node> level;
  level.reserve(m_values.size());
  for (const double value : m_values) {
    Node node;
    node.has_nan = std::isnan(value);
    node.has_infinite = std::isinf(value);
    node.has_finite = std::isfinite(value);
    if (node.has_finite) node.minimum = node.maximum = value;
    level.push_back(node);
  }
  while (level.size() > 1) {
    std::vector<Node> next((level.size() + 1) / 2);
    for (std::size_t i = 0; i < level.size(); ++i) merge(next[i / 2], level[i]);
    m_levels.push_back(std::move(level));
    level = std::move(next);
  }
  m_levels.push_back(std::move(level));
}

void MinMaxPyramid::merge(Node& into, const Node& node) {
  into.has_nan = into.has_nan || node.has_nan;
  into.has_infinite = into.has_infinite || node.has_infinite;
  if (!node.has_finite) return;
  into.minimum = into.has_finite ? std::min(into.minimum, node.minimum) : node.minimum;
  into.maximum = into.has_finite ? std::max(into.maximum, node.maximum) : node.maximum;
  into.has_finite = true;
}

MinMaxPyramid::Node MinMaxPyramid::range(std::int64_t first, std::int64_t last) const {
  Node result;
  // The largest aligned block that starts at `first` and does not pass `last`, again and again.
  while (first <= last) {
    std::size_t level = 0;
    while (level + 1 < m_levels.size() && first % (std::int64_t{2} << level) == 0 &&
           first + (std::int64_t{2} << level) - 1 <= last) {
      ++level;
    }
    merge(result, m_levels[level][static_cast<std::size_t>(first >> level)]);
    first += std::int64_t{1} << level;
  }
  return result;
}

std::vector<ColumnRange> MinMaxPyramid::reduce(std::int64_t first, std::int64_t last,
                                               std::int64_t columns) const {
  first = std::max<std::int64_t>(first, 0);
  last = std::min(last, static_cast<std::int64_t>(m_values.size()) - 1);
  if (first > last || columns <= 0) return {};
  columns = std::min(columns, last - first + 1);
  std::vector<ColumnRange> result;
  result.reserve(static_cast<std::size_t>(columns));
  for (std::int64_t i = 0; i < columns; ++i) {
    const StepSpan span = column_span(first, last, columns, i);
    const Node node = range(span.first, span.last);
    result.push_back({.first_step = span.first,
                      .last_step = span.last,
                      .minimum = node.minimum,
                      .maximum = node.maximum,
                      .has_finite = node.has_finite,
                      .has_nan = node.has_nan,
                      .has_infinite = node.has_infinite});
  }
  return result;
}

}  // namespace driftscope::ui
