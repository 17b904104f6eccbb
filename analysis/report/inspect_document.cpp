// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/capture/json_text.h"
#include "analysis/report/comparison_json.h"
#include "analysis/report/documents.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

Json text_of(const CaptureReader& reader, TokenId id) {
  const auto& pieces = reader.header().pieces;
  const auto index = static_cast<std::size_t>(id.value);
  if (id.value < 0 || index >= pieces.size()) return nullptr;
  return json_text::from_bytes(pieces[index]);
}

// One entry per layer with a router: experts and weights, largest weight first.
Result<Json> routes_of_lane(const CaptureReader& reader, Lane lane, std::int64_t step) {
  const auto routes = reader.routes(lane, step);
  if (!routes) return tl::unexpected<Error>(routes.error());
  const RouteSpec& spec = reader.header().routes;
  const auto chosen = static_cast<std::size_t>(spec.chosen);
  Json json = Json::array();
  for (std::size_t i = 0; i < spec.decisions(); ++i) {
    const auto first = static_cast<std::ptrdiff_t>(i * chosen);
    const auto end = first + static_cast<std::ptrdiff_t>(chosen);
    const auto& [experts, weights, margins] = *routes;
    json.push_back({{"layer", spec.layers[i]},
                    {"experts", std::vector(experts.begin() + first, experts.begin() + end)},
                    {"weights", std::vector(weights.begin() + first, weights.begin() + end)},
                    {"margin", double{margins[i]}}});
  }
  return json;
}

// One lane at one step: token, choice, time and the best logits with their texts.
Result<Json> step_of_lane(const CaptureReader& reader, Lane lane, std::int64_t step) {
  const auto tokens = reader.tokens(lane);
  if (!tokens) return tl::unexpected<Error>(tokens.error());
  const auto choices = reader.choices(lane);
  if (!choices) return tl::unexpected<Error>(choices.error());
  const auto timing = reader.timing_ns(lane);
  if (!timing) return tl::unexpected<Error>(timing.error());
  const auto best = reader.top(lane, step);
  if (!best) return tl::unexpected<Error>(best.error());
  const auto i = static_cast<std::size_t>(step);
  Json texts = Json::array();
  for (const RankedToken& entry : *best) texts.push_back(text_of(reader, entry.token));
  Json json{{"lane", lane_name(lane)},
            {"token", (*tokens)[i].value},
            {"text", text_of(reader, (*tokens)[i])},
            {"choice", (*choices)[i].value},
            {"timing_ns", (*timing)[i]},
            {"top", ranking_to_json(*best)},
            {"top_texts", std::move(texts)}};
  if (!reader.header().routes.layers.empty()) {
    auto routes = routes_of_lane(reader, lane, step);
    if (!routes) return routes;
    json["routes"] = std::move(*routes);
  }
  return json;
}

Result<Json> step_to_json(const CaptureReader& reader, std::int64_t step) {
  Json lanes = Json::array();
  std::int64_t longest = 0;
  for (const CaptureLaneInfo& info : reader.lanes()) {
    longest = std::max(longest, info.steps_complete);
    if (step < 0 || step >= info.steps_complete) continue;
    auto lane = step_of_lane(reader, info.lane.lane, step);
    if (!lane) return lane;
    lanes.push_back(std::move(*lane));
  }
  if (lanes.empty()) {
    return fail(
        ErrorKind::usage,
        fmt::format("inspect: no lane has a step {}; steps count from 0, the longest lane has {}",
                    step, longest));
  }
  return Json{{"step", step}, {"lanes", std::move(lanes)}};
}

}  // namespace

Result<std::string> inspect_document(const CaptureReader& reader,
                                     std::optional<std::int64_t> step) {
  const auto description = reader.describe();
  if (!description) return tl::unexpected<Error>(description.error());
  Json document{{"document", "driftscope.inspect"}, {"version", 1}};
  document.update(json_text::embedded(*description));
  if (step) {
    auto at_step = step_to_json(reader, *step);
    if (!at_step) return tl::unexpected<Error>(at_step.error());
    document["at_step"] = std::move(*at_step);
  }
  return json_text::dump(document, 2);
}

}  // namespace driftscope
