// SPDX-License-Identifier: Apache-2.0
// The table of metrics. A new one is a row here and its code in a family's file.
#include <array>
#include <cassert>
#include <cmath>

#include "analysis/metrics/families.h"

namespace driftscope {

namespace {

using metrics::FinitePairs;
using metrics::kUndefined;
using metrics::StepFigures;
using enum MetricDirection;

struct Row {
  MetricSpec spec;
  double (*value)(const StepFigures&);
};

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr bool kNeedsRun = true;

// clang-format off
constexpr std::array kRows{
    Row{{"max_abs", "logit", "Largest logit difference", "max over i of |d_i|, d = b - a", drift},
        [](const StepFigures& f) { return f.differences.max_abs; }},
    Row{{"mean_abs", "logit", "Mean logit difference", "mean over i of |d_i|", drift},
        [](const StepFigures& f) { return f.differences.mean_abs; }},
    Row{{"rms", "logit", "RMS logit difference", "square root of the mean over i of d_i^2", drift},
        [](const StepFigures& f) { return f.differences.rms; }},
    Row{{"centred_rms", "logit", "RMS drift without common shift", "rms of d - mean(d): softmax ignores a common shift, so this is the drift that can change a choice", drift},
        [](const StepFigures& f) { return f.differences.centred_rms; }},
    Row{{"max_rel", "1", "Largest relative difference", "max over i of |d_i| / max(|a_i|, |b_i|), 0 where both are 0", drift},
        [](const StepFigures& f) { return f.differences.max_rel; }},
    Row{{"max_ulp", "ulp", "Largest difference in units in the last place", "max over i of the number of f32 values between a_i and b_i; +0 and -0 are equal", drift},
        [](const StepFigures& f) { return f.differences.max_ulp; }},
    Row{{"different_entries", "count", "Logits with other bits", "entries whose bits differ, signs of zero and NaN payloads included", drift},
        [](const StepFigures& f) { return f.different_bits; }},
    Row{{"cosine", "1", "Cosine distance", "1 - cos(a, b)", drift},
        [](const StepFigures& f) { return f.differences.cosine; }},
    Row{{"kl_ab", "nat", "KL divergence of B from A", "sum p log(p / q), p = softmax(a), q = softmax(b)", drift},
        [](const StepFigures& f) { return f.distributions.kl_ab; }},
    Row{{"kl_ba", "nat", "KL divergence of A from B", "sum q log(q / p)", drift},
        [](const StepFigures& f) { return f.distributions.kl_ba; }},
    Row{{"js", "nat", "Jensen-Shannon divergence", "half KL(p, m) plus half KL(q, m), m = (p + q) / 2; at most log 2", drift},
        [](const StepFigures& f) { return f.distributions.js; }},
    Row{{"tv", "1", "Total variation", "half the sum of |p_i - q_i|: the largest difference in probability of any set of tokens", drift},
        [](const StepFigures& f) { return f.distributions.tv; }},
    Row{{"dlogp", "nat", "Log-probability of the emitted token, B minus A", "log q(t) - log p(t), t the token A emitted", drift},
        [](const StepFigures& f) { return f.distributions.dlogp; }},
    Row{{"k1", "nat", "KL estimate k1", "log p(t) - log q(t): unbiased for KL(p, q) where t was drawn from p", drift},
        [](const StepFigures& f) { return f.distributions.k1; }},
    Row{{"k3", "nat", "KL estimate k3", "r - 1 - log r, r = q(t) / p(t): unbiased as k1, never negative, less variance", drift},
        [](const StepFigures& f) { return f.distributions.k3; }},
    Row{{"importance_ratio", "1", "Importance ratio", "q(t) / p(t), t the token A emitted", scale, 1.0},
        [](const StepFigures& f) { return f.distributions.importance_ratio; }},
    Row{{"top1_match", "1", "Same best token", "1 where both rows have the same best token, else 0", agreement, 1.0},
        [](const StepFigures& f) { return f.rankings.top1_match; }},
    Row{{"topk_overlap", "1", "Overlap of the top K", "tokens in both top-K lists / K", agreement, 1.0},
        [](const StepFigures& f) { return f.rankings.topk_overlap; }},
    Row{{"topk_kendall", "1", "Kendall's tau of the top K", "(concordant - discordant) / pairs over the union of both top-K lists, ranks in the whole rows", agreement, 1.0},
        [](const StepFigures& f) { return f.rankings.topk_kendall; }},
    Row{{"rbo", "1", "Rank-biased overlap", "extrapolated rank-biased overlap at depth K, p = 0.9", agreement, 1.0},
        [](const StepFigures& f) { return f.rankings.rbo; }},
    Row{{"rank_flips", "count", "Rank flips in the top K", "pairs of tokens in the union of both top-K lists whose order differs", drift},
        [](const StepFigures& f) { return static_cast<double>(f.rankings.flips.size()); }},
    Row{{"margin_a", "logit", "Margin of A", "top-1 minus top-2 logit of A", scale, kUndefined},
        [](const StepFigures& f) { return f.margins.margin_a; }},
    Row{{"margin_b", "logit", "Margin of B", "top-1 minus top-2 logit of B", scale, kUndefined},
        [](const StepFigures& f) { return f.margins.margin_b; }},
    Row{{"headroom", "1", "Headroom", "margin_a / max over j of (d_j - d_top1); above 1 no flip is possible at this step; infinite where no token gained on the best", scale, kInfinite},
        [](const StepFigures& f) { return f.margins.headroom; }},
    Row{{"tie_ulps", "ulp", "Margin in units in the last place", "margin_a in units in the last place, at the size of the top logit, of the coarsest type on the path to the logits", scale, kUndefined},
        [](const StepFigures& f) { return f.margins.tie_ulps; }},
    Row{{"pair_drift", "logit", "Pairwise drift of the best two", "|d_top1 - d_top2|, the two best tokens of A: the drift that margin_a stands against", drift},
        [](const StepFigures& f) { return f.margins.pair_drift; }},
    Row{{"entropy_a", "nat", "Entropy of A", "-sum p log p", scale, kUndefined},
        [](const StepFigures& f) { return f.distributions.entropy_a; }},
    Row{{"entropy_b", "nat", "Entropy of B", "-sum q log q", scale, kUndefined},
        [](const StepFigures& f) { return f.distributions.entropy_b; }},
    Row{{"logit_rms", "logit", "RMS of A's logits", "square root of the mean over i of a_i^2: the scale that drift is relative to", scale, kUndefined},
        [](const StepFigures& f) { return f.differences.logit_rms; }},
    Row{{"drift_excess", "1", "Drift against the run's usual drift", "centred_rms / median centred_rms of the run's steps (of those that drift, where most do not and at least three do); 0 where this step has no drift, infinite where it has some and the median is 0", drift, 0.0, kNeedsRun},
        [](const StepFigures&) { return kUndefined; }},
    Row{{"error_a", "logit", "Error of A against f64", "centred_rms of A against the reference lane (the same weights in f64 throughout)", scale, kUndefined, kNeedsRun},
        [](const StepFigures&) { return kUndefined; }},
    Row{{"error_b", "logit", "Error of B against f64", "centred_rms of B, fed A's tokens, against the reference lane, of B's own weights where the checkpoints differ", scale, kUndefined, kNeedsRun},
        [](const StepFigures&) { return kUndefined; }},
    Row{{"error_a_max_abs", "logit", "Largest error of A against f64", "max over i of |a_i - r_i|, r the reference that error_a is taken from", scale, kUndefined, kNeedsRun},
        [](const StepFigures&) { return kUndefined; }},
    Row{{"error_a_kl", "nat", "KL divergence of A from f64", "sum p log(p / q), p = softmax(r), q = softmax(a)", scale, kUndefined, kNeedsRun},
        [](const StepFigures&) { return kUndefined; }},
    Row{{"error_b_max_abs", "logit", "Largest error of B against f64", "max over i of |b_i - r_i|, r the reference that error_b is taken from", scale, kUndefined, kNeedsRun},
        [](const StepFigures&) { return kUndefined; }},
    Row{{"error_b_kl", "nat", "KL divergence of B from f64", "sum p log(p / q), p = softmax(r), q = softmax(b)", scale, kUndefined, kNeedsRun},
        [](const StepFigures&) { return kUndefined; }},
    Row{{"weights_drift", "logit", "Drift that the weights make", "centred_rms between the f64 references of the two checkpoints: drift that is there before any arithmetic", scale, kUndefined, kNeedsRun},
        [](const StepFigures&) { return kUndefined; }},
    Row{{"weights_max_abs", "logit", "Largest logit difference that the weights make", "max over i of |rb_i - ra_i|, the f64 references of the two checkpoints", scale, kUndefined, kNeedsRun},
        [](const StepFigures&) { return kUndefined; }},
    Row{{"weights_kl", "nat", "KL divergence that the weights make", "sum p log(p / q), p = softmax(ra), q = softmax(rb)", scale, kUndefined, kNeedsRun},
        [](const StepFigures&) { return kUndefined; }},
    Row{{"noise_ratio", "1", "Drift against measured noise", "centred_rms / the noise envelope that the reference lane gives: what rounding alone makes of this step, each side's error predicted from the other's", drift, kUndefined, kNeedsRun},
        [](const StepFigures&) { return kUndefined; }},
};
// clang-format on

constexpr auto kSpecs = [] {
  std::array<MetricSpec, kRows.size()> specs{};
  for (std::size_t i = 0; i < kRows.size(); ++i) specs[i] = kRows[i].spec;
  return specs;
}();

// Copies of the entries that are finite in both rows, made only where some are not.
struct FiniteCopies {
  std::vector<float> a, b;
  std::vector<std::int32_t> ids;
};

RowHealth check_health(LogitsRow a, LogitsRow b) {
  RowHealth health;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(a[i]) && std::isfinite(b[i])) continue;
    health.nan_a += static_cast<std::int64_t>(std::isnan(a[i]));
    health.nan_b += static_cast<std::int64_t>(std::isnan(b[i]));
    health.infinite_a += static_cast<std::int64_t>(std::isinf(a[i]));
    health.infinite_b += static_cast<std::int64_t>(std::isinf(b[i]));
    const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
    if (!both_nan && a[i] != b[i]) ++health.unmatched;
  }
  return health;
}

