// SPDX-License-Identifier: Apache-2.0
// Why two sides chose differently. The cause must come from a scale other than the drift that made
// the flip: units in the last place, the other steps of the run, the bound known before the run.
//
// Order of the rules, first match wins:
//  1. input          the sides do not compute the same task: no later rule applies
//  2. sampler        one side ended and the other went on after equal tokens: a rule for stopping
//  3. tie_break or sampler   the logits have the same bits: only the choice differs
//  4. sampler or excess_drift   a token was drawn (temperature above 0), or is not the best of its
//                    row (penalties): margins say nothing about a draw
//  5. tie_break      A's two logits are equal, or are after the rounding of the coarser logits
//  dtype;
//                    or B's are, while the drift is not in excess
//  6. excess_drift   drift_excess of policy.excess_factor and more, or drift beyond the a-priori
//  bound
//  7. near_tie       margin within policy.near_tie_ulps units or within
//  policy.near_tie_drift_factor
//                    times the p95 pairwise drift of the other steps
//  8. unexplained
// The margin that counts is the gap in A between the two tokens that were chosen: the top-1 margin
// where B chose A's second token, wider where it chose another.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/compare/conclusion.h"
#include "analysis/compare/imported_side.h"
#include "analysis/compare/statistics.h"
#include "engine/config/knob.h"

