// SPDX-License-Identifier: Apache-2.0
// Metrics of the two softmax distributions p (of A) and q (of B), natural logarithm.
//
// With delta = log q - log p per token, the divergences are summed in forms whose terms are of
// second order in delta and never negative, so drift of 1e-7 keeps its digits where
// sum p log(p / q) would cancel:
//   KL(p, q) = sum p (e^delta - 1 - delta)                          since sum p = sum q = 1
//   JS(p, q) = sum (q - p) delta / 4 - (p + q) / 2 log cosh(delta / 2)
// For abs(delta) up to 1/4 both are Taylor polynomials.
#include <algorithm>
#include <cmath>

#include "analysis/metrics/families.h"
#include "analysis/metrics/lane_sum.h"
#include "kernels/plan/portable_math.h"

namespace driftscope::metrics {

namespace {

constexpr double kSmallDelta = 0.25;
constexpr double kLogOfTwo = 0.693147180559945309417232121458;

// e^x - 1 - x for abs(x) up to 1/4: x^2/2! + … + x^13/13!; the rest is below 1e-17 of the value.
double small_exp_remainder(double x) {
  double sum = 1.0 / 6227020800.0;
  sum = sum * x + 1.0 / 479001600.0;
  sum = sum * x + 1.0 / 39916800.0;
  sum = sum * x + 1.0 / 3628800.0;
  sum = sum * x + 1.0 / 362880.0;
  sum = sum * x + 1.0 / 40320.0;
  sum = sum * x + 1.0 / 5040.0;
  sum = sum * x + 1.0 / 720.0;
  sum = sum * x + 1.0 / 120.0;
  sum = sum * x + 1.0 / 24.0;
  sum = sum * x + 1.0 / 6.0;
  sum = sum * x + 0.5;
  return sum * x * x;
}

// log cosh x for abs(x) up to 1/8, the integral of tanh's series.
double small_log_cosh(double x) {
  const double square = x * x;
  double sum = 10922.0 / 42567525.0;
  sum = sum * square - 691.0 / 935550.0;
  sum = sum * square + 31.0 / 14175.0;
  sum = sum * square - 17.0 / 2520.0;
  sum = sum * square + 1.0 / 45.0;
  sum = sum * square - 1.0 / 12.0;
  sum = sum * square + 0.5;
  return sum * square;
}

double log_cosh(double x) {
  const double size = std::abs(x);
  return size + portable::log1p(portable::exp(-2.0 * size)) - kLogOfTwo;
}

// exp(x - max) of every entry, their sum, and log of the sum of exp(x).
struct Softmax {
  std::span<const double> weights;  // [count], not normalised
  double sum = 0.0;
  double log_normaliser = 0.0;
};

// Kept per thread: fresh megabytes at every step cost more in page faults than the arithmetic.
struct Scratch {
  std::vector<double> a, b;
};
thread_local Scratch scratch;

// `weights` is where the result's weights lie.
Softmax softmax_of(std::span<const float> row, std::vector<double>& weights) {
  Softmax softmax;
  const double largest{*std::max_element(row.begin(), row.end())};
  if (weights.size() < row.size()) weights.resize(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) weights[i] = double{row[i]} - largest;
  portable::exp_span(weights.data(), weights.data(), row.size());
  softmax.weights = std::span(weights).first(row.size());
  LaneValues sums{};
  for_each_in_lanes(row.size(), [&](std::size_t entry, std::size_t lane) {
    sums[lane] += softmax.weights[entry];
  });
  softmax.sum = combine_sum(sums);
  softmax.log_normaliser = largest + portable::log(softmax.sum);
  return softmax;
}

// -sum p log p = log Z - sum p x.
double entropy(const Softmax& softmax, std::span<const float> row) {
  LaneValues sums{};
  for_each_in_lanes(row.size(), [&](std::size_t entry, std::size_t lane) {
    sums[lane] += softmax.weights[entry] * (softmax.log_normaliser - double{row[entry]});
  });
  return combine_sum(sums) / softmax.sum;
}

struct DivergenceSums {
  LaneValues kl_ab{}, kl_ba{}, js{}, tv{};

