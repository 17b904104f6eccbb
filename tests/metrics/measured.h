// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

#include "analysis/metrics/metric.h"

namespace driftscope::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

struct Options {
  TokenId emitted{};
  std::int64_t top_k = 10;
  Dtype dtype = Dtype::f32;
};

inline StepMeasurement measure(const std::vector<float>& a, const std::vector<float>& b,
                               Options options = {}) {
  return measure_step(MetricInput{.a = baseline(LogitsRow(a)),
                                  .b = candidate(LogitsRow(b)),
                                  .emitted = options.emitted,
                                  .top_k = options.top_k,
                                  .coarsest_dtype = options.dtype});
}

inline double metric(const StepMeasurement& measurement, std::string_view id) {
  return metric_value(measurement.metrics, id);
}
inline double metric(const std::vector<float>& a, const std::vector<float>& b, std::string_view id,
                     Options options = {}) {
  return metric(measure(a, b, options), id);
}

// Logits of about the size a model gives. The seed is the test's own, so runs repeat.
inline std::vector<float> random_row(std::mt19937& random, std::size_t size, float spread = 3.0F) {
  std::vector<float> row(size);
  for (float& value : row) {
    value = spread * (static_cast<float>(random() % 20001U) - 10000.0F) / 10000.0F;
  }
  return row;
}
inline std::vector<float> drifted(std::mt19937& random, std::vector<float> row, float size) {
  for (float& value : row)
    value += size * (static_cast<float>(random() % 2001U) - 1000.0F) / 1000.0F;
  return row;
}

}  // namespace driftscope::test