FiniteCopies copy_finite(LogitsRow a, LogitsRow b) {
  FiniteCopies copies;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
    copies.a.push_back(a[i]);
    copies.b.push_back(b[i]);
    copies.ids.push_back(static_cast<std::int32_t>(i));
  }
  return copies;
}

StepFigures compute_figures(const MetricInput& input, const FinitePairs& pairs,
                            StepMetrics& metrics) {
  const LogitsRow a = input.a.value;
  const LogitsRow b = input.b.value;
  StepFigures figures;
  figures.differences = metrics::compare_differences(pairs);
  figures.different_bits = metrics::count_different_bits(a, b);
  figures.distributions = metrics::compare_distributions(pairs, input.emitted);
  // Margins need two entries even where the user looks at one.
  const std::int64_t depth = std::max<std::int64_t>(input.top_k, 2);
  std::vector<RankedToken> best_a = top_tokens(a, depth);
  std::vector<RankedToken> best_b = top_tokens(b, depth);
  figures.margins =
      metrics::compare_margins(input, best_a, best_b, figures.differences.largest_rise);
  const auto k = static_cast<std::size_t>(std::max<std::int64_t>(input.top_k, 0));
  best_a.resize(std::min(best_a.size(), k));
  best_b.resize(std::min(best_b.size(), k));
  figures.rankings = metrics::compare_rankings(a, b, best_a, best_b);
  metrics.max_abs_token = figures.differences.max_abs_token;
  metrics.top_a = std::move(best_a);
  metrics.top_b = std::move(best_b);
  return figures;
}

}  // namespace

