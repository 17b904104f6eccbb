// SPDX-License-Identifier: Apache-2.0
// What of a drift between two checkpoints their weights make, and what the arithmetic makes.
#include <fmt/format.h>

#include "analysis/compare/findings.h"

namespace driftscope {

namespace {

using Json = nlohmann::ordered_json;

// A part that makes this share of the summed KL is named as the one that counts.
constexpr double kMostOfIt = 0.9;

Json part_json(const DriftPart& part) {
  return {{"max_abs", json_number(part.max_abs)},
          {"mean_kl", json_number(part.mean_kl)},
          {"drift", json_number(part.drift)}};
}

std::string part_text(const DriftPart& part) {
  return fmt::format("max_abs {}, mean KL {}", figure(part.max_abs), figure(part.mean_kl));
}

std::string_view judgement(double weights, double arithmetic) {
  const double all = weights + arithmetic;
  if (all == 0.0) return "neither changes anything";
  if (weights >= kMostOfIt * all) return "nearly all of it is the weights: quantisation error";
  if (weights <= (1.0 - kMostOfIt) * all) return "nearly all of it is the arithmetic";
  return "both count";
}

}  // namespace

void find_drift_split(const RunContext& context, std::vector<Finding>& findings) {
  const DriftSplit& split = context.comparison.split;
  if (split.steps == 0) return;
  const double arithmetic = split.arithmetic_a.mean_kl + split.arithmetic_b.mean_kl;
  findings.push_back(make_finding(
      "drift_split", Severity::notice,
      fmt::format(
          "Of the drift, the weights make {} (f64 over B's against f64 over A's); the "
          "arithmetic makes {} in A and {} in B (each against f64 over its own weights): {}",
          part_text(split.weights), part_text(split.arithmetic_a), part_text(split.arithmetic_b),
          judgement(split.weights.mean_kl, arithmetic)),
      {{"steps", split.steps},
       {"weights", part_json(split.weights)},
       {"arithmetic_a", part_json(split.arithmetic_a)},
       {"arithmetic_b", part_json(split.arithmetic_b)}}));
}

}  // namespace driftscope
