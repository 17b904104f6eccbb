// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/listed_step.h"
#include "analysis/compare/value_words.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace driftscope {

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

double value_of(const std::vector<RankedToken>& list, TokenId token) {
  for (const RankedToken& entry : list) {
    if (entry.token == token) return double{entry.logit};
  }
  return kUndefined;
}

// The list holds the two best tokens, whatever token the server added to it.
bool two_best_known(const ListedRow& row) {
  return row.listed.size() > 2 || (row.listed.size() == 2 && row.listed.front().token == row.token);
}

double margin_of(const ListedRow& row) {
  if (!two_best_known(row)) return kUndefined;
  return double{row.listed[0].logit} - double{row.listed[1].logit};
}

double common_share(const std::vector<RankedToken>& a, const std::vector<RankedToken>& b,
                    std::size_t k) {
  const std::size_t depth = std::min({a.size(), b.size(), k});
  if (depth == 0) return kUndefined;
  const auto end = b.begin() + static_cast<std::ptrdiff_t>(depth);
  std::size_t common = 0;
  for (std::size_t i = 0; i < depth; ++i) {
    common += static_cast<std::size_t>(std::any_of(
        b.begin(), end, [&](const RankedToken& entry) { return entry.token == a[i].token; }));
  }
  return static_cast<double>(common) / static_cast<double>(depth);
}

}  // namespace

std::vector<RankFlip> flips_between(const std::vector<RankedToken>& a,
                                    const std::vector<RankedToken>& b, std::size_t k) {
  struct Place {
    std::int32_t rank_a = 0, rank_b = 0;
    double logit_a = 0.0, logit_b = 0.0;
    TokenId token{};
  };
  std::vector<Place> places;  // by rank in A
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto found = std::find_if(
        b.begin(), b.end(), [&](const RankedToken& entry) { return entry.token == a[i].token; });
    const auto j = static_cast<std::size_t>(found - b.begin());
    if (found == b.end() || (i >= k && j >= k)) continue;
    places.push_back({.rank_a = static_cast<std::int32_t>(i),
                      .rank_b = static_cast<std::int32_t>(j),
                      .logit_a = double{a[i].logit},
                      .logit_b = double{found->logit},
                      .token = a[i].token});
  }
  std::vector<RankFlip> flips;
  for (std::size_t x = 0; x < places.size(); ++x) {
    for (std::size_t y = x + 1; y < places.size(); ++y) {
      if (places[x].rank_b < places[y].rank_b) continue;
      flips.push_back({.x = places[x].token,
                       .y = places[y].token,
                       .rank_a_x = places[x].rank_a,
                       .rank_a_y = places[y].rank_a,
                       .rank_b_x = places[x].rank_b,
                       .rank_b_y = places[y].rank_b,
                       .gap_a = places[x].logit_a - places[y].logit_a,
                       .gap_b = places[x].logit_b - places[y].logit_b});
    }
  }
  return flips;
}

double listed_difference(const StepMetrics& metrics, TokenId token) {
  return std::abs(value_of(metrics.top_b, token) - value_of(metrics.top_a, token));
}

double largest_listed_difference(const StepMetrics& metrics) {
  double largest = kUndefined;
  for (const RankedToken& entry : metrics.top_a) {
    largest = std::fmax(largest, listed_difference(metrics, entry.token));
  }
  return largest;
}

double listed_difference(const Comparison& comparison, const StepMetrics& metrics, TokenId token) {
  return numbers_comparable(comparison) ? listed_difference(metrics, token) : kUndefined;
}

double largest_listed_difference(const Comparison& comparison, const StepMetrics& metrics) {
  return numbers_comparable(comparison) ? largest_listed_difference(metrics) : kUndefined;
}

std::shared_ptr<StepComparison> compare_listed_step(std::int64_t step, const ListedRow& a,
                                                    const ListedRow& b, std::size_t top_k) {
  auto result = std::make_shared<StepComparison>();
  result->step = step;
  result->token_a = a.token;
  result->choice_b = b.token;
  result->token_b = b.token;
  result->flipped = a.token != b.token;
  result->flips = flips_between(a.listed, b.listed, top_k);
  auto& values = result->metrics.values;
  values.assign(metric_registry().size(), kUndefined);
  const auto set = [&](std::string_view id, double value) { values[*metric_index(id)] = value; };
  set("margin_a", margin_of(a));
  set("margin_b", margin_of(b));
  if (a.listed.size() > 1 && b.listed.size() > 1) {
    set("rank_flips", static_cast<double>(result->flips.size()));
    set("topk_overlap", common_share(a.listed, b.listed, top_k));
    set("top1_match", a.listed.front().token == b.listed.front().token ? 1.0 : 0.0);
  }
  const bool comparable = a.comparable && b.comparable;
  if (comparable && two_best_known(a)) {
    const auto drift_of = [&](const RankedToken& entry) {
      return value_of(b.listed, entry.token) - double{entry.logit};
    };
    set("pair_drift", std::abs(drift_of(a.listed[0]) - drift_of(a.listed[1])));
  }
  if (comparable && a.log_probabilities && b.log_probabilities) {
    const double change = value_of(b.listed, a.token) - value_of(a.listed, a.token);
    const double ratio = std::exp(change);
    set("dlogp", change);
    set("k1", value_of(a.listed, a.token) - value_of(b.listed, a.token));  // never -0
    set("k3", ratio - 1.0 - change);
    set("importance_ratio", ratio);
  }
  result->metrics.top_a = a.listed;
  result->metrics.top_b = b.listed;
  return result;
}

}  // namespace driftscope
