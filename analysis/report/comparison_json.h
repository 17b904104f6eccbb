// SPDX-License-Identifier: Apache-2.0
// Parts of a Comparison as JSON, shared by documents and events.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/compare/comparison.h"

namespace driftscope {

// {"metric id": value, …} in the order of the registry.
[[nodiscard]] nlohmann::ordered_json metrics_to_json(const StepMetrics& metrics);
// [[id, logit], …], best first.
[[nodiscard]] nlohmann::ordered_json ranking_to_json(const std::vector<RankedToken>& ranking);
[[nodiscard]] nlohmann::ordered_json health_to_json(const RowHealth& health);
[[nodiscard]] nlohmann::ordered_json flip_to_json(const RankFlip& flip);
// Null for an empty one. Texts come from comparison.pieces, null where unknown.
[[nodiscard]] nlohmann::ordered_json divergence_to_json(
    const Comparison& comparison, const std::optional<Divergence>& divergence);
[[nodiscard]] nlohmann::ordered_json finding_to_json(const Finding& finding);
[[nodiscard]] nlohmann::ordered_json control_to_json(const ControlResult& control);
[[nodiscard]] nlohmann::ordered_json policy_to_json(const ComparePolicy& policy);
[[nodiscard]] nlohmann::ordered_json lane_to_json(const LaneView& lane);
[[nodiscard]] nlohmann::ordered_json route_flips_to_json(const std::vector<RouteFlip>& flips);
// Null for dense models.
[[nodiscard]] nlohmann::ordered_json routes_to_json(const RouteComparison& routes);
// {"12": "text", …} or {"12": {"bytes": "c3"}, …}.
[[nodiscard]] nlohmann::ordered_json pieces_to_json(const std::vector<TokenPiece>& pieces);
[[nodiscard]] nlohmann::ordered_json text_of_token(const Comparison& comparison,
                                                   const std::optional<TokenId>& token);

}  // namespace driftscope