namespace driftscope {

namespace {

constexpr double kUnknownMargin = std::numeric_limits<double>::quiet_NaN();

struct Explanation {
  FlipCause cause;
  std::string reason;
};

std::optional<double> logit_in(const std::vector<RankedToken>& list, TokenId token) {
  for (const RankedToken& entry : list) {
    if (entry.token == token) return double{entry.logit};
  }
  return std::nullopt;
}

double gap_in(const std::vector<RankedToken>& list, TokenId chosen, TokenId other) {
  const auto high = logit_in(list, chosen);
  const auto low = logit_in(list, other);
  return high && low ? *high - *low : kUnknownMargin;
}

// Every figure of `divergence` that comes from the row pair of its step.
void fill_gaps(Divergence& divergence, const StepComparison& step) {
  divergence.gap_a = divergence.gap_b = kUnknownMargin;
  if (!divergence.token_a || !divergence.token_b) return;
  const TokenId a = *divergence.token_a;
  const TokenId b = *divergence.token_b;
  for (const RankFlip& flip : step.flips) {
    if (flip.x != a || flip.y != b) continue;
    divergence.gap_a = flip.gap_a;
    divergence.gap_b = 0.0 - flip.gap_b;
    return;
  }
  divergence.gap_a = gap_in(step.metrics.top_a, a, b);
  divergence.gap_b = gap_in(step.metrics.top_b, b, a);
}

// The margin of a token that need not be the best of its row.
double own_margin(const std::vector<RankedToken>& list, TokenId token) {
  const auto own = logit_in(list, token);
  for (const RankedToken& entry : list) {
    if (own && entry.token != token) return *own - double{entry.logit};
  }
  return kUnknownMargin;
}

// Of imported sides, as Divergence tells. Of whole rows the ranking has the best two, and the token
// where it is among the best K.
void fill_imported_margins(Divergence& divergence, const StepComparison& step,
                           const Comparison& comparison) {
  if (comparison.listed() && !listed_gaps_mean_something(comparison, step)) {
    divergence.margin_a = divergence.margin_b = kUnknownMargin;
    divergence.gap_a = divergence.gap_b = kUnknownMargin;
    return;
  }
  const auto fill = [&](const std::optional<ImportedSide>& side, const auto& list, double gap,
                        const std::optional<TokenId>& token, double& margin) {
    if (!side || !token) return;
    if (side->listed && !std::isnan(gap)) {
      margin = gap;
    } else {
      margin = own_margin(list, *token);
    }
  };
  fill(comparison.imported_a, step.metrics.top_a, divergence.gap_a, divergence.token_a,
       divergence.margin_a);
  fill(comparison.imported_b, step.metrics.top_b, divergence.gap_b, divergence.token_b,
       divergence.margin_b);
}

double p95_of_other_steps(const RunContext& context, std::int64_t step) {
  std::vector<double> others;
  for (std::size_t i = 0; i < context.pair_drift.size(); ++i) {
    if (context.comparison.steps[i]->step != step) others.push_back(context.pair_drift[i]);
  }
  return percentile_of(std::move(others), 0.95);
}

void fill_figures(Divergence& divergence, const StepComparison* step, const RunContext& context) {
  divergence.usual_drift = context.usual_drift;
  divergence.p95_pair_drift = p95_of_other_steps(context, divergence.step);
  divergence.margin_a = divergence.margin_b = divergence.gap_a = divergence.gap_b = kUnknownMargin;
  divergence.drift = divergence.drift_excess = divergence.tie_ulps = kUnknownMargin;
  if (step == nullptr) return;
  divergence.rows_a = step->rows_a;
  divergence.rows_b = step->rows_b;
  const auto value = [&](std::string_view id) { return metric_value(step->metrics, id); };
  divergence.margin_a = value("margin_a");
  divergence.margin_b = value("margin_b");
  divergence.drift = value("centred_rms");
  divergence.drift_excess = value("drift_excess");
  divergence.tie_ulps = value("tie_ulps");
  divergence.noise_ratio = value("noise_ratio");
  if (context.bound.known) divergence.rounding_bound = context.bound.relative * value("logit_rms");
  fill_gaps(divergence, *step);
  fill_imported_margins(divergence, *step, context.comparison);
}

bool same_logits(const StepComparison& step) {
  return metric_value(step.metrics, "different_entries") == 0.0 ||
         (metric_value(step.metrics, "max_abs") == 0.0 && step.metrics.health == RowHealth{});
}

bool is_draw(const Divergence& divergence, const StepComparison& step,
             const ExperimentFacts& facts) {
  if (facts.config_a.sampling.temperature > 0.0 || facts.config_b.sampling.temperature > 0.0) {
    return true;
  }
  // Greedy picks the best entry unless a penalty moves it: only then can the settings explain
  // another token. Without one, row and token contradict each other, and no draw is to blame.
  const auto penalised = [](const SamplingConfig& sampling) {
    return sampling.repetition_penalty != 1.0 || sampling.presence_penalty != 0.0 ||
           sampling.frequency_penalty != 0.0;
  };
  if (!penalised(facts.config_a.sampling) && !penalised(facts.config_b.sampling)) return false;
  const auto& top_a = step.metrics.top_a;
  const auto& top_b = step.metrics.top_b;
  return (!top_a.empty() && divergence.token_a != top_a.front().token) ||
         (!top_b.empty() && divergence.token_b != top_b.front().token);
}

// Measured noise takes the place of the bound, but not where no knob differs that could change a
// bit: there any drift is too much.
bool noise_is_known(const Divergence& divergence, const RunContext& context) {
  return !std::isnan(divergence.noise_ratio) && context.bound.relative > 0.0;
}

bool beyond_bound(const Divergence& divergence, const RunContext& context) {
  if (noise_is_known(divergence, context)) {
    return divergence.noise_ratio >= context.comparison.policy.excess_factor;
  }
  return context.bound.known && divergence.drift > divergence.rounding_bound;
}
bool in_excess(const Divergence& divergence, const RunContext& context) {
  return divergence.drift_excess >= context.comparison.policy.excess_factor ||
         beyond_bound(divergence, context);
}

std::string describe_excess(const Divergence& d) {
  if (std::isinf(d.drift_excess)) {
    return fmt::format("drift at this step {} where the run usually has none", figure(d.drift));
  }
  return fmt::format("drift at this step {} is {} times the usual {}", figure(d.drift),
                     figure(d.drift_excess), figure(d.usual_drift));
}

// Coarse types make drift come in bursts: most steps round alike, some do not. Other steps that
// drift as much do not take the cause away, but a reader must know of them.
std::string describe_company(const Divergence& d, const RunContext& context) {
  std::int64_t company = 0;
  for (const auto& step : context.comparison.steps) {
    const double drift = metric_value(step->metrics, "centred_rms");
    company += static_cast<std::int64_t>(step->step != d.step && drift >= 0.5 * d.drift);
  }
  if (company == 0 || beyond_bound(d, context)) return "look for a fault, not for rounding";
  return fmt::format(
      "{} drift{} at least half as much, so rounding that comes in bursts is possible "
      "as well as a fault",
      counted(company, "other step"), company == 1 ? "s" : "");
}

std::string describe_bound(const Divergence& d, const RunContext& context) {
  if (!context.bound.known) return "no a-priori rounding bound is known for this pair";
  if (context.bound.relative == 0.0) return "no knob differs that could change a bit";
  if (noise_is_known(d, context)) {
    return fmt::format(
        "{} times the noise that the f64 reference shows (roundings that both sides share are part "
        "of it, so a fault well below it can hide)",
        figure(d.noise_ratio));
  }
  const bool beyond = d.drift > d.rounding_bound;
  std::string text = fmt::format("{} the a-priori rounding bound {}", beyond ? "beyond" : "within",
                                 figure(d.rounding_bound));
  // A wide bound must not read like a proof: say what it leaves open.
  constexpr double kWide = 10.0;
  if (!beyond && d.usual_drift > 0.0 && d.rounding_bound > kWide * d.usual_drift) {
    text += fmt::format(
        " (which is {} times the usual drift, so it cannot exclude a fault that is alike at every "
        "step)",
        figure(d.rounding_bound / d.usual_drift));
  }
  return text;
}

// "; …" or nothing.
std::string and_draws(const Divergence& divergence, const StepComparison& step) {
  const std::string draws = describe_draws(divergence, step);
  return draws.empty() ? draws : "; " + draws;
}

// Why equal settings gave different numbers.
std::string describe_stream(const ExperimentFacts& facts) {
  if (facts.config_a.sampling.seed_scope == SeedScope::shared_worker) {
    return "the requests in flight share one stream (seed_scope shared_worker), and others took "
           "numbers from it";
  }
  return "look for random state shared between requests";
}

Explanation explain_equal_logits(const Divergence& divergence, const StepComparison& step,
                                 const RunContext& context) {
  const bool greedy = !is_draw(divergence, step, context.facts);
  if (divergence.margin_a == 0.0 &&
      (greedy || context.facts.config_a.sampling == context.facts.config_b.sampling) &&
      divergence.gap_a == 0.0) {
    return {FlipCause::tie_break,
            "tie: the logits have the same bits and the two tokens are exactly equal in them; the "
            "order among equals decided"};
  }
  if (context.facts.config_a.sampling == context.facts.config_b.sampling) {
    return {FlipCause::sampler,
            fmt::format("sampler: the logits have the same bits and the sampling settings are "
                        "equal, yet the draw differs; {}{}",
                        describe_stream(context.facts), and_draws(divergence, step))};
  }
  return {FlipCause::sampler,
          fmt::format("sampler: the logits have the same bits, only the draw differs (the sampling "
                      "settings are not equal){}",
                      and_draws(divergence, step))};
}

Explanation explain_draw(const Divergence& divergence, const StepComparison& step,
                         const RunContext& context) {
  const std::string tv = figure(metric_value(step.metrics, "tv"));
  if (context.facts.config_a.sampling != context.facts.config_b.sampling) {
    return {
        FlipCause::sampler,
        fmt::format("sampler: the sampling settings differ, so the draws do; {} (total variation "
                    "{}){}",
                    describe_excess(divergence), tv, and_draws(divergence, step))};
  }
  if (in_excess(divergence, context)) {
    return {
        FlipCause::excess_drift,
        fmt::format("excess drift under a draw with equal settings: {}, {}; look for a fault, not "
                    "for rounding",
                    describe_excess(divergence), describe_bound(divergence, context))};
  }
  if (drew_other_numbers(step)) {
    return {FlipCause::sampler,
            fmt::format("sampler: equal settings and seed, but other random numbers: {}{}; {} "
                        "(total variation {})",
                        describe_stream(context.facts), and_draws(divergence, step),
                        describe_excess(divergence), tv)};
  }
  return {FlipCause::sampler,
          fmt::format("sampler: equal settings and seed; the logits agree to {}{}; the draw fell "
                      "between the two distributions (total variation {}, so about that share of "
                      "draws part here); {}",
                      figure(metric_value(step.metrics, "max_abs")), and_draws(divergence, step),
                      tv, describe_excess(divergence))};
}

Dtype coarser_logits_dtype(const ExperimentFacts& facts) {
  const Dtype a = facts.config_a.logits_dtype;
  const Dtype b = facts.config_b.logits_dtype;
  return significand_bits(b) < significand_bits(a) ? b : a;
}

// Equal logits of the two chosen tokens in one row, as they are or after rounding.
bool tied_in(const std::vector<RankedToken>& list, const Divergence& divergence, Dtype dtype) {
  const auto a = logit_in(list, *divergence.token_a);
  const auto b = logit_in(list, *divergence.token_b);
  return a && b &&
         round_to(dtype, static_cast<float>(*a)) == round_to(dtype, static_cast<float>(*b));
}

std::optional<Explanation> explain_tie(const Divergence& divergence, const StepComparison& step,
                                       const RunContext& context) {
  const Dtype dtype = coarser_logits_dtype(context.facts);
  if (divergence.gap_a == 0.0) {
    return Explanation{FlipCause::tie_break,
                       fmt::format("tie: A's logits of the two tokens are exactly equal, so any "
                                   "drift decides; {}",
                                   describe_excess(divergence))};
  }
  if (tied_in(step.metrics.top_a, divergence, dtype)) {
    return Explanation{FlipCause::tie_break,
                       fmt::format("tie: A's logits of the two tokens differ by {} and are equal "
                                   "after rounding to {}",
                                   figure(divergence.gap_a), dtype_name(dtype))};
  }
  if (tied_in(step.metrics.top_b, divergence, dtype) && !in_excess(divergence, context)) {
    return Explanation{
        FlipCause::tie_break,
        fmt::format("tie: B's logits of the two tokens are equal in {} (A's differ by "
                    "{}), so their order decided",
                    dtype_name(dtype), figure(divergence.gap_a))};
  }
  return std::nullopt;
}

// The scale that the margin is small on, or empty.
std::string describe_nearness(const Divergence& d, double gap, double gap_ulps,
                              const RunContext& context) {
  const ComparePolicy& policy = context.comparison.policy;
  if (gap <= policy.near_tie_drift_factor * d.p95_pair_drift) {
    return fmt::format(
        "margin {}, within {} times {}, the 95th percentile of how far this run's "
        "drift moves two tokens against each other",
        figure(gap), figure(policy.near_tie_drift_factor), figure(d.p95_pair_drift));
  }
  if (gap_ulps <= policy.near_tie_ulps) {
    return fmt::format("margin {} is {} units in the last place of {} at the size of the top logit",
                       figure(gap), figure(gap_ulps),
                       dtype_name(coarsest_dtype(context.facts.config_a, context.facts.config_b)));
  }
  return {};
}

Explanation explain_drift(const Divergence& d, const RunContext& context) {
  const double gap = std::isnan(d.gap_a) ? d.margin_a : d.gap_a;
  // The unit at A's top logit, from margin_a = tie_ulps units.
  const double gap_ulps = gap == d.margin_a ? d.tie_ulps : d.tie_ulps * (gap / d.margin_a);
  const std::string drift = fmt::format("{}, {}", describe_excess(d), describe_bound(d, context));
  if (in_excess(d, context)) {
    const std::string route = describe_route_flip(context.comparison, d.step);
    return {FlipCause::excess_drift,
            fmt::format("excess drift: {}; margin {}; {}{}", drift, figure(gap),
                        describe_company(d, context), route.empty() ? "" : "; " + route)};
  }
  const std::string near = describe_nearness(d, gap, gap_ulps, context);
  if (!near.empty()) return {FlipCause::near_tie, fmt::format("near-tie: {}; {}", near, drift)};
  return {
      FlipCause::unexplained,
      fmt::format("unexplained: margin {} is neither within {} units in the last place (it is {}) "
                  "nor within {} times the run's p95 pairwise drift {}, yet {}",
                  figure(gap), figure(context.comparison.policy.near_tie_ulps), figure(gap_ulps),
                  figure(context.comparison.policy.near_tie_drift_factor), figure(d.p95_pair_drift),
                  drift)};
}

std::string describe_end(const RunContext& context, const Divergence& divergence) {
  const bool a_ended = !divergence.token_a;
  const LaneView* lane = find_lane(context.comparison, a_ended ? Lane::a : Lane::b);
  return fmt::format(
      "sampler: {} ended after {} ({}) and {} went on after the same tokens: the "
      "rules for stopping differ",
      a_ended ? 'A' : 'B', counted(divergence.step, "token"),
      lane != nullptr && !lane->stop.empty() ? lane->stop : "no reason given", a_ended ? 'B' : 'A');
}

Explanation find_cause(const Divergence& divergence, const StepComparison* step,
                       const RunContext& context) {
  if (const std::string input = describe_input_difference(context.facts); !input.empty()) {
    return {FlipCause::input, fmt::format("input: {}", input)};
  }
  if (!divergence.token_a || !divergence.token_b) {
    return {FlipCause::sampler, describe_end(context, divergence)};
  }
  if (step == nullptr) {
    return {FlipCause::unexplained,
            "unexplained: there is no pair of logits rows at this step to judge by"};
  }
  if (context.comparison.listed()) {
    auto [cause, reason] = explain_listed(divergence, *step, context);
    return {cause, std::move(reason)};
  }
  if (same_logits(*step)) return explain_equal_logits(divergence, *step, context);
  if (std::isnan(divergence.drift)) {
    return {FlipCause::excess_drift,
            "excess drift: no entry of the logits is finite in both rows at this step"};
  }
  if (is_draw(divergence, *step, context.facts)) return explain_draw(divergence, *step, context);
  if (auto tie = explain_tie(divergence, *step, context)) return *tie;
  return explain_drift(divergence, context);
}

}  // namespace

std::string describe_input_difference(const ExperimentFacts& facts) {
  if (facts.prompt_a != facts.prompt_b) {
    const auto [a, b] = std::mismatch(facts.prompt_a.begin(), facts.prompt_a.end(),
                                      facts.prompt_b.begin(), facts.prompt_b.end());
    return fmt::format("the prompts differ from position {} on ({} and {})",
                       a - facts.prompt_a.begin(),
                       counted(static_cast<std::int64_t>(facts.prompt_a.size()), "token"),
                       counted(static_cast<std::int64_t>(facts.prompt_b.size()), "token"));
  }
  if (std::string texts = imported_prompt_difference(facts); !texts.empty()) return texts;
  if (!facts.model_sha256_a.empty() && !facts.model_sha256_b.empty() &&
      facts.model_sha256_a != facts.model_sha256_b) {
    return fmt::format("the checkpoints differ (sha256 {} and {})",
                       facts.model_sha256_a.substr(0, 12), facts.model_sha256_b.substr(0, 12));
  }
  const RunConfig& a = facts.config_a;
  const RunConfig& b = facts.config_b;
  if (!same_weight_values(a, b, facts.stored_dtype)) {
    const auto quantisation = [](const RunConfig& config) {
      return get_knob(config, *find_knob("quantisation"));
    };
    if (a.quantisation != b.quantisation) {
      return fmt::format("the weights are quantised differently ({} and {})", quantisation(a),
                         quantisation(b));
    }
    if (a.quantisation != Quantisation::none && (a.quantisation_group != b.quantisation_group ||
                                                 a.quantise_lm_head != b.quantise_lm_head)) {
      return fmt::format(
          "the weights are quantised differently ({}: group {} and {}, LM head {} "
          "and {})",
          quantisation(a), a.quantisation_group, b.quantisation_group,
          a.quantise_lm_head ? "too" : "not", b.quantise_lm_head ? "too" : "not");
    }
    return fmt::format("the weights are rounded differently ({} and {}, LM head {} and {})",
                       dtype_name(effective_dtype(a.weight_dtype, facts.stored_dtype)),
                       dtype_name(effective_dtype(b.weight_dtype, facts.stored_dtype)),
                       dtype_name(effective_dtype(a.lm_head_dtype, facts.stored_dtype)),
                       dtype_name(effective_dtype(b.lm_head_dtype, facts.stored_dtype)));
  }
  return {};
}

void explain(Divergence& divergence, const RunContext& context) {
  const StepComparison* step = find_step(context.comparison, divergence.step);
  fill_figures(divergence, step, context);
  Explanation explanation = find_cause(divergence, step, context);
  divergence.cause = explanation.cause;
  divergence.reason = std::move(explanation.reason);
}

}  // namespace driftscope
