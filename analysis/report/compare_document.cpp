// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/capture/json_text.h"
#include "analysis/compare/value_words.h"
#include "analysis/report/comparison_json.h"
#include "analysis/report/documents.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDocumentVersion = 1;

Json statistic_to_json(const RunStatistic& statistic, std::string_view unit) {
  return Json{
      {"unit", unit},
      {"max", statistic.maximum},
      {"p99", statistic.p99},
      {"p50", statistic.p50},
      {"mean", statistic.mean},
      {"argmax_step", statistic.argmax_step < 0 ? Json(nullptr) : Json(statistic.argmax_step)},
      {"count", statistic.count},
      {"min", statistic.minimum},
      {"sum", statistic.sum},
      {"standard_error", statistic.standard_error},
      {"p90", statistic.p90},
      {"p95", statistic.p95},
      {"p999", statistic.p999}};
}

Json statistics_to_json(const Comparison& comparison) {
  Json json = Json::object();
  for (const MetricSpec& spec : metric_registry()) {
    const auto& all = comparison.statistics;
    const auto found = std::find_if(all.begin(), all.end(), [&spec](const RunStatistic& statistic) {
      return statistic.metric == spec.id;
    });
    if (found == all.end()) continue;
    json[std::string(spec.id)] = statistic_to_json(*found, metric_unit(comparison, spec));
  }
  return json;
}

// How many pairs changed their order, and the pair whose lead changed most.
Json rank_flips_to_json(const Comparison& comparison) {
  std::int64_t count = 0;
  std::int64_t steps = 0;
  std::int64_t worst_step = 0;
  const RankFlip* worst = nullptr;
  for (const auto& step : comparison.steps) {
    count += static_cast<std::int64_t>(step->flips.size());
    steps += step->flips.empty() ? 0 : 1;
    for (const RankFlip& flip : step->flips) {
      if (worst != nullptr && flip.gap_a - flip.gap_b <= worst->gap_a - worst->gap_b) continue;
      worst = &flip;
      worst_step = step->step;
    }
  }
  Json json{{"count", count}, {"steps", steps}, {"worst", nullptr}};
  if (worst == nullptr) return json;
  Json pair{{"step", worst_step}};
  pair.update(flip_to_json(*worst));
  pair["text_x"] = text_of_token(comparison, worst->x);
  pair["text_y"] = text_of_token(comparison, worst->y);
  json["worst"] = std::move(pair);
  return json;
}

Json tiers_to_json(const Comparison& comparison) {
  Json json = Json::array();
  for (const TierCheck& check : comparison.tiers) {
    json.push_back({{"tier", name_of(check.tier)},
                    {"holds", check.holds ? Json(*check.holds) : Json(nullptr)},
                    {"detail", json_text::from_bytes(check.detail)}});
  }
  return json;
}

Json differences_to_json(const Comparison& comparison) {
  Json json = Json::array();
  for (const FieldDifference& difference : comparison.envelope_difference) {
    json.push_back({{"field", json_text::from_bytes(difference.field)},
                    {"a", json_text::from_bytes(difference.a)},
                    {"b", json_text::from_bytes(difference.b)}});
  }
  return json;
}

Json findings_to_json(const Comparison& comparison) {
  Json json = Json::array();
  for (const Finding& finding : comparison.findings) json.push_back(finding_to_json(finding));
  return json;
}

Json lanes_to_json(const Comparison& comparison) {
  Json json = Json::array();
  for (const LaneView& lane : comparison.lanes) json.push_back(lane_to_json(lane));
  return json;
}

Json step_to_json(const Comparison& comparison, const StepComparison& step) {
  Json flips = Json::array();
  for (const RankFlip& flip : step.flips) flips.push_back(flip_to_json(flip));
  return Json{{"step", step.step},
              {"token_a", step.token_a.value},
              {"text_a", text_of_token(comparison, step.token_a)},
              {"choice_b", step.choice_b.value},
              {"text_b", text_of_token(comparison, step.choice_b)},
              {"token_b", step.token_b ? Json(step.token_b->value) : Json(nullptr)},
              {"flipped", step.flipped},
              {"metrics", metrics_to_json(step.metrics)},
              {"max_abs_token", std::isnan(metric_value(step.metrics, "max_abs"))
                                    ? Json(nullptr)
                                    : Json(step.metrics.max_abs_token.value)},
              {"health", health_to_json(step.metrics.health)},
              {"top_a", ranking_to_json(step.metrics.top_a)},
              {"top_b", ranking_to_json(step.metrics.top_b)},
              {"flips", std::move(flips)}};
}

// The largest value and where it is first found; NaN is passed over.
std::optional<std::size_t> argmax(const std::vector<double>& values) {
  std::optional<std::size_t> largest;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    if (!largest || values[i] > values[*largest]) largest = i;
  }
  return largest;
}

