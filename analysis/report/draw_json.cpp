// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/draw_json.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "analysis/capture/json_fields.h"
#include "analysis/capture/json_text.h"

namespace driftscope {

using Json = nlohmann::ordered_json;

namespace {

std::optional<std::vector<DrawCandidate>> candidates_from_json(const Json& json) {
  if (!json.is_array() || json.size() > kDrawCandidates) return std::nullopt;
  std::vector<DrawCandidate> candidates;
  for (const Json& entry : json) {
    if (!entry.is_array() || entry.size() != 3) return std::nullopt;
    const auto id = JsonFields::to_token(entry[0]);
    const auto score = json_text::to_number(entry[1]);
    const auto noise = json_text::to_number(entry[2]);
    if (!id || !score || !noise) return std::nullopt;
    candidates.push_back({.id = *id, .score = *score, .noise = *noise});
  }
  return candidates;
}

}  // namespace

Json draw_to_json(const std::optional<Draw>& draw) {
  if (!draw) return nullptr;
  if (draw->candidates.empty()) {
    return Json{{"uniform", draw->uniform}, {"lower", draw->lower}, {"upper", draw->upper}};
  }
  Json candidates = Json::array();
  for (const DrawCandidate& entry : draw->candidates) {
    candidates.push_back(Json::array({entry.id.value, entry.score, entry.noise}));
  }
  return Json{{"candidates", std::move(candidates)}};
}

std::optional<std::optional<Draw>> draw_from_json(const Json& json) {
  Draw draw;
  JsonFields fields(json, "draw");
  fields.number("uniform", draw.uniform);
  fields.number("lower", draw.lower);
  fields.number("upper", draw.upper);
  fields.take("candidates", draw.candidates, candidates_from_json);
  if (!fields.problem().empty()) return std::nullopt;
  return std::optional<Draw>(std::move(draw));
}

}  // namespace driftscope
