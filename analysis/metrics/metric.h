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

// Two tokens whose order differs between the rows; x ranks above y in A and below it in B.
struct RankFlip {
  TokenId x{};
  TokenId y{};
  std::int32_t rank_a_x = 0, rank_a_y = 0;  // from 0, in the whole row
  std::int32_t rank_b_x = 0, rank_b_y = 0;
  double gap_a = 0.0;  // logit x - logit y in A, 0 or more
  double gap_b = 0.0;  // the same in B, 0 or less
  friend bool operator==(const RankFlip&, const RankFlip&) = default;
};

// Entries where either row is NaN or infinite are left out of sums and counted.
struct RowHealth {
  std::int64_t nan_a = 0;
  std::int64_t nan_b = 0;
  std::int64_t infinite_a = 0;
  std::int64_t infinite_b = 0;
  // Entries that are not finite in one row and differ in the other: NaN against a number, an
  // infinity against anything but the same infinity. No difference metric sees them.
  std::int64_t unmatched = 0;
  friend bool operator==(const RowHealth&, const RowHealth&) = default;
};

enum class MetricDirection : std::uint8_t { drift, agreement, scale };  // what larger means

struct MetricSpec {
  std::string_view id;          // "max_abs"
  std::string_view unit;        // "logit", "nat", "ulp", "1", …
  std::string_view title;       // "Largest logit difference"
  std::string_view definition;  // one line, as in NUMERICS.md section 5
  MetricDirection direction = MetricDirection::drift;
  double null_value = 0.0;  // its value for identical rows, where that is a constant; else NaN
  bool needs_run = false;   // computed from the whole run (drift_excess), not from one row pair
};
[[nodiscard]] std::span<const MetricSpec> metric_registry();
[[nodiscard]] std::optional<std::size_t> metric_index(std::string_view id);

struct StepMetrics {
  std::vector<double> values;  // one per registry row; NaN where undefined
  TokenId max_abs_token{};     // where max_abs was found
  std::vector<RankedToken> top_a;
  std::vector<RankedToken> top_b;
  RowHealth health;
};
// All metrics of one row pair (drift_excess is left NaN). f64 throughout, widened before
// subtracting, portable functions, sums in a fixed order: the same bits on every machine.
// Precondition (asserted): the rows have equal length.
[[nodiscard]] StepMetrics compute_step_metrics(const MetricInput& input);

struct StepMeasurement {
  StepMetrics metrics;
  std::vector<RankFlip> flips;  // pairs within the union of both top-K, by rank in A
};
// The same, with the pairs that `rank_flips` counts.
[[nodiscard]] StepMeasurement measure_step(const MetricInput& input);

// rms over i of d - mean(d), d = b - a, over the entries that are finite in both rows; NaN without
// any. Precondition (asserted): equal length.
[[nodiscard]] double centred_rms(LogitsRow a, LogitsRow b);

// How far a row is from the row that it is measured against, over the entries that are finite in
// both; NaN without any.
struct RowDistance {
  double centred_rms = 0.0;  // as above
  double max_abs = 0.0;
  double kl = 0.0;  // sum p log(p / q), p = softmax(reference), q = softmax(row), nat
};
[[nodiscard]] RowDistance row_distance(LogitsRow reference, LogitsRow row);

// The value of one metric, NaN for an unknown id or a short list of values.
[[nodiscard]] double metric_value(const StepMetrics& metrics, std::string_view id);

// One unit in the last place of `dtype` at the size of `value` (bf16: 0.125 for 16 up to 32); the
// spacing of subnormal numbers where value is smaller than the smallest normal one.
[[nodiscard]] double unit_in_last_place(Dtype dtype, double value);

// How many f32 numbers lie between x and y, one end counted; 0 for equal ones, +0 and -0 are equal.
// Precondition: neither is NaN.
[[nodiscard]] std::int64_t ulp_distance(float x, float y);

}  // namespace driftscope
