// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/experiment_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/capture/json_fields.h"
#include "analysis/capture/route_rows.h"
#include "engine/config/knob.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

Json taps_to_json(const std::vector<TapSpec>& taps) {
  Json json = Json::array();
  for (const TapSpec& tap : taps) {
    json.push_back({{"layer", tap.layer}, {"operation", tap.operation}, {"width", tap.width}});
  }
  return json;
}

std::optional<std::vector<TapSpec>> taps_from_json(const Json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<TapSpec> taps;
  for (const Json& entry : json) {
    JsonFields fields(entry, "taps");
    TapSpec tap;
    std::int64_t layer = 0;
    fields.integer("layer", layer);
    fields.bytes("operation", tap.operation);
    fields.integer("width", tap.width);
    if (!fields.problem().empty() || layer < -1 || layer > 1 << 20 || tap.width < 0) {
      return std::nullopt;
    }
    tap.layer = static_cast<int>(layer);
    taps.push_back(std::move(tap));
  }
  return taps;
}

std::optional<std::vector<Lane>> lanes_from_json(const Json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<Lane> lanes;
  for (const Json& entry : json) {
    const auto lane =
        entry.is_string() ? lane_from_name(entry.get_ref<const std::string&>()) : std::nullopt;
    if (!lane) return std::nullopt;
    lanes.push_back(*lane);
  }
  return lanes;
}

// A configuration that this version cannot read is an error: its knobs decide the verdict.
Result<void> take_config(JsonFields& fields, std::string_view key, std::string_view where,
                         RunConfig& target) {
  const Json* json = fields.find(key);
  if (json == nullptr) return {};
  Result<RunConfig> config = config_from_json(*json, where);
  if (!config) {
    return fail(ErrorKind::malformed, config.error().message, config.error().detail);
  }
  target = std::move(*config);
  return {};
}

bool is_b_side(Lane lane) {
  return lane == Lane::b || lane == Lane::b_forced || lane == Lane::reference_b;
}

}  // namespace

Json experiment_to_json(const ExperimentFacts& facts) {
  Json lanes = Json::array();
  for (const Lane lane : facts.lanes) lanes.push_back(lane_name(lane));
  Json json{{"command", json_text::from_bytes(facts.command)},
            {"vocabulary", facts.vocabulary},
            {"planned_steps", facts.planned_steps},
            {"lanes", std::move(lanes)},
            {"prompt_a", json_text::from_tokens(facts.prompt_a)},
            {"prompt_b", json_text::from_tokens(facts.prompt_b)},
            {"prompt_text", json_text::from_bytes(facts.prompt_text)},
            {"model_a", json_text::from_bytes(facts.model_a)},
            {"model_b", json_text::from_bytes(facts.model_b)},
            {"model_sha256_a", json_text::from_bytes(facts.model_sha256_a)},
            {"model_sha256_b", json_text::from_bytes(facts.model_sha256_b)},
            {"weight_difference", json_text::from_bytes(facts.weight_difference)},
            {"layers", facts.layers},
            {"hidden", facts.hidden},
            {"intermediate", facts.intermediate},
            {"stored_dtype", dtype_name(facts.stored_dtype)},
            {"taps", taps_to_json(facts.taps)},
            {"config_a", config_to_json(facts.config_a)},
            {"config_b", config_to_json(facts.config_b)},
            // As text: what is compared later is then the same text.
            {"envelope_a", json_text::from_bytes(facts.envelope_a)},
            {"envelope_b", json_text::from_bytes(facts.envelope_b)}};
  if (!facts.routes.layers.empty()) json["routes"] = route_spec_to_json(facts.routes);
  return json;
}

Result<ExperimentFacts> experiment_from_json(const Json& json, std::string_view where) {
  ExperimentFacts facts;
  JsonFields fields(json, where);
  fields.bytes("command", facts.command);
  fields.integer("vocabulary", facts.vocabulary);
  fields.integer("planned_steps", facts.planned_steps);
  fields.take("lanes", facts.lanes, lanes_from_json);
  fields.tokens("prompt_a", facts.prompt_a);
  fields.tokens("prompt_b", facts.prompt_b);
  fields.bytes("prompt_text", facts.prompt_text);
  fields.bytes("model_a", facts.model_a);
  fields.bytes("model_b", facts.model_b);
  fields.bytes("model_sha256_a", facts.model_sha256_a);
  fields.bytes("model_sha256_b", facts.model_sha256_b);
  fields.bytes("weight_difference", facts.weight_difference);
  // The size of the model stands in an object of its own or beside the rest.
  const Json* model = fields.find("model");
  JsonFields sizes(model == nullptr ? json : *model, std::string(where) + ": model");
  sizes.integer("layers", facts.layers);
  sizes.integer("hidden", facts.hidden);
  sizes.integer("intermediate", facts.intermediate);
  sizes.name("stored_dtype", facts.stored_dtype, dtype_from_name);
  fields.take("taps", facts.taps, taps_from_json);
  fields.take("routes", facts.routes, route_spec_from_json);
  fields.bytes("envelope_a", facts.envelope_a);
  fields.bytes("envelope_b", facts.envelope_b);
  for (const JsonFields* taken : {&fields, &sizes}) {
    if (auto read = taken->result(); !read) return tl::unexpected<Error>(read.error());
  }
  for (const auto& [key, target] :
       {std::pair{"config_a", &facts.config_a}, std::pair{"config_b", &facts.config_b}}) {
    const std::string place = std::string(where) + ": " + key;
    if (auto taken = take_config(fields, key, place, *target); !taken) {
      return tl::unexpected<Error>(taken.error());
    }
  }
  return facts;
}

