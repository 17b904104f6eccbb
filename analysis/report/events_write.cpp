// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/capture/experiment_json.h"
#include "analysis/capture/json_text.h"
#include "analysis/report/comparison_json.h"
#include "analysis/report/draw_json.h"
#include "analysis/report/events.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

using Pieces = std::map<TokenId, std::string>;

Json to_json(const Pieces& pieces) {
  std::vector<TokenPiece> sorted;
  for (const auto& [id, bytes] : pieces) sorted.push_back({.id = id, .bytes = bytes});
  return pieces_to_json(sorted);
}

Json flips_to_json(const std::vector<RankFlip>& flips) {
  Json json = Json::array();
  for (const RankFlip& flip : flips) json.push_back(flip_to_json(flip));
  return json;
}

Json taps_to_json(const std::vector<StepTapValues>& taps) {
  Json json = Json::array();
  for (const StepTapValues& tap : taps) {
    json.push_back(Json::array({tap.max_abs, tap.rms, tap.relative_rms, tap.max_ulp}));
  }
  return json;
}

Pieces pieces_of_step(const StepComparison& step,
                      const std::function<std::string(TokenId)>& piece) {
  Pieces pieces;
  if (!piece) return pieces;
  const auto note = [&](TokenId id) {
    if (!pieces.contains(id)) pieces.emplace(id, piece(id));
  };
  note(step.token_a);
  note(step.choice_b);
  if (step.token_b) note(*step.token_b);
  for (const RankedToken& entry : step.metrics.top_a) note(entry.token);
  for (const RankedToken& entry : step.metrics.top_b) note(entry.token);
  return pieces;
}

Pieces pieces_of_lanes(const Comparison& comparison) {
  Pieces pieces;
  for (const LaneView& lane : comparison.lanes) {
    for (const TokenId id : lane.tokens) {
      if (const TokenPiece* piece = comparison.piece(id)) pieces.emplace(id, piece->bytes);
    }
  }
  return pieces;
}

}  // namespace

std::string started_event(const ExperimentFacts& facts, const ComparePolicy& policy) {
  Json json{{"event", "started"}, {"version", kEventVersion}};
  json.update(experiment_to_json(facts));
  json["policy"] = policy_to_json(policy);
  return json_text::dump(json);
}

std::string progress_event(std::string_view phase, std::int64_t done, std::int64_t total) {
  return json_text::dump(
      Json{{"event", "progress"}, {"phase", std::string(phase)}, {"done", done}, {"total", total}});
}

std::string step_event(const StepComparison& step, const std::vector<StepTapValues>& tap_values,
                       const std::function<std::string(TokenId)>& piece,
                       const std::vector<RouteFlip>& route_flips) {
  Json json{{"event", "step"},
            {"step", step.step},
            {"token_a", step.token_a.value},
            {"choice_b", step.choice_b.value},
            {"token_b", step.token_b ? Json(step.token_b->value) : Json(nullptr)},
            {"flipped", step.flipped},
            {"metrics", metrics_to_json(step.metrics)},
            {"max_abs_token", step.metrics.max_abs_token.value},
            {"top_a", ranking_to_json(step.metrics.top_a)},
            {"top_b", ranking_to_json(step.metrics.top_b)},
            {"flips", flips_to_json(step.flips)}};
  if (step.rows_a > 0) json["rows_a"] = step.rows_a;
  if (step.rows_b > 0) json["rows_b"] = step.rows_b;
  if (step.draw_a) json["draw_a"] = draw_to_json(step.draw_a);
  if (step.draw_b) json["draw_b"] = draw_to_json(step.draw_b);
  if (step.metrics.health != RowHealth{}) json["health"] = health_to_json(step.metrics.health);
  if (!tap_values.empty()) json["taps"] = taps_to_json(tap_values);
  if (!route_flips.empty()) json["route_flips"] = route_flips_to_json(route_flips);
  if (piece) json["pieces"] = to_json(pieces_of_step(step, piece));
  return json_text::dump(json);
}

std::string finding_event(const Finding& finding) {
  Json json{{"event", "finding"}};
  json.update(finding_to_json(finding));
  return json_text::dump(json);
}

std::string done_event(const Comparison& comparison, std::string_view capture_path, int exit_code) {
  Json lanes = Json::array();
  for (const LaneView& lane : comparison.lanes) lanes.push_back(lane_to_json(lane));
  Json json{{"event", "done"},
            {"state", trace_state_name(comparison.state)},
            {"capture", json_text::from_bytes(capture_path)},
            {"exit_code", exit_code},
            {"verdict", name_of(comparison.verdict)},
            {"verdict_text", json_text::from_bytes(comparison.verdict_text)},
            {"tokens_equal", comparison.tokens_equal},
            {"first_divergence", divergence_to_json(comparison, comparison.first_divergence)},
            {"first_flip", divergence_to_json(comparison, comparison.first_flip)},
            {"control", control_to_json(comparison.control)},
            {"lanes", std::move(lanes)},
            {"pieces", to_json(pieces_of_lanes(comparison))}};
  if (!comparison.routes.spec.layers.empty()) json["routes"] = routes_to_json(comparison.routes);
  return json_text::dump(json);
}

std::string error_event(const Error& error) {
  return json_text::dump(Json{{"event", "error"},
                              {"exit_code", exit_code(error.kind)},
                              {"message", json_text::from_bytes(error.message)},
                              {"detail", json_text::from_bytes(error.detail)}});
}

}  // namespace driftscope
