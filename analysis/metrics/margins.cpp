// SPDX-License-Identifier: Apache-2.0
// How close the choice was: margins, headroom, ties.
#include <algorithm>
#include <cmath>

#include "analysis/metrics/families.h"

namespace driftscope {

namespace {

int smallest_exponent(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
    case Dtype::bf16:
      return -126;
    case Dtype::f16:
      return -14;
    case Dtype::f64:
      return -1022;
  }
  return 0;
}

}  // namespace

double unit_in_last_place(Dtype dtype, double value) {
  if (!std::isfinite(value)) return metrics::kUndefined;
  const int lowest = smallest_exponent(dtype);
  const int exponent = value == 0.0 ? lowest : std::max(std::ilogb(value), lowest);
  return std::ldexp(1.0, exponent - (significand_bits(dtype) - 1));
}

namespace metrics {

namespace {

double margin_of(std::span<const RankedToken> best) {
  if (best.size() < 2) return kUndefined;
  return double{best[0].logit} - double{best[1].logit};
}

double drift_of(const MetricInput& input, TokenId token) {
  const auto position = static_cast<std::size_t>(token.value);
  return double{input.b.value[position]} - double{input.a.value[position]};
}

}  // namespace

MarginFigures compare_margins(const MetricInput& input, std::span<const RankedToken> best_a,
                              std::span<const RankedToken> best_b, double largest_rise) {
  MarginFigures figures;
  figures.margin_a = margin_of(best_a);
  figures.margin_b = margin_of(best_b);
  if (best_a.size() < 2) return figures;
  const double drift_of_first = drift_of(input, best_a[0].token);
  const double threat = largest_rise - drift_of_first;  // max over j of d_j - d_top1
  if (std::isfinite(drift_of_first) && !std::isnan(threat)) {
    figures.headroom =
        threat > 0.0 ? figures.margin_a / threat : std::numeric_limits<double>::infinity();
  }
  figures.tie_ulps =
      figures.margin_a / unit_in_last_place(input.coarsest_dtype, double{best_a[0].logit});
  const double pair_drift = std::abs(drift_of_first - drift_of(input, best_a[1].token));
  if (std::isfinite(pair_drift)) figures.pair_drift = pair_drift;
  return figures;
}

}  // namespace metrics
}  // namespace driftscope
