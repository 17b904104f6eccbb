// SPDX-License-Identifier: Apache-2.0
// What the families of metrics hand to the registry. Internal to analysis/metrics.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "analysis/metrics/metric.h"

namespace driftscope::metrics {

inline constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// The entries that are finite in both rows, in rising token id.
struct FinitePairs {
  std::span<const float> a;           // [count]
  std::span<const float> b;           // [count]
  std::span<const std::int32_t> ids;  // [count] token of each entry; empty: entry i is token i
  [[nodiscard]] std::size_t count() const { return a.size(); }
  [[nodiscard]] TokenId token(std::size_t entry) const {
    return TokenId{ids.empty() ? static_cast<std::int32_t>(entry) : ids[entry]};
  }
};

// Sums and maxima over d = b - a.
struct DifferenceFigures {
  double max_abs = kUndefined;
  TokenId max_abs_token{};
  double mean_abs = kUndefined;
  double rms = kUndefined;
  double max_rel = kUndefined;
  double centred_rms = kUndefined;
  double max_ulp = kUndefined;
  double cosine = kUndefined;
  double logit_rms = kUndefined;
  double largest_rise = kUndefined;  // max over i of d_i, signed
};
[[nodiscard]] DifferenceFigures compare_differences(const FinitePairs& pairs);
// Entries of the whole rows whose bits differ (NaN payloads and the sign of zero count).
[[nodiscard]] double count_different_bits(LogitsRow a, LogitsRow b);

// Of the two softmax distributions over the finite pairs; natural logarithm.
struct DistributionFigures {
  double kl_ab = kUndefined;
  double kl_ba = kUndefined;
  double js = kUndefined;
  double tv = kUndefined;
  double entropy_a = kUndefined;
  double entropy_b = kUndefined;
  double dlogp = kUndefined;
  double k1 = kUndefined;
  double k3 = kUndefined;
  double importance_ratio = kUndefined;
};
[[nodiscard]] DistributionFigures compare_distributions(const FinitePairs& pairs, TokenId emitted);

struct RankingFigures {
  double top1_match = kUndefined;
  double topk_overlap = kUndefined;
  double topk_kendall = kUndefined;
  double rbo = kUndefined;
  std::vector<RankFlip> flips;
};
// `top_a` and `top_b` are the K best of the rows.
[[nodiscard]] RankingFigures compare_rankings(LogitsRow a, LogitsRow b,
                                              std::span<const RankedToken> top_a,
                                              std::span<const RankedToken> top_b);

struct MarginFigures {
  double margin_a = kUndefined;
  double margin_b = kUndefined;
  double headroom = kUndefined;
  double tie_ulps = kUndefined;
  double pair_drift = kUndefined;
};
// `best_a` and `best_b` are at least the two best of the rows, where there are two.
[[nodiscard]] MarginFigures compare_margins(const MetricInput& input,
                                            std::span<const RankedToken> best_a,
                                            std::span<const RankedToken> best_b,
                                            double largest_rise);

// All that the rows of the registry choose from.
struct StepFigures {
  DifferenceFigures differences;
  double different_bits = kUndefined;
  DistributionFigures distributions;
  RankingFigures rankings;
  MarginFigures margins;
};

}  // namespace driftscope::metrics
