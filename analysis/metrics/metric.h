// SPDX-License-Identifier: Apache-2.0
// The metric registry: name, unit, definition and code of every per-step number, declared once.
// CSV and HDF5 columns, table headings, tooltips and thresholds follow from it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/base/types.h"
#include "kernels/plan/dtype.h"

namespace driftscope {

using LogitsRow = std::span<const float>;  // [vocabulary]

struct RankedToken {
  TokenId token{};
  float logit = 0.0F;
  friend bool operator==(const RankedToken&, const RankedToken&) = default;
};

// The K best of a row: higher logit first, then lower id; NaN entries are left out.
[[nodiscard]] std::vector<RankedToken> top_tokens(LogitsRow row, std::int64_t k);

// What the per-step metrics of one row pair are computed from. Rows have equal length.
struct MetricInput {
  Baseline<LogitsRow> a;
  Candidate<LogitsRow> b;
  TokenId emitted{};  // the token that A emitted at this step
  std::int64_t top_k = 10;
  Dtype coarsest_dtype = Dtype::f32;  // on the path to the logits: the unit of tie_ulps
};

// Entries where either row is NaN or infinite are left out of sums and counted.
struct RowHealth {
  std::int64_t nan_a = 0;
  std::int64_t nan_b = 0;
  std::int64_t infinite_a = 0;
  std::int64_t infinite_b = 0;
  friend bool operator==(const RowHealth&, const RowHealth&) = default;
};

enum class MetricDirection : std::uint8_t { drift, agreement, scale };  // what larger means

struct MetricSpec {
  std::string_view id;         // "max_abs"
  std::string_view unit;       // "logit", "nat", "ulp", "1", …
  std::string_view title;      // "Largest logit difference"
  std::string_view definition;  // one line, as in NUMERICS.md section 5
  MetricDirection direction = MetricDirection::drift;
  double null_value = 0.0;     // its value for identical rows, where that is a constant; else NaN
  bool needs_run = false;      // computed from the whole run (drift_excess), not from one row pair
};
[[nodiscard]] std::span<const MetricSpec> metric_registry();
[[nodiscard]] std::optional<std::size_t> metric_index(std::string_view id);

struct StepMetrics {
  std::vector<double> values;   // one per registry row; NaN where undefined
  TokenId max_abs_token{};      // where max_abs was found
  std::vector<RankedToken> top_a;
  std::vector<RankedToken> top_b;
  RowHealth health;
};
// All metrics of one row pair (drift_excess is left NaN). f64 throughout, widened before
// subtracting, portable functions: the same bits on every machine.
[[nodiscard]] StepMetrics compute_step_metrics(const MetricInput& input);

}  // namespace driftscope
