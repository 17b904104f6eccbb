// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/comparison_json.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "analysis/capture/json_text.h"

namespace driftscope {

using Json = nlohmann::ordered_json;

namespace {

Json id_or_null(const std::optional<TokenId>& token) {
  return token ? Json(token->value) : Json(nullptr);
}

}  // namespace

Json metrics_to_json(const StepMetrics& metrics) {
  Json json = Json::object();
  const auto registry = metric_registry();
  for (std::size_t i = 0; i < registry.size(); ++i) {
    json[std::string(registry[i].id)] =
        i < metrics.values.size() ? metrics.values[i] : std::numeric_limits<double>::quiet_NaN();
  }
  return json;
}

Json ranking_to_json(const std::vector<RankedToken>& ranking) {
  Json json = Json::array();
  for (const RankedToken& entry : ranking) {
    json.push_back(Json::array({entry.token.value, double{entry.logit}}));
  }
  return json;
}

Json health_to_json(const RowHealth& health) {
  return Json{{"nan_a", health.nan_a},
              {"nan_b", health.nan_b},
              {"infinite_a", health.infinite_a},
              {"infinite_b", health.infinite_b},
              {"unmatched", health.unmatched}};
}

Json flip_to_json(const RankFlip& flip) {
  return Json{{"x", flip.x.value},         {"y", flip.y.value},         {"rank_a_x", flip.rank_a_x},
              {"rank_a_y", flip.rank_a_y}, {"rank_b_x", flip.rank_b_x}, {"rank_b_y", flip.rank_b_y},
              {"gap_a", flip.gap_a},       {"gap_b", flip.gap_b}};
}

Json text_of_token(const Comparison& comparison, const std::optional<TokenId>& token) {
  if (!token) return nullptr;
  const TokenPiece* piece = comparison.piece(*token);
  return piece == nullptr ? Json(nullptr) : json_text::from_bytes(piece->bytes);
}

Json divergence_to_json(const Comparison& comparison, const std::optional<Divergence>& divergence) {
  if (!divergence) return nullptr;
  const Divergence& d = *divergence;
  // Of files no bound and no rows in flight are known.
  const bool files = comparison.imported_a || comparison.imported_b;
  const auto rows = [&](std::int64_t count) { return files ? Json(nullptr) : Json(count); };
  return Json{{"step", d.step},
              {"token_a", id_or_null(d.token_a)},
              {"token_b", id_or_null(d.token_b)},
              {"text_a", text_of_token(comparison, d.token_a)},
              {"text_b", text_of_token(comparison, d.token_b)},
              {"margin_a", d.margin_a},
              {"margin_b", d.margin_b},
              {"gap_a", d.gap_a},
              {"gap_b", d.gap_b},
              {"drift", d.drift},
              {"usual_drift", d.usual_drift},
              {"p95_pair_drift", d.p95_pair_drift},
              {"drift_excess", d.drift_excess},
              {"tie_ulps", d.tie_ulps},
              {"rounding_bound", files ? Json(nullptr) : Json(d.rounding_bound)},
              {"rows_a", rows(d.rows_a)},
              {"rows_b", rows(d.rows_b)},
              {"cause", name_of(d.cause)},
              {"reason", json_text::from_bytes(d.reason)}};
}

Json finding_to_json(const Finding& finding) {
  return Json{{"id", finding.id},
              {"severity", name_of(finding.severity)},
              {"text", json_text::from_bytes(finding.text)},
              {"evidence", json_text::embedded(finding.evidence)}};
}

Json control_to_json(const ControlResult& control) {
  if (!control.present) return nullptr;
  return Json{
      {"steps", control.steps}, {"max_abs", control.max_abs}, {"bits_equal", control.bits_equal}};
}

Json policy_to_json(const ComparePolicy& policy) {
  return Json{{"top_k", policy.top_k},
              {"near_tie_ulps", policy.near_tie_ulps},
              {"near_tie_drift_factor", policy.near_tie_drift_factor},
              {"excess_factor", policy.excess_factor},
              {"max_abs_tolerance", policy.max_abs_tolerance},
              {"kl_tolerance", policy.kl_tolerance}};
}

Json lane_to_json(const LaneView& lane) {
  return Json{{"lane", lane_name(lane.lane)},
              {"state", trace_state_name(lane.state)},
              {"stop", json_text::from_bytes(lane.stop)},
              {"tokens", json_text::from_tokens(lane.tokens)}};
}

Json route_flip_to_json(const RouteFlip& flip) {
  return Json{{"step", flip.step},     {"layer", flip.layer},       {"only_a", flip.only_a},
              {"only_b", flip.only_b}, {"margin_a", flip.margin_a}, {"margin_b", flip.margin_b}};
}

Json route_flips_to_json(const std::vector<RouteFlip>& flips) {
  Json json = Json::array();
  for (const RouteFlip& flip : flips) json.push_back(route_flip_to_json(flip));
  return json;
}

Json routes_to_json(const RouteComparison& routes) {
  if (routes.spec.layers.empty()) return nullptr;
  return Json{{"layers", routes.spec.layers},
              {"experts", routes.spec.experts},
              {"chosen", routes.spec.chosen},
              {"decisions", routes.decisions},
              {"flips", route_flips_to_json(routes.flips)},
              {"decisions_free", routes.decisions_free},
              {"flips_free", route_flips_to_json(routes.flips_free)}};
}

Json pieces_to_json(const std::vector<TokenPiece>& pieces) {
  Json json = Json::object();
  for (const TokenPiece& piece : pieces) {
    json[std::to_string(piece.id.value)] = json_text::from_bytes(piece.bytes);
  }
  return json;
}

}  // namespace driftscope
