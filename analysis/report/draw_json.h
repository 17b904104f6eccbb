// SPDX-License-Identifier: Apache-2.0
// The random numbers of a choice as JSON, in events.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "engine/trace/trace.h"

namespace driftscope {

// {"uniform": u, "lower": l, "upper": h} or {"candidates": [[id, score, noise], …]}; null for an
// empty one.
[[nodiscard]] nlohmann::ordered_json draw_to_json(const std::optional<Draw>& draw);
// The outer optional is empty where the value is of the wrong kind.
[[nodiscard]] std::optional<std::optional<Draw>> draw_from_json(const nlohmann::ordered_json& json);

}  // namespace driftscope
