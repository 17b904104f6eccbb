// SPDX-License-Identifier: Apache-2.0
// Tiers, and the verdict that follows: the strongest tier that is known to hold. What is not known
// never holds: a run cut short, NaN, a missing lane leave a tier open.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/compare/conclusion.h"
#include "analysis/compare/imported_side.h"
#include "analysis/compare/tier_measures.h"
#include "analysis/compare/value_words.h"

namespace driftscope {

namespace {

// A tier that held for all that is there holds only if that is everything.
TierCheck held_so_far(Tier tier, const Comparison& comparison, std::string detail) {
  const std::string gap = describe_gap(comparison);
  if (gap.empty()) return {tier, true, std::move(detail)};
  return {tier, std::nullopt, fmt::format("{} so far, but {}", detail, gap)};
}

const TapDrift* first_differing_tap(const Comparison& comparison) {
  for (const TapDrift& tap : comparison.taps) {
    const auto differs = [](double value) { return !(value == 0.0); };
    if (std::any_of(tap.max_ulp.begin(), tap.max_ulp.end(), differs)) return &tap;
  }
  return nullptr;
}

// NaN or infinity in every entry of one side: the model computed nothing.
std::int64_t steps_without_finite_entries(const Comparison& comparison) {
  if (comparison.listed()) return 0;
  return std::count_if(comparison.steps.begin(), comparison.steps.end(), [](const auto& step) {
    return std::isnan(metric_value(step->metrics, "centred_rms"));
  });
}

// Steps whose best token is not known: a row of a file holds NaN, is not the same on both sides,
// and the best token of the row stands for what was chosen.
std::int64_t steps_without_best(const Comparison& comparison) {
  const auto taken = [&](const std::optional<ImportedSide>& side) {
    return side && (!side->tokens_given || comparison.scored());
  };
  const bool a = taken(comparison.imported_a);
  const bool b = taken(comparison.imported_b);
  return std::count_if(comparison.steps.begin(), comparison.steps.end(), [&](const auto& step) {
    const RowHealth& health = step->metrics.health;
    return ((a && health.nan_a > 0) || (b && health.nan_b > 0)) &&
           metric_value(step->metrics, "different_entries") != 0.0;
  });
}

// A choice that differs at a step whose rows hold no NaN.
bool flips_for_certain(const Comparison& comparison) {
  return std::any_of(comparison.steps.begin(), comparison.steps.end(), [](const auto& step) {
    return step->flipped && step->metrics.health.nan_a + step->metrics.health.nan_b == 0;
  });
}

TierCheck best_not_known(std::int64_t steps) {
  return {Tier::token, std::nullopt,
          fmt::format("which token is the best of a row with NaN is not known ({})",
                      counted(steps, "step"))};
}

// Both sides scored one given text: nothing was written, so what is compared is the best token.
TierCheck check_choices(const Comparison& comparison) {
  const auto steps = static_cast<std::int64_t>(comparison.steps.size());
  if (steps == 0) return {Tier::token, std::nullopt, "no position was compared"};
  if (comparison.listed()) {
    return {Tier::token, std::nullopt,
            fmt::format("the {} were given, not chosen, and the lists do not say which token was "
                        "the best of all",
                        counted(steps, "token"))};
  }
  if (const auto empty = steps_without_finite_entries(comparison); empty > 0) {
    return {Tier::token, std::nullopt,
            fmt::format("{} without one finite number", counted(empty, "row"))};
  }
  if (const auto open = steps_without_best(comparison);
      open > 0 && !flips_for_certain(comparison)) {
    return best_not_known(open);
  }
  if (const auto& flip = comparison.first_flip) {
    return {Tier::token, false,
            fmt::format("the best token differs, first at position {}", flip->step)};
  }
  return held_so_far(Tier::token, comparison,
                     fmt::format("the same best token at all {}", counted(steps, "position")));
}

// Of the free lanes.
TierCheck check_token(const Comparison& comparison) {
  const LaneView* a = find_lane(comparison, Lane::a);
  const LaneView* b = find_lane(comparison, Lane::b);
  if (a == nullptr || b == nullptr) {
    return {Tier::token, std::nullopt, fmt::format("lane {} is missing", a == nullptr ? "a" : "b")};
  }
  if (comparison.scored()) return check_choices(comparison);
  if (const auto open = steps_without_best(comparison);
      open > 0 && !flips_for_certain(comparison)) {
    return best_not_known(open);
  }
  if (const auto& divergence = comparison.first_divergence) {
    return {Tier::token, false, fmt::format("the tokens part at step {}", divergence->step)};
  }
  const std::string detail = fmt::format("{} equal", counted(comparison.tokens_equal, "token"));
  if (a->tokens.size() != b->tokens.size() && comparison.state == TraceState::complete) {
    return {
        Tier::token, std::nullopt,
        fmt::format("{}, but A has {} and B has {}", detail, a->tokens.size(), b->tokens.size())};
  }
  if (comparison.tokens_equal == 0) return {Tier::token, std::nullopt, "there are no tokens"};
  if (const auto empty = steps_without_finite_entries(comparison); empty > 0) {
    return {Tier::token, std::nullopt,
            fmt::format("{}, but chosen from rows without one finite number at {}", detail,
                        counted(empty, "step"))};
  }
  if (comparison.state == TraceState::complete) return {Tier::token, true, detail};
  return held_so_far(Tier::token, comparison, detail);
}

TierCheck check_bitwise(const Comparison& comparison, const TierCheck& token) {
  if (comparison.listed()) {
    if (token.holds == false) return {Tier::bitwise, false, token.detail};
    return {Tier::bitwise, std::nullopt,
            "rows are lists of a few tokens: the others are not known"};
  }
  std::int64_t different = 0;
  std::int64_t first = -1;
  std::int64_t first_choice = -1;
  for (const auto& step : comparison.steps) {
    if (metric_value(step->metrics, "different_entries") == 0.0) {
      if (step->flipped && first_choice < 0) first_choice = step->step;
      continue;
    }
    if (different++ == 0) first = step->step;
  }
  if (different == 0 && first_choice >= 0) {
    return {Tier::bitwise, false,
            fmt::format("the logits of all {} have the same bits, but the choices part at step {}",
                        counted(steps_of(comparison), "step"), first_choice)};
  }
  if (different > 0) {
    return {Tier::bitwise, false,
            fmt::format("the bits of the logits differ at {} of {}, first at step {}", different,
                        counted(steps_of(comparison), "step"), first)};
  }
  if (const TapDrift* tap = first_differing_tap(comparison)) {
    return {Tier::bitwise, false,
            fmt::format("the logits have the same bits, but {} of layer {} does not",
                        tap->spec.operation, tap->spec.layer)};
  }
  if (token.holds == false) return {Tier::bitwise, false, token.detail};
  if (steps_of(comparison) == 0) return {Tier::bitwise, std::nullopt, "no step was compared"};
  if (const auto empty = steps_without_finite_entries(comparison); empty > 0) {
    return {Tier::bitwise, std::nullopt,
            fmt::format("the bits agree, but the rows of {} hold no finite number: nothing was "
                        "measured",
                        counted(empty, "step"))};
  }
  const std::string detail =
      fmt::format("all {} have the same bits", counted(steps_of(comparison), "step"));
  if (!token.holds)
    return {Tier::bitwise, std::nullopt, fmt::format("{}; {}", detail, token.detail)};
  return held_so_far(Tier::bitwise, comparison, detail);
}

// Of rows that are normalised on one side only: max_abs is not known, so the tier can only fail.
TierCheck check_tolerance_by_kl(const Comparison& comparison) {
  const double limit = comparison.policy.kl_tolerance;
  const double kl = measure_tolerance(comparison).kl;
  if (limit >= 0.0 && kl > limit) {
    return {Tier::tolerance, false,
            fmt::format("largest KL {} against the limit {}", figure(kl), figure(limit))};
  }
  return {Tier::tolerance, std::nullopt,
          fmt::format("the sides' numbers are not of one kind, so max_abs is not known (largest "
                      "KL {})",
                      figure(kl))};
}

TierCheck check_tolerance(const Comparison& comparison) {
  const std::string limits = describe_limits(comparison.policy);
  if (limits.empty()) return {Tier::tolerance, std::nullopt, "every limit is switched off"};
  if (comparison.steps.empty()) return {Tier::tolerance, std::nullopt, "no step was compared"};
  if (comparison.listed()) {
    return {Tier::tolerance, std::nullopt,
            "rows are lists of a few tokens: max_abs and KL need the whole vocabulary"};
  }
  if (!numbers_comparable(comparison)) return check_tolerance_by_kl(comparison);
  const ToleranceUse use = measure_tolerance(comparison);
  const std::string detail = fmt::format("largest max_abs {}, KL {} against the limits {}",
                                         figure(use.max_abs), figure(use.kl), limits);
  if (use.exceeded_step >= 0) {
    return {Tier::tolerance, false,
            fmt::format("{}; first exceeded at step {}", detail, use.exceeded_step)};
  }
  if (use.undecided_steps > 0) {
    return {Tier::tolerance, std::nullopt,
            fmt::format("{}; NaN or infinities leave {} undecided", detail,
                        counted(use.undecided_steps, "step"))};
  }
  return held_so_far(Tier::tolerance, comparison, detail);
}

// Texts are compared only for equality: judging meaning is not part of this version.
TierCheck check_semantic(const Comparison& comparison, const TierCheck& token) {
  if (token.holds == true) return {Tier::semantic, true, "the texts are equal"};
  const LaneView* a = find_lane(comparison, Lane::a);
  const LaneView* b = find_lane(comparison, Lane::b);
  const auto text_of = [&](const LaneView& lane) -> std::optional<std::string> {
    std::string text;
    for (const TokenId token_id : lane.tokens) {
      const TokenPiece* piece = comparison.piece(token_id);
      if (piece == nullptr) return std::nullopt;
      text += piece->bytes;
    }
    return text;
  };
  if (a != nullptr && b != nullptr && comparison.state == TraceState::complete &&
      !a->tokens.empty() && steps_without_finite_entries(comparison) == 0 &&
      steps_without_best(comparison) == 0) {
    const auto text_a = text_of(*a);
    if (text_a && text_a == text_of(*b)) {
      return {Tier::semantic, true, "the texts are equal though the tokens differ"};
    }
  }
  return {Tier::semantic, std::nullopt, "meaning is not checked in this version"};
}

// A that does not repeat its own bits: whatever differs or agrees after that says nothing.
bool control_failed(const Comparison& comparison) {
  const ControlResult& control = comparison.control;
  return control.present && control.steps > 0 && !control.bits_equal;
}

TierCheck check_inconclusive(const RunContext& context) {
  const Comparison& comparison = context.comparison;
  if (control_failed(comparison)) {
    return {Tier::inconclusive, true,
            "A does not repeat itself (control lane), so nothing that agrees or differs can be "
            "trusted"};
  }
  if (comparison.prompt_a != comparison.prompt_b) {
    return {Tier::inconclusive, true, "the prompts differ: these are different tasks"};
  }
  if (const std::string texts = imported_prompt_difference(context.facts); !texts.empty()) {
    return {Tier::inconclusive, true, fmt::format("{}: these are different tasks", texts)};
  }
  if ((comparison.imported_a && comparison.imported_a->lossy) ||
      (comparison.imported_b && comparison.imported_b->lossy)) {
    return {Tier::inconclusive, true,
            "the bytes of tokens were lost on one side: whether two tokens are the same cannot be "
            "told"};
  }
  if (find_lane(comparison, Lane::a) == nullptr || find_lane(comparison, Lane::b) == nullptr) {
    return {Tier::inconclusive, true, "a free lane is missing"};
  }
  if (comparison.steps.empty()) return {Tier::inconclusive, true, "no step was compared"};
  return {Tier::inconclusive, false, "the sides can be compared"};
}

}  // namespace

std::vector<TierCheck> check_tiers(const RunContext& context) {
  const Comparison& comparison = context.comparison;
  const TierCheck token = check_token(comparison);
  std::vector<TierCheck> tiers{check_bitwise(comparison, token), check_tolerance(comparison), token,
                               check_semantic(comparison, token)};
  TierCheck inconclusive = check_inconclusive(context);
  if (control_failed(comparison)) {
    for (TierCheck& check : tiers) {
      if (check.holds == true) check.holds.reset();
    }
  }
  const bool any_holds = std::any_of(tiers.begin(), tiers.end(),
                                     [](const TierCheck& check) { return check.holds == true; });
  TierCheck different{Tier::different, std::nullopt, "not decided"};
  if (any_holds) {
    different = {Tier::different, false, "a stronger tier holds"};
  } else if (token.holds == false) {
    different = {Tier::different, true, token.detail};
  }
  if (!any_holds && different.holds != true && inconclusive.holds == false) {
    inconclusive = {Tier::inconclusive, true,
                    steps_without_best(comparison) > 0
                        ? token.detail
                        : "no tier is known to hold or to fail for good"};
  }
  tiers.push_back(std::move(different));
  tiers.push_back(std::move(inconclusive));
  return tiers;
}

Tier strongest_tier(const std::vector<TierCheck>& tiers) {
  for (const TierCheck& check : tiers) {
    if (check.tier == Tier::inconclusive && check.holds == true) return Tier::inconclusive;
  }
  for (const TierCheck& check : tiers) {
    if (check.holds == true) return check.tier;
  }
  return Tier::inconclusive;
}

}  // namespace driftscope