Json taps_to_json(const Comparison& comparison) {
  Json json = Json::array();
  for (const TapDrift& tap : comparison.taps) {
    const auto largest = argmax(tap.max_abs);
    // NaN says only that a row held one.
    const auto first = std::find_if(tap.max_abs.begin(), tap.max_abs.end(),
                                    [](double value) { return value > 0.0; });
    json.push_back(
        {{"layer", tap.spec.layer},
         {"operation", tap.spec.operation},
         {"width", tap.spec.width},
         {"max_abs", largest ? Json(tap.max_abs[*largest]) : Json(nullptr)},
         {"argmax_step", largest ? Json(*largest) : Json(nullptr)},
         {"first_step",
          first == tap.max_abs.end() ? Json(nullptr) : Json(first - tap.max_abs.begin())}});
  }
  return json;
}

Json reference_to_json(const ReferenceResult& reference) {
  if (!reference.present) return nullptr;
  return {{"a", reference.error_a}, {"b", reference.error_b}};
}

Json split_to_json(const DriftSplit& split) {
  if (split.steps == 0) return nullptr;
  const auto part = [](const DriftPart& of) -> Json {
    return {{"max_abs", of.max_abs}, {"mean_kl", of.mean_kl}, {"drift", of.drift}};
  };
  return {{"steps", split.steps},
          {"weights", part(split.weights)},
          {"arithmetic_a", part(split.arithmetic_a)},
          {"arithmetic_b", part(split.arithmetic_b)}};
}

// What files do not tell is null.
Json prompt_to_json(const Comparison& comparison, const std::vector<TokenId>& prompt) {
  const bool files = comparison.imported_a || comparison.imported_b;
  return files && prompt.empty() ? Json(nullptr) : json_text::from_tokens(prompt);
}

Json document_of(const Comparison& comparison) {
  const bool files = comparison.imported_a || comparison.imported_b;
  Json document{{"document", "driftscope.compare"},
                {"version", kDocumentVersion},
                {"verdict", name_of(comparison.verdict)},
                {"verdict_text", json_text::from_bytes(comparison.verdict_text)},
                {"tiers", tiers_to_json(comparison)},
                {"state", trace_state_name(comparison.state)},
                {"first_divergence", divergence_to_json(comparison, comparison.first_divergence)},
                {"first_flip", divergence_to_json(comparison, comparison.first_flip)},
                {"steps", comparison.steps.size()},
                {"planned_steps", files ? Json(nullptr) : Json(comparison.planned_steps)},
                {"tokens_equal", comparison.tokens_equal},
                {"metrics", statistics_to_json(comparison)},
                {"rank_flips", rank_flips_to_json(comparison)},
                {"envelope_diff", differences_to_json(comparison)},
                {"findings", findings_to_json(comparison)},
                {"control", control_to_json(comparison.control)},
                {"reference", reference_to_json(comparison.reference)},
                {"split", split_to_json(comparison.split)},
                {"policy", policy_to_json(comparison.policy)},
                {"model_a", json_text::from_bytes(comparison.model_a)},
                {"model_b", json_text::from_bytes(comparison.model_b)},
                {"config_a", json_text::embedded(comparison.config_a_json)},
                {"config_b", json_text::embedded(comparison.config_b_json)},
                {"ids", interned(comparison) ? "interned" : "vocabulary"},
                {"vocabulary", interned(comparison) ? Json(nullptr) : Json(comparison.vocabulary)},
                {"prompt_a", prompt_to_json(comparison, comparison.prompt_a)},
                {"prompt_b", prompt_to_json(comparison, comparison.prompt_b)},
                {"prompt_text", json_text::from_bytes(comparison.prompt_text)},
                {"lanes", lanes_to_json(comparison)},
                {"taps", taps_to_json(comparison)},
                {"routes", routes_to_json(comparison.routes)},
                {"command", json_text::from_bytes(comparison.command)}};
  // The list that interned ids are places in.
  if (interned(comparison)) document["pieces"] = pieces_to_json(comparison.pieces);
  return document;
}

}  // namespace

std::string compare_document(const Comparison& comparison, const CompareDocumentOptions& options) {
  Json document = document_of(comparison);
  if (options.per_step) {
    Json steps = Json::array();
    for (const auto& step : comparison.steps) steps.push_back(step_to_json(comparison, *step));
    document["per_step"] = std::move(steps);
  }
  return json_text::dump(document, 2);
}

std::string jsonl_document(const Comparison& comparison) {
  Json head{{"kind", "comparison"}};
  head.update(document_of(comparison));
  std::string lines = json_text::dump(head) + "\n";
  for (const auto& step : comparison.steps) {
    Json line{{"kind", "step"}};
    line.update(step_to_json(comparison, *step));
    lines += json_text::dump(line) + "\n";
  }
  return lines;
}

}  // namespace driftscope
