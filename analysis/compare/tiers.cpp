// SPDX-License-Identifier: Apache-2.0
// Tiers, and the verdict that follows: the strongest tier that is known to hold. What is not known
// never holds: a run cut short, NaN, a missing lane leave a tier open.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/compare/conclusion.h"
#include "analysis/compare/imported_side.h"

namespace driftscope {

namespace {

std::int64_t steps_of(const Comparison& comparison) {
  return static_cast<std::int64_t>(comparison.steps.size());
}

// Why the steps that were compared are not all there is; empty if they are.
std::string describe_gap(const Comparison& comparison) {
  const LaneView* a = find_lane(comparison, Lane::a);
  const auto produced = std::max(a == nullptr ? 0 : static_cast<std::int64_t>(a->tokens.size()),
                                 steps_of(comparison));
  if (comparison.state != TraceState::complete) {
    return fmt::format("the run is {}: {} of {} planned", trace_state_name(comparison.state),
                       counted(steps_of(comparison), "step"), comparison.planned_steps);
  }
  if (steps_of(comparison) < produced) {
    return fmt::format("only {} of A's {} have a row of B after the same tokens",
                       counted(steps_of(comparison), "step"), produced);
  }
  return {};
}

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
    return std::isnan(metric_value(step->metrics, "max_abs"));
  });
}

bool has_undefined_entries(const Comparison& comparison) {
  return std::any_of(comparison.steps.begin(), comparison.steps.end(), [](const auto& step) {
    const RowHealth& health = step->metrics.health;
    return health.nan_a + health.nan_b + health.infinite_a + health.infinite_b > 0;
  });
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

struct ToleranceUse {
  double max_abs = std::numeric_limits<double>::quiet_NaN();  // NaN until one is defined
  double kl = std::numeric_limits<double>::quiet_NaN();
  std::int64_t exceeded_step = -1;   // the first
  std::int64_t undecided_steps = 0;  // NaN, or infinities that do not match
};

ToleranceUse measure_tolerance(const Comparison& comparison) {
  const ComparePolicy& policy = comparison.policy;
  ToleranceUse use;
  for (const auto& step : comparison.steps) {
    const auto value = [&](std::string_view id) { return metric_value(step->metrics, id); };
    const double max_abs = value("max_abs");
    const double kl = std::fmax(value("kl_ab"), value("kl_ba"));
    use.max_abs = std::fmax(use.max_abs, max_abs);
    use.kl = std::fmax(use.kl, kl);
    const bool exceeded = (policy.max_abs_tolerance >= 0.0 && max_abs > policy.max_abs_tolerance) ||
                          (policy.kl_tolerance >= 0.0 && kl > policy.kl_tolerance);
    const RowHealth& health = step->metrics.health;
    const bool same_bits = value("different_entries") == 0.0;
    if (exceeded && use.exceeded_step < 0) use.exceeded_step = step->step;
    const bool undefined = std::isnan(max_abs) || health.nan_a + health.nan_b > 0 ||
                           health.unmatched > 0 || health.infinite_a != health.infinite_b;
    // Rows without one finite entry say nothing even where their bits agree.
    if ((undefined && !same_bits) || std::isnan(max_abs)) ++use.undecided_steps;
  }
  return use;
}

std::string describe_limits(const ComparePolicy& policy) {
  std::string limits;
  if (policy.max_abs_tolerance >= 0.0) {
    limits = fmt::format("max_abs {}", figure(policy.max_abs_tolerance));
  }
  if (policy.kl_tolerance >= 0.0) {
    limits += fmt::format("{}KL {}", limits.empty() ? "" : ", ", figure(policy.kl_tolerance));
  }
  return limits;
}

TierCheck check_tolerance(const Comparison& comparison) {
  const std::string limits = describe_limits(comparison.policy);
  if (limits.empty()) return {Tier::tolerance, std::nullopt, "every limit is switched off"};
  if (comparison.steps.empty()) return {Tier::tolerance, std::nullopt, "no step was compared"};
  if (comparison.listed()) {
    return {Tier::tolerance, std::nullopt,
            "rows are lists of a few tokens: max_abs and KL need the whole vocabulary"};
  }
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
      !a->tokens.empty() && steps_without_finite_entries(comparison) == 0) {
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
    inconclusive = {Tier::inconclusive, true, "no tier is known to hold or to fail for good"};
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

std::string describe_verdict(const Comparison& comparison) {
  const auto& divergence = comparison.first_divergence;
  const std::string parting =
      divergence
          ? fmt::format("at step {}: A goes on with {}, B with {} ({})", divergence->step,
                        describe_token(comparison, divergence->token_a),
                        describe_token(comparison, divergence->token_b), name_of(divergence->cause))
          : std::string();
  if (comparison.verdict == Tier::different && divergence) {
    return fmt::format("different: the texts part {}", parting);
  }
  std::string text;
  for (const TierCheck& check : comparison.tiers) {
    if (check.tier == comparison.verdict) text = check.detail;
  }
  if (comparison.verdict == Tier::tolerance) {
    text = fmt::format("the logits of {} stay within {}", counted(steps_of(comparison), "step"),
                       describe_limits(comparison.policy));
  }
  if (comparison.verdict == Tier::token && !comparison.steps.empty() && !comparison.listed()) {
    text += fmt::format(", while the logits drift by up to {}{}",
                        figure(measure_tolerance(comparison).max_abs),
                        has_undefined_entries(comparison) ? " where they are finite" : "");
  }
  text = fmt::format("{}: {}", name_of(comparison.verdict), text);
  if (divergence) text += fmt::format("; the texts part {}", parting);
  const std::string gap = describe_gap(comparison);
  if (!gap.empty() && text.find(gap) == std::string::npos) text += fmt::format("; {}", gap);
  return text;
}

}  // namespace driftscope