NoteColumns note_columns(const RunConfig& config) {
  if (config.sampling.temperature == 0.0) return NoteColumns::rows;
  return config.sampling.method == SamplerMethod::gumbel_max ? NoteColumns::races
                                                             : NoteColumns::uniforms;
}

CaptureHeader capture_header(const ExperimentFacts& facts, std::string_view created,
                             const std::vector<Lane>& lanes) {
  Json envelope = experiment_to_json(facts);
  // These stand in the lanes' groups and in /prompt.
  for (const char* key : {"envelope_a", "envelope_b", "prompt_text", "taps", "routes"}) {
    envelope.erase(key);
  }
  CaptureHeader header{.created = std::string(created),
                       .envelope_json = json_text::dump(envelope),
                       .prompt_a = facts.prompt_a,
                       .prompt_b = facts.prompt_b,
                       .prompt_text = facts.prompt_text,
                       .vocabulary = facts.vocabulary,
                       .pieces = {},
                       .lanes = {},
                       .taps = facts.taps,
                       .routes = facts.routes};
  if (facts.piece) {
    for (std::int64_t id = 0; id < facts.vocabulary; ++id) {
      header.pieces.push_back(facts.piece(TokenId{static_cast<std::int32_t>(id)}));
    }
  }
  for (const Lane lane : lanes) {
    const bool b = is_b_side(lane);
    Json side = json_text::embedded(b ? facts.envelope_b : facts.envelope_a);
    if (!side.is_object()) side = Json::object();
    JsonFields fields(side, "envelope");
    CaptureLane entry{
        .lane = lane,
        .steps = facts.planned_steps,
        .config_json = json_text::dump(config_to_json(b ? facts.config_b : facts.config_a)),
        .envelope_json = b ? facts.envelope_b : facts.envelope_a,
        .model_sha256 = b ? facts.model_sha256_b : facts.model_sha256_a,
        .tokenizer_sha256 = {},
        .chat_template_sha256 = {},
        .notes = note_columns(b ? facts.config_b : facts.config_a)};
    fields.bytes("tokenizer_sha256", entry.tokenizer_sha256);
    fields.bytes("chat_template_sha256", entry.chat_template_sha256);
    header.lanes.push_back(std::move(entry));
  }
  return header;
}

Result<ExperimentFacts> experiment_of(const CaptureReader& reader) {
  const CaptureHeader& header = reader.header();
  ExperimentFacts facts;
  if (!header.envelope_json.empty()) {
    Result<Json> envelope = json_text::parse(header.envelope_json, "/envelope");
    if (!envelope) return tl::unexpected<Error>(envelope.error());
    Result<ExperimentFacts> read = experiment_from_json(*envelope, "/envelope");
    if (!read) return read;
    facts = std::move(*read);
  }
  facts.vocabulary = header.vocabulary;
  facts.prompt_a = header.prompt_a;
  facts.prompt_b = header.prompt_b;
  facts.prompt_text = header.prompt_text;
  facts.taps = header.taps;
  facts.routes = header.routes;
  facts.lanes.clear();
  for (const CaptureLaneInfo& info : reader.lanes()) {
    const CaptureLane& lane = info.lane;
    facts.lanes.push_back(lane.lane);
    facts.planned_steps = std::max(facts.planned_steps, lane.steps);
    if (lane.lane != Lane::a && !is_b_side(lane.lane)) continue;
    const bool b = is_b_side(lane.lane);
    (b ? facts.model_sha256_b : facts.model_sha256_a) = lane.model_sha256;
    (b ? facts.envelope_b : facts.envelope_a) = lane.envelope_json;
    if (lane.config_json.empty()) continue;
    const std::string where = "/traces/" + std::string(lane_name(lane.lane)) + ": config";
    Result<Json> json = json_text::parse(lane.config_json, where);
    if (!json) return tl::unexpected<Error>(json.error());
    Result<RunConfig> config = config_from_json(*json, where);
    if (!config) return fail(ErrorKind::malformed, config.error().message, config.error().detail);
    (b ? facts.config_b : facts.config_a) = std::move(*config);
  }
  if (!header.pieces.empty()) {
    const auto pieces = std::make_shared<const std::vector<std::string>>(header.pieces);
    facts.piece = [pieces](TokenId id) {
      const auto index = static_cast<std::size_t>(id.value);
      return id.value >= 0 && index < pieces->size() ? (*pieces)[index] : std::string();
    };
  }
  return facts;
}

}  // namespace driftscope
