// SPDX-License-Identifier: Apache-2.0
// How much drift rounding alone can explain, known before the run from dtypes, lengths and depth.
//
// Derivation. Drift is the difference of two computations of the same function of the same
// weights, so it is at most the rounding error of A plus that of B.
//
// 1. One place. A value rounded to a dtype with p significant bits moves by at most u = 2^-p of
//    itself. A dot product of length K whose longest chain of additions is n has, with probability
//    at least 1 - 2 K exp(-lambda^2 (1 - u)^2 / 2),
//      |error| <= gamma_n |x|.|w|,  gamma_n = exp(lambda sqrt(n) u + n u^2 / (1 - u)) - 1
//    (N. J. Higham, T. Mary, "A new approach to probabilistic rounding error analysis", SIAM J.
//    Sci. Comput. 41(5), 2019, theorem 3.1). |x|.|w| is at most |x| |w| (lengths, Cauchy-Schwarz),
//    and the outputs of a row of a matmul have an rms of about |x| |w| / sqrt(K) where the weights
//    have no direction in common; so relative to the rms of the output a place contributes e =
//    sqrt(K) gamma_n. A sum of squares does not cancel: e = gamma_n.
// 2. Places of one layer round independently and without a mean, so by Hoeffding's inequality they
// add
//    to at most lambda sqrt(sum of e^2), except with probability 2 exp(-lambda^2 / 2).
// 3. Depth. In a residual stream the output of layer j is one part in j + 1 of the stream; a layer
//    passes an error on and adds its own response to it, so with a branch whose condition number is
//    1 a relative error of the stream grows by (1 + 1 / (j + 1)) per layer, which is (layers + 1) /
//    (j + 1) from layer j to the end. That growth factor is an assumption, not a theorem; a model
//    with worse-conditioned layers exceeds it.
// 4. The bound of the drift's rms is
//      rms(logits of A) * lambda * sqrt(sum over layers (growth^2 * sum e^2) + sum at the head
//      e^2).
// Once the bits of one value differ, all later roundings fall differently, so every source counts
// on both sides, not only those whose knob differs; where no knob that can change a bit differs,
// the bound is 0. It holds for the same weights only: with other weights or another quantisation
// of them the difference is one of input. It is meant to be wide: drift beyond it asks for a
// fault, drift within it proves nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/compare/comparison_builder.h"

namespace driftscope {

// lambda: each of the probabilities above fails with at most 2 exp(-8) = 7e-4.
inline constexpr double kBoundConfidence = 4.0;

struct RoundingContribution {
  std::string_view source;  // "matmul over the hidden width"
  std::string_view knobs;   // those that set its size
  double relative = 0.0;    // share of this source alone, relative to the rms of the logits
};

struct RoundingBound {
  bool known = false;     // false: the model's sizes are not known, or the weights differ
  double relative = 0.0;  // to the rms of the logits; 0: no knob differs that could change a bit
  // The same of each side's own roundings: what it may differ from exact arithmetic.
  double relative_a = 0.0;
  double relative_b = 0.0;
  std::vector<RoundingContribution> contributions;
};

// `positions`: longest sequence attended to, prompt and steps.
[[nodiscard]] RoundingBound rounding_bound(const ExperimentFacts& facts, std::int64_t positions);

// gamma_n of step 1.
[[nodiscard]] double probabilistic_gamma(double terms, double unit_roundoff);

// True where a knob differs that can change bits of the logits for equal tokens.
[[nodiscard]] bool bits_may_differ(const RunConfig& a, const RunConfig& b);
// The dtype whose values the weights have after weight_dtype is applied to a stored dtype.
[[nodiscard]] Dtype effective_dtype(WeightDtype weight, Dtype stored);
// True where both sides compute with the same values of the weights, as far as the knobs go.
[[nodiscard]] bool same_weight_values(const RunConfig& a, const RunConfig& b, Dtype stored);

}  // namespace driftscope
