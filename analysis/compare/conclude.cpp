// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "analysis/compare/conclusion.h"
#include "analysis/compare/imported_side.h"
#include "analysis/compare/reference_check.h"
#include "analysis/compare/rounding_bound.h"
#include "analysis/compare/row_shift.h"
#include "analysis/compare/statistics.h"
#include "engine/config/knob.h"
#include "kernels/base/display_text.h"
#include "kernels/plan/kv_dtype.h"

namespace driftscope {

namespace {

void repeat_facts(Comparison& comparison, const ExperimentFacts& facts) {
  comparison.vocabulary = facts.vocabulary;
  comparison.planned_steps = facts.planned_steps;
  comparison.prompt_a = facts.prompt_a;
  comparison.prompt_b = facts.prompt_b;
  comparison.prompt_text = facts.prompt_text;
  comparison.model_a = facts.model_a;
  comparison.model_b = facts.model_b;
  comparison.config_a_name = config_label(facts.config_a);
  comparison.config_b_name = config_label(facts.config_b);
  comparison.config_a_json = config_to_json(facts.config_a).dump();
  comparison.config_b_json = config_to_json(facts.config_b).dump();
  comparison.command = facts.command;
  comparison.imported_a = imported_side(facts.envelope_a);
  comparison.imported_b = imported_side(facts.envelope_b);
  const auto forget = [](const std::optional<ImportedSide>& side, std::string& name,
                         std::string& json) {
    if (!side) return;
    name = fmt::format("configuration not known ({})", side->format);
    json.clear();
  };
  forget(comparison.imported_a, comparison.config_a_name, comparison.config_a_json);
  forget(comparison.imported_b, comparison.config_b_name, comparison.config_b_json);
}

// The type of an imported side's logits is not known, so a margin has no units in it.
void forget_units(Comparison& comparison) {
  const std::size_t index = *metric_index("tie_ulps");
  for (auto& step : comparison.steps) {
    const auto& values = step->metrics.values;
    if (index >= values.size() || std::isnan(values[index])) continue;
    auto updated = std::make_shared<StepComparison>(*step);
    updated->metrics.values[index] = std::numeric_limits<double>::quiet_NaN();
    step = std::move(updated);
  }
}

double drift_excess(double drift, double usual) {
  if (drift == 0.0) return 0.0;
  // With usual == 0 any drift is out of the ordinary: infinity by IEEE division.
  return drift / usual;
}

// Steps are shared and immutable: those whose value changes are replaced by a copy.
void fill_drift_excess(Comparison& comparison, double usual) {
  const std::size_t excess = *metric_index("drift_excess");
  const std::size_t drift = *metric_index("centred_rms");
  for (auto& step : comparison.steps) {
    const auto& values = step->metrics.values;
    if (values.size() <= std::max(excess, drift)) continue;
    const double value = drift_excess(values[drift], usual);
    if (values[excess] == value || (std::isnan(values[excess]) && std::isnan(value))) continue;
    auto updated = std::make_shared<StepComparison>(*step);
    updated->metrics.values[excess] = value;
    step = std::move(updated);
  }
}

// Largest of a step's error and the run's usual one: the error of one step is a small sample.
double settled(double error, double usual) { return error > usual ? error : usual; }

// Roundings that both sides do and the reference does not are part of both errors, and hide drift
// far below them. Where they are as coarse as these, the errors predict nothing.
std::string shared_rounding(const ExperimentFacts& facts) {
  for (const RunConfig* config : {&facts.config_a, &facts.config_b}) {
    if (config->quantisation != Quantisation::none) return "quantised weights";
    if (!plain_dtype(config->kv_dtype)) return "an 8-bit cache";
    if (config->rope_table_dtype == RopeTableDtype::bf16) return "a bf16 RoPE table";
    if (effective_dtype(config->weight_dtype, facts.stored_dtype) != facts.stored_dtype ||
        effective_dtype(config->lm_head_dtype, facts.stored_dtype) != facts.stored_dtype) {
      return "rounded weights";
    }
  }
  return {};
}

void fill_noise_ratio(Comparison& comparison, const RoundingBound& bound) {
  const std::size_t ratio = *metric_index("noise_ratio");
  const double usual_a = percentile_of(metric_column(comparison, "error_a"), 0.5);
  const double usual_b = percentile_of(metric_column(comparison, "error_b"), 0.5);
  if (std::isnan(usual_a) || std::isnan(usual_b) || !bound.known) return;
  for (auto& step : comparison.steps) {
    const auto value = [&](std::string_view id) { return metric_value(step->metrics, id); };
    if (std::isnan(value("error_a")) || std::isnan(value("error_b"))) continue;
    const double envelope =
        noise_envelope(settled(value("error_a"), usual_a), settled(value("error_b"), usual_b),
                       bound.relative_a, bound.relative_b);
    const double noise = value("centred_rms") == 0.0 ? 0.0 : value("centred_rms") / envelope;
    const double known = value("noise_ratio");
    if (known == noise || (std::isnan(known) && std::isnan(noise))) continue;
    auto updated = std::make_shared<StepComparison>(*step);
    updated->metrics.values[ratio] = noise;
    step = std::move(updated);
  }
}

ReferenceResult reference_of(const Comparison& comparison) {
  ReferenceResult result;
  const auto column_a = metric_column(comparison, "error_a");
  const auto column_b = metric_column(comparison, "error_b");
  result.steps = std::count_if(column_a.begin(), column_a.end(),
                               [](double value) { return !std::isnan(value); });
  result.present = result.steps > 0;
  result.error_a = percentile_of(column_a, 0.5);
  result.error_b = percentile_of(column_b, 0.5);
  return result;
}

DriftPart drift_part(const Comparison& comparison, const std::string& prefix,
                     std::string_view drift) {
  DriftPart part;
  double sum = 0.0;
  std::int64_t count = 0;
  for (const auto& step : comparison.steps) {
    part.max_abs = std::fmax(part.max_abs, metric_value(step->metrics, prefix + "_max_abs"));
    const double kl = metric_value(step->metrics, prefix + "_kl");
    if (std::isnan(kl)) continue;
    sum += kl;
    ++count;
  }
  part.mean_kl = sum / static_cast<double>(count);
  part.drift = percentile_of(metric_column(comparison, drift), 0.5);
  return part;
}

DriftSplit split_of(const Comparison& comparison) {
  DriftSplit split;
  const auto weights = metric_column(comparison, "weights_kl");
  split.steps = std::count_if(weights.begin(), weights.end(),
                              [](double value) { return !std::isnan(value); });
  if (split.steps == 0) return split;
  split.weights = drift_part(comparison, "weights", "weights_drift");
  split.arithmetic_a = drift_part(comparison, "error_a", "error_a");
  split.arithmetic_b = drift_part(comparison, "error_b", "error_b");
  return split;
}

std::vector<RunStatistic> all_statistics(const Comparison& comparison) {
  std::vector<std::int64_t> steps;
  for (const auto& step : comparison.steps) steps.push_back(step->step);
  std::vector<RunStatistic> statistics;
  for (const MetricSpec& spec : metric_registry()) {
    statistics.push_back(run_statistic(spec.id, metric_column(comparison, spec.id), steps));
  }
  return statistics;
}

}  // namespace

const LaneView* find_lane(const Comparison& comparison, Lane lane) {
  const auto found = std::find_if(comparison.lanes.begin(), comparison.lanes.end(),
                                  [&](const LaneView& view) { return view.lane == lane; });
  return found == comparison.lanes.end() ? nullptr : &*found;
}

const StepComparison* find_step(const Comparison& comparison, std::int64_t step) {
  const auto found =
      std::lower_bound(comparison.steps.begin(), comparison.steps.end(), step,
                       [](const auto& entry, std::int64_t wanted) { return entry->step < wanted; });
  return found != comparison.steps.end() && (*found)->step == step ? found->get() : nullptr;
}

std::string describe_token(const Comparison& comparison, const std::optional<TokenId>& token) {
  if (!token) return "the end";
  const TokenPiece* piece = comparison.piece(*token);
  if (piece == nullptr) return fmt::format("token {}", token->value);
  return fmt::format("\"{}\"", escape_for_display(piece->bytes));
}

std::string figure(double value) { return fmt::format("{:.3g}", value); }

std::string counted(std::int64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

void conclude(Comparison& comparison, const ExperimentFacts& facts) {
  repeat_facts(comparison, facts);
  const double usual = usual_drift(metric_column(comparison, "centred_rms"));
  fill_drift_excess(comparison, usual);
  const auto positions = static_cast<std::int64_t>(
      std::max(facts.prompt_a.size(), facts.prompt_b.size()) + comparison.steps.size());
  const bool imported = comparison.imported_a || comparison.imported_b;
  std::optional<Finding> shift;
  if (imported) {
    forget_units(comparison);
    shift = find_row_shift(comparison, facts);
    forget_shifted_metrics(comparison);
  }
  const RoundingBound bound = imported ? RoundingBound{} : rounding_bound(facts, positions);
  const std::string shared = shared_rounding(facts);
  comparison.split = split_of(comparison);
  // Where no knob differs that could change a bit, there is no noise to compare with; where the
  // weights differ, the drift is not noise.
  if (shared.empty() && bound.relative > 0.0 && comparison.split.steps == 0) {
    fill_noise_ratio(comparison, bound);
  }
  comparison.reference = reference_of(comparison);
  comparison.reference.shared_rounding = shared;
  comparison.statistics = all_statistics(comparison);
  const RunContext context{.comparison = comparison,
                           .facts = facts,
                           .bound = bound,
                           .usual_drift = usual,
                           .pair_drift = metric_column(comparison, "pair_drift")};
  comparison.tokens_equal = count_equal_tokens(comparison);
  comparison.first_divergence = find_first_divergence(context);
  comparison.first_flip = find_first_flip(context);
  comparison.envelope_difference = find_field_differences(facts);
  comparison.findings = collect_findings(context);
  if (shift) tell_row_shift(comparison, std::move(*shift));
  comparison.tiers = check_tiers(context);
  comparison.verdict = strongest_tier(comparison.tiers);
  comparison.verdict_text = describe_verdict(comparison);
}

}  // namespace driftscope
