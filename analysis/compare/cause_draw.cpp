// SPDX-License-Identifier: Apache-2.0
// What two draws say about two different tokens: the same number on two sides of a boundary, or
// different numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/compare/conclusion.h"

namespace driftscope {

namespace {

// Nine digits: the number and the boundary may agree in the first six.
std::string precise(double value) { return fmt::format("{:.9g}", value); }

const DrawCandidate* find_candidate(const Draw& draw, TokenId id) {
  const auto found = std::find_if(draw.candidates.begin(), draw.candidates.end(),
                                  [id](const DrawCandidate& entry) { return entry.id == id; });
  return found == draw.candidates.end() ? nullptr : &*found;
}

std::string describe_boundary(const Draw& a, const Draw& b, TokenId token_a, TokenId token_b) {
  // Tokens stand in rising id: the higher of the two lies above the boundary.
  const bool up = token_b.value > token_a.value;
  const double boundary_a = up ? a.upper : a.lower;
  const double boundary_b = up ? b.lower : b.upper;
  return fmt::format(
      "the uniform {} fell {} A's boundary {} and on the other side of B's, {} (cumulative "
      "probability, tokens in rising id)",
      precise(a.uniform), up ? "below" : "above", precise(boundary_a), precise(boundary_b));
}

std::string describe_race(const Draw& a, const Draw& b, TokenId token_a, TokenId token_b) {
  const DrawCandidate* a_in_a = find_candidate(a, token_a);
  const DrawCandidate* b_in_a = find_candidate(a, token_b);
  const DrawCandidate* a_in_b = find_candidate(b, token_a);
  const DrawCandidate* b_in_b = find_candidate(b, token_b);
  if (a_in_a == nullptr || b_in_b == nullptr) return {};
  const auto noise_differs = [](const DrawCandidate* x, const DrawCandidate* y) {
    return x != nullptr && y != nullptr && x->noise != y->noise;
  };
  if (noise_differs(a_in_a, a_in_b) || noise_differs(b_in_a, b_in_b)) {
    return "the random numbers differ: the two sides gave the same tokens other Gumbel noise";
  }
  if (b_in_a == nullptr || a_in_b == nullptr) {
    return fmt::format(
        "in a race of logits with equal Gumbel noise the other side's token was not among the best "
        "{}",
        kDrawCandidates);
  }
  const auto sum = [](const DrawCandidate* entry) { return entry->score + entry->noise; };
  return fmt::format(
      "in a race of logits with equal Gumbel noise ({} and {}) A's token led by {} in A and B's by "
      "{} in B",
      figure(a_in_a->noise), figure(b_in_b->noise), figure(sum(a_in_a) - sum(b_in_a)),
      figure(sum(b_in_b) - sum(a_in_b)));
}

bool is_race(const Draw& draw) { return !draw.candidates.empty(); }

}  // namespace

bool drew_other_numbers(const StepComparison& step) {
  if (!step.draw_a || !step.draw_b) return false;
  const Draw& a = *step.draw_a;
  const Draw& b = *step.draw_b;
  if (!is_race(a) && !is_race(b)) return a.uniform != b.uniform;
  if (is_race(a) != is_race(b)) return false;
  return std::any_of(a.candidates.begin(), a.candidates.end(), [&](const DrawCandidate& entry) {
    const DrawCandidate* other = find_candidate(b, entry.id);
    return other != nullptr && other->noise != entry.noise;
  });
}

std::string describe_draws(const Divergence& divergence, const StepComparison& step) {
  if (!step.draw_a || !step.draw_b || !divergence.token_a || !divergence.token_b) return {};
  const Draw& a = *step.draw_a;
  const Draw& b = *step.draw_b;
  if (is_race(a) != is_race(b)) return {};
  if (is_race(a)) return describe_race(a, b, *divergence.token_a, *divergence.token_b);
  if (a.uniform != b.uniform) {
    return fmt::format("the random numbers differ: uniform {} (A) and {} (B)", precise(a.uniform),
                       precise(b.uniform));
  }
  return describe_boundary(a, b, *divergence.token_a, *divergence.token_b);
}

}  // namespace driftscope