  void add_small(std::size_t lane, double p, double q, double delta) {
    const double remainder = small_exp_remainder(delta);
    kl_ab[lane] += p * remainder;
    kl_ba[lane] += q * small_exp_remainder(-delta);
    js[lane] += (q - p) * delta * 0.25 - (p + q) * 0.5 * small_log_cosh(delta * 0.5);
    tv[lane] += std::abs(p * (delta + remainder));  // q - p without cancellation
  }
  void add_large(std::size_t lane, double p, double q, double delta) {
    kl_ab[lane] += (q - p) - p * delta;
    kl_ba[lane] += (p - q) + q * delta;
    js[lane] += (q - p) * delta * 0.25 - (p + q) * 0.5 * log_cosh(delta * 0.5);
    tv[lane] += std::abs(q - p);
  }
};

// p and q are nearly all of second order: the branch is taken per block of lanes only for speed;
// which form an entry gets depends on its own delta alone.
DivergenceSums add_divergences(const FinitePairs& pairs, const Softmax& a, const Softmax& b) {
  DivergenceSums sums;
  const double shift = b.log_normaliser - a.log_normaliser;
  const auto delta_of = [&](std::size_t entry) {
    return (double{pairs.b[entry]} - double{pairs.a[entry]}) - shift;
  };
  const auto add_one = [&](std::size_t entry, std::size_t lane) {
    const double p = a.weights[entry] / a.sum;
    const double q = b.weights[entry] / b.sum;
    const double delta = delta_of(entry);
    if (std::abs(delta) <= kSmallDelta) {
      sums.add_small(lane, p, q, delta);
    } else {
      sums.add_large(lane, p, q, delta);
    }
  };
  std::size_t block = 0;
  for (; block + kSumLanes <= pairs.count(); block += kSumLanes) {
    double largest = 0.0;
    for (std::size_t lane = 0; lane < kSumLanes; ++lane) {
      const double size = std::abs(delta_of(block + lane));
      largest = size > largest ? size : largest;
    }
    if (largest <= kSmallDelta) {
      for (std::size_t lane = 0; lane < kSumLanes; ++lane) {
        const std::size_t entry = block + lane;
        sums.add_small(lane, a.weights[entry] / a.sum, b.weights[entry] / b.sum, delta_of(entry));
      }
    } else {
      for (std::size_t lane = 0; lane < kSumLanes; ++lane) add_one(block + lane, lane);
    }
  }
  for (std::size_t lane = 0; block < pairs.count(); ++block, ++lane) add_one(block, lane);
  return sums;
}

std::optional<std::size_t> entry_of(const FinitePairs& pairs, TokenId token) {
  if (token.value < 0) return std::nullopt;
  if (pairs.ids.empty()) {
    const auto entry = static_cast<std::size_t>(token.value);
    return entry < pairs.count() ? std::optional(entry) : std::nullopt;
  }
  const auto found = std::lower_bound(pairs.ids.begin(), pairs.ids.end(), token.value);
  if (found == pairs.ids.end() || *found != token.value) return std::nullopt;
  return static_cast<std::size_t>(found - pairs.ids.begin());
}

// k1 and k3 estimate KL(A, B) from the one token that A emitted: with r = q / p, -log r and
// r - 1 - log r (J. Schulman, "Approximating KL Divergence", 2020).
void fill_emitted(DistributionFigures& figures, double dlogp) {
  figures.dlogp = dlogp;
  figures.k1 = 0.0 - dlogp;
  figures.k3 =
      std::abs(dlogp) <= kSmallDelta ? small_exp_remainder(dlogp) : portable::expm1(dlogp) - dlogp;
  figures.importance_ratio = portable::exp(dlogp);
}

}  // namespace

DistributionFigures compare_distributions(const FinitePairs& pairs, TokenId emitted) {
  DistributionFigures figures;
  if (pairs.count() == 0) return figures;
  const Softmax a = softmax_of(pairs.a, scratch.a);
  const Softmax b = softmax_of(pairs.b, scratch.b);
  const DivergenceSums sums = add_divergences(pairs, a, b);
  // No term is negative but for rounding.
  figures.kl_ab = std::max(0.0, combine_sum(sums.kl_ab));
  figures.kl_ba = std::max(0.0, combine_sum(sums.kl_ba));
  figures.js = std::max(0.0, combine_sum(sums.js));
  figures.tv = 0.5 * combine_sum(sums.tv);
  figures.entropy_a = entropy(a, pairs.a);
  figures.entropy_b = entropy(b, pairs.b);
  if (const auto entry = entry_of(pairs, emitted)) {
    fill_emitted(figures, (double{pairs.b[*entry]} - double{pairs.a[*entry]}) -
                              (b.log_normaliser - a.log_normaliser));
  }
  return figures;
}

}  // namespace driftscope::metrics
