// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace driftscope {

namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

void fill_moments(RunStatistic& statistic, std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  for (const double value : values) statistic.sum += value;
  statistic.mean = statistic.sum / count;
  double squares = 0.0;
  for (const double value : values) {
    const double centred = value - statistic.mean;
    squares += centred * centred;
  }
  statistic.standard_error =
      values.size() < 2 ? kNoValue : std::sqrt(squares / (count - 1.0) / count);
}

}  // namespace

double percentile(std::span<const double> rising, double fraction) {
  if (rising.empty()) return kNoValue;
  const double position = fraction * static_cast<double>(rising.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const double weight = position - static_cast<double>(below);
  const double low = rising[below];
  // Also keeps two infinities from cancelling.
  if (weight == 0.0 || low == rising[below + 1]) return low;
  return low + weight * (rising[below + 1] - low);
}

double percentile_of(std::vector<double> values, double fraction) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  std::sort(values.begin(), values.end());
  return percentile(values, fraction);
}

double usual_drift(std::vector<double> centred_rms) {
  constexpr std::size_t fewest = 3;
  const double median = percentile_of(centred_rms, 0.5);
  if (median != 0.0) return median;
  std::erase_if(centred_rms, [](double drift) { return !(drift > 0.0); });
  return centred_rms.size() < fewest ? median : percentile_of(std::move(centred_rms), 0.5);
}

RunStatistic run_statistic(std::string_view metric, std::span<const double> values,
                           std::span<const std::int64_t> steps) {
  RunStatistic statistic;
  statistic.metric = metric;
  std::vector<double> defined;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    if (defined.empty() || values[i] > statistic.maximum) {
      statistic.maximum = values[i];
      statistic.argmax_step = steps[i];
    }
    defined.push_back(values[i]);
  }
  statistic.count = static_cast<std::int64_t>(defined.size());
  if (defined.empty()) {
    statistic.mean = statistic.standard_error = statistic.sum = kNoValue;
    statistic.p50 = statistic.p90 = statistic.p95 = statistic.p99 = statistic.p999 = kNoValue;
    statistic.maximum = statistic.minimum = kNoValue;
    return statistic;
  }
  fill_moments(statistic, defined);  // in the order of the steps
  std::sort(defined.begin(), defined.end());
  statistic.minimum = defined.front();
  statistic.p50 = percentile(defined, 0.5);
  statistic.p90 = percentile(defined, 0.9);
  statistic.p95 = percentile(defined, 0.95);
  statistic.p99 = percentile(defined, 0.99);
  statistic.p999 = percentile(defined, 0.999);
  return statistic;
}

std::vector<double> metric_column(const Comparison& comparison, std::string_view metric) {
  const auto index = metric_index(metric);
  std::vector<double> column;
  column.reserve(comparison.steps.size());
  for (const auto& step : comparison.steps) {
    const auto& values = step->metrics.values;
    column.push_back(index && *index < values.size() ? values[*index] : kNoValue);
  }
  return column;
}

}  // namespace driftscope