std::span<const MetricSpec> metric_registry() { return kSpecs; }

std::optional<std::size_t> metric_index(std::string_view id) {
  for (std::size_t i = 0; i < kSpecs.size(); ++i) {
    if (kSpecs[i].id == id) return i;
  }
  return std::nullopt;
}

double metric_value(const StepMetrics& metrics, std::string_view id) {
  const auto index = metric_index(id);
  return index && *index < metrics.values.size() ? metrics.values[*index] : kUndefined;
}

StepMeasurement measure_step(const MetricInput& input) {
  const LogitsRow a = input.a.value;
  const LogitsRow b = input.b.value;
  assert(a.size() == b.size());
  StepMeasurement measurement;
  StepMetrics& metrics = measurement.metrics;
  metrics.health = check_health(a, b);
  FiniteCopies copies;
  FinitePairs pairs{.a = a, .b = b, .ids = {}};
  if (metrics.health != RowHealth{}) {
    copies = copy_finite(a, b);
    pairs = {.a = copies.a, .b = copies.b, .ids = copies.ids};
  }
  StepFigures figures = compute_figures(input, pairs, metrics);
  metrics.values.reserve(kRows.size());
  for (const Row& row : kRows) metrics.values.push_back(row.value(figures));
  measurement.flips = std::move(figures.rankings.flips);
  return measurement;
}

double centred_rms(LogitsRow a, LogitsRow b) { return row_distance(a, b).centred_rms; }

RowDistance row_distance(LogitsRow reference, LogitsRow row) {
  assert(reference.size() == row.size());
  FiniteCopies copies;
  FinitePairs pairs{.a = reference, .b = row, .ids = {}};
  if (check_health(reference, row) != RowHealth{}) {
    copies = copy_finite(reference, row);
    pairs = {.a = copies.a, .b = copies.b, .ids = copies.ids};
  }
  const auto differences = metrics::compare_differences(pairs);
  return {.centred_rms = differences.centred_rms,
          .max_abs = differences.max_abs,
          .kl = metrics::compare_distributions(pairs, TokenId{}).kl_ab};
}

StepMetrics compute_step_metrics(const MetricInput& input) { return measure_step(input).metrics; }

}  // namespace driftscope
