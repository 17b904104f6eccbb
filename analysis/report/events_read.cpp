// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/capture/experiment_json.h"
#include "analysis/capture/json_fields.h"
#include "analysis/report/draw_json.h"
#include "analysis/report/events.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

std::optional<TraceState> state_from_name(std::string_view name) {
  for (const TraceState state :
       {TraceState::complete, TraceState::partial, TraceState::interrupted}) {
    if (trace_state_name(state) == name) return state;
  }
  return std::nullopt;
}

ErrorKind kind_of_exit_code(std::int64_t code) {
  for (const ErrorKind kind : {ErrorKind::usage, ErrorKind::inconclusive, ErrorKind::malformed,
                               ErrorKind::engine, ErrorKind::output, ErrorKind::interrupted}) {
    if (exit_code(kind) == code) return kind;
  }
  return ErrorKind::engine;
}

std::optional<std::vector<RankedToken>> ranking_from_json(const Json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<RankedToken> ranking;
  for (const Json& entry : json) {
    if (!entry.is_array() || entry.size() != 2) return std::nullopt;
    const auto token = JsonFields::to_token(entry[0]);
    const auto logit = json_text::to_number(entry[1]);
    if (!token || !logit) return std::nullopt;
    ranking.push_back({.token = *token, .logit = static_cast<float>(*logit)});
  }
  return ranking;
}

std::optional<std::vector<double>> metrics_from_json(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  std::vector<double> values(metric_registry().size(), kUndefined);
  for (const auto& [id, value] : json.items()) {
    const auto number = json_text::to_number(value);
    if (!number) return std::nullopt;
    // A metric of a newer version is left out.
    if (const auto index = metric_index(id)) values[*index] = *number;
  }
  return values;
}

std::optional<RankFlip> flip_from_json(const Json& json) {
  RankFlip flip;
  JsonFields fields(json, "flip");
  fields.token("x", flip.x);
  fields.token("y", flip.y);
  const auto rank = [&fields](std::string_view key, std::int32_t& target) {
    std::int64_t value = target;
    fields.integer(key, value);
    if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) fields.refuse(key);
    target = static_cast<std::int32_t>(value);
  };
  rank("rank_a_x", flip.rank_a_x);
  rank("rank_a_y", flip.rank_a_y);
  rank("rank_b_x", flip.rank_b_x);
  rank("rank_b_y", flip.rank_b_y);
  fields.number("gap_a", flip.gap_a);
  fields.number("gap_b", flip.gap_b);
  if (!fields.problem().empty()) return std::nullopt;
  return flip;
}

std::optional<std::vector<RankFlip>> flips_from_json(const Json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<RankFlip> flips;
  for (const Json& entry : json) {
    const auto flip = flip_from_json(entry);
    if (!flip) return std::nullopt;
    flips.push_back(*flip);
  }
  return flips;
}

std::optional<RowHealth> health_from_json(const Json& json) {
  RowHealth health;
  JsonFields fields(json, "health");
  fields.integer("nan_a", health.nan_a);
  fields.integer("nan_b", health.nan_b);
  fields.integer("infinite_a", health.infinite_a);
  fields.integer("infinite_b", health.infinite_b);
  fields.integer("unmatched", health.unmatched);
  if (!fields.problem().empty()) return std::nullopt;
  return health;
}

std::optional<std::vector<StepTapValues>> taps_from_json(const Json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<StepTapValues> taps;
  for (const Json& entry : json) {
    std::array<double, 4> numbers{};
    if (!entry.is_array() || entry.size() != numbers.size()) return std::nullopt;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto number = json_text::to_number(entry[i]);
      if (!number) return std::nullopt;
      numbers[i] = *number;
    }
    taps.push_back({.max_abs = numbers[0],
                    .rms = numbers[1],
                    .relative_rms = numbers[2],
                    .max_ulp = numbers[3]});
  }
  return taps;
}

std::optional<std::vector<std::int32_t>> experts_from_json(const Json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<std::int32_t> experts;
  for (const Json& entry : json) {
    const auto id = JsonFields::to_token(entry);  // any number that an int32 holds
    if (!id || id->value < 0) return std::nullopt;
    experts.push_back(id->value);
  }
  return experts;
}

std::optional<std::vector<RouteFlip>> route_flips_from_json(const Json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<RouteFlip> flips;
  for (const Json& entry : json) {
    RouteFlip flip;
    std::int64_t layer = 0;
    JsonFields fields(entry, "route_flips");
    fields.integer("step", flip.step);
    fields.integer("layer", layer);
    fields.take("only_a", flip.only_a, experts_from_json);
    fields.take("only_b", flip.only_b, experts_from_json);
    fields.number("margin_a", flip.margin_a);
    fields.number("margin_b", flip.margin_b);
    if (layer < 0 || layer > std::numeric_limits<std::int32_t>::max()) fields.refuse("layer");
    if (!fields.problem().empty()) return std::nullopt;
    flip.layer = static_cast<std::int32_t>(layer);
    flips.push_back(std::move(flip));
  }
  return flips;
}

std::optional<RouteComparison> routes_from_json(const Json& json) {
  RouteComparison routes;
  JsonFields fields(json, "routes");
  fields.integer("decisions", routes.decisions);
  fields.take("flips", routes.flips, route_flips_from_json);
  fields.integer("decisions_free", routes.decisions_free);
  fields.take("flips_free", routes.flips_free, route_flips_from_json);
  if (!fields.problem().empty()) return std::nullopt;
  return routes;
}

using Pieces = std::map<TokenId, std::string>;

std::optional<Pieces> pieces_from_json(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  Pieces pieces;
  for (const auto& [key, value] : json.items()) {
    std::int32_t id = 0;
    const char* end = key.data() + key.size();
    const auto parsed = std::from_chars(key.data(), end, id);
    const auto bytes = json_text::to_bytes(value);
    if (parsed.ec != std::errc() || parsed.ptr != end || !bytes) return std::nullopt;
    pieces.emplace(TokenId{id}, *bytes);
  }
  return pieces;
}

std::optional<std::vector<LaneView>> lanes_from_json(const Json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<LaneView> lanes;
  for (const Json& entry : json) {
    LaneView view;
    JsonFields fields(entry, "lanes");
    fields.name("lane", view.lane, lane_from_name);
    fields.name("state", view.state, state_from_name);
    fields.bytes("stop", view.stop);
    fields.tokens("tokens", view.tokens);
    if (!fields.problem().empty()) return std::nullopt;
    lanes.push_back(std::move(view));
  }
  return lanes;
}

std::optional<ControlResult> control_from_json(const Json& json) {
  ControlResult control{.present = true, .steps = 0, .max_abs = 0.0, .bits_equal = false};
  JsonFields fields(json, "control");
  fields.integer("steps", control.steps);
  fields.number("max_abs", control.max_abs);
  fields.boolean("bits_equal", control.bits_equal);
  if (!fields.problem().empty()) return std::nullopt;
  return control;
}

std::optional<ComparePolicy> policy_from_json(const Json& json) {
  ComparePolicy policy;
  JsonFields fields(json, "policy");
  fields.integer("top_k", policy.top_k);
  fields.number("near_tie_ulps", policy.near_tie_ulps);
  fields.number("near_tie_drift_factor", policy.near_tie_drift_factor);
  fields.number("excess_factor", policy.excess_factor);
  fields.number("max_abs_tolerance", policy.max_abs_tolerance);
  fields.number("kl_tolerance", policy.kl_tolerance);
  if (!fields.problem().empty()) return std::nullopt;
  return policy;
}

}  // namespace

struct EventReader::State {
  std::optional<ExperimentFacts> facts;
  Comparison comparison;  // state, policy, steps, lanes, taps and control: what events tell
  Pieces pieces;
  bool done = false;
  std::int64_t lines = 0;
  mutable std::int64_t generation = 0;

  [[nodiscard]] std::string where() const { return fmt::format("event line {}", lines); }
  Result<Event> started(const Json& json);
  Result<Event> step(const Json& json);
  Result<Event> finished(const Json& json);
  Result<Event> progress(const Json& json) const;
  Result<Event> error(const Json& json) const;
  void put_step(std::shared_ptr<const StepComparison> step, const std::vector<StepTapValues>& taps);
  void add_routes(std::vector<RouteFlip> flips);
  [[nodiscard]] std::vector<LaneView> lanes_so_far() const;
};

Result<EventReader::Event> EventReader::State::started(const Json& json) {
  if (facts) return fail(ErrorKind::malformed, where() + ": a second \"started\"");
  JsonFields fields(json, where());
  std::int64_t version = 0;
  fields.integer("version", version);
  fields.take("policy", comparison.policy, policy_from_json);
  if (version > kEventVersion) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: event version {}; this program reads up to {}; update driftscope",
                            where(), version, kEventVersion));
  }
  if (auto taken = fields.result(); !taken) return tl::unexpected<Error>(taken.error());
  auto read = experiment_from_json(json, where());
  if (!read) return tl::unexpected<Error>(read.error());
  facts = std::move(*read);
  for (const TapSpec& spec : facts->taps) comparison.taps.emplace_back().spec = spec;
  comparison.routes.spec = facts->routes;
  return Event{};
}

Result<EventReader::Event> EventReader::State::step(const Json& json) {
  auto entry = std::make_shared<StepComparison>();
  std::vector<StepTapValues> taps;
  std::vector<RouteFlip> route_flips;
  Pieces seen;
  JsonFields fields(json, where());
  fields.integer("step", entry->step);
  fields.token("token_a", entry->token_a);
  fields.token("choice_b", entry->choice_b);
  fields.take("token_b", entry->token_b, [](const Json& value) {
    const auto token = JsonFields::to_token(value);
    return token ? std::optional(token) : std::nullopt;
  });
  fields.boolean("flipped", entry->flipped);
  fields.take("metrics", entry->metrics.values, metrics_from_json);
  fields.token("max_abs_token", entry->metrics.max_abs_token);
  fields.take("top_a", entry->metrics.top_a, ranking_from_json);
  fields.take("top_b", entry->metrics.top_b, ranking_from_json);
  fields.take("flips", entry->flips, flips_from_json);
  fields.integer("rows_a", entry->rows_a);
  fields.integer("rows_b", entry->rows_b);
  fields.take("draw_a", entry->draw_a, draw_from_json);
  fields.take("draw_b", entry->draw_b, draw_from_json);
  fields.take("health", entry->metrics.health, health_from_json);
  fields.take("taps", taps, taps_from_json);
  fields.take("route_flips", route_flips, route_flips_from_json);
  fields.take("pieces", seen, pieces_from_json);
  const auto next = static_cast<std::int64_t>(comparison.steps.size());
  if (entry->step < 0 || entry->step > next) fields.refuse("step");
  if (entry->metrics.values.empty()) fields.refuse("metrics");
  if (facts && taps.size() != facts->taps.size()) fields.refuse("taps");
  if (auto taken = fields.result(); !taken) return tl::unexpected<Error>(taken.error());
  pieces.merge(seen);
  if (entry->step == next) add_routes(std::move(route_flips));
  put_step(std::move(entry), taps);
  return Event{};
}

void EventReader::State::add_routes(std::vector<RouteFlip> flips) {
  RouteComparison& routes = comparison.routes;
  routes.decisions += static_cast<std::int64_t>(routes.spec.decisions());
  routes.flips.insert(routes.flips.end(), std::make_move_iterator(flips.begin()),
                      std::make_move_iterator(flips.end()));
}

// A step that came before is replaced: its free token may have become known.
void EventReader::State::put_step(std::shared_ptr<const StepComparison> step,
                                  const std::vector<StepTapValues>& taps) {
  const auto index = static_cast<std::size_t>(step->step);
  if (index == comparison.steps.size()) {
    comparison.steps.push_back(std::move(step));
    for (TapDrift& tap : comparison.taps) {
      tap.max_abs.push_back(kUndefined);
      tap.rms.push_back(kUndefined);
      tap.relative_rms.push_back(kUndefined);
      tap.max_ulp.push_back(kUndefined);
    }
  } else {
    comparison.steps[index] = std::move(step);
  }
  for (std::size_t i = 0; i < taps.size(); ++i) {
    comparison.taps[i].max_abs[index] = taps[i].max_abs;
    comparison.taps[i].rms[index] = taps[i].rms;
    comparison.taps[i].relative_rms[index] = taps[i].relative_rms;
    comparison.taps[i].max_ulp[index] = taps[i].max_ulp;
  }
}

Result<EventReader::Event> EventReader::State::finished(const Json& json) {
  Done result;
  std::int64_t code = 0;
  RouteComparison routes = comparison.routes;
  Pieces seen;
  JsonFields fields(json, where());
  fields.name("state", comparison.state, state_from_name);
  fields.bytes("capture", result.capture_path);
  fields.integer("exit_code", code);
  fields.take("lanes", comparison.lanes, lanes_from_json);
  fields.take("control", comparison.control, control_from_json);
  fields.take("routes", routes, routes_from_json);
  fields.take("pieces", seen, pieces_from_json);
  if (code < 0 || code > 255) fields.refuse("exit_code");
  if (auto taken = fields.result(); !taken) return tl::unexpected<Error>(taken.error());
  result.exit_code = static_cast<int>(code);
  pieces.merge(seen);
  routes.spec = comparison.routes.spec;
  comparison.routes = std::move(routes);
  done = true;
  for (const LaneView& lane : comparison.lanes) {
    if (lane.lane != Lane::b) continue;
    for (std::size_t i = 0; i < std::min(comparison.steps.size(), lane.tokens.size()); ++i) {
      if (comparison.steps[i]->token_b == lane.tokens[i]) continue;
      auto updated = std::make_shared<StepComparison>(*comparison.steps[i]);
      updated->token_b = lane.tokens[i];
      comparison.steps[i] = std::move(updated);
    }
  }
  return Event{result};
}

Result<EventReader::Event> EventReader::State::progress(const Json& json) const {
  Progress progress;
  JsonFields fields(json, where());
  fields.bytes("phase", progress.phase);
  fields.integer("done", progress.done);
  fields.integer("total", progress.total);
  if (auto taken = fields.result(); !taken) return tl::unexpected<Error>(taken.error());
  return Event{progress};
}

Result<EventReader::Event> EventReader::State::error(const Json& json) const {
  Error told;
  std::int64_t code = exit_code(ErrorKind::engine);
  JsonFields fields(json, where());
  fields.integer("exit_code", code);
  fields.bytes("message", told.message);
  fields.bytes("detail", told.detail);
  if (auto taken = fields.result(); !taken) return tl::unexpected<Error>(taken.error());
  told.kind = kind_of_exit_code(code);
  return Event{told};
}

// Before `done` the lanes follow from the steps.
std::vector<LaneView> EventReader::State::lanes_so_far() const {
  if (done) return comparison.lanes;
  LaneView a{.lane = Lane::a, .state = TraceState::partial, .tokens = {}, .stop = {}};
  LaneView b{.lane = Lane::b, .state = TraceState::partial, .tokens = {}, .stop = {}};
  for (const auto& step : comparison.steps) {
    a.tokens.push_back(step->token_a);
    if (step->token_b && b.tokens.size() + 1 == a.tokens.size()) b.tokens.push_back(*step->token_b);
  }
  LaneView forced = a;
  forced.lane = Lane::b_forced;
  return {std::move(a), std::move(b), std::move(forced)};
}

EventReader::EventReader() : m_state(std::make_unique<State>()) {}
EventReader::~EventReader() = default;

Result<EventReader::Event> EventReader::push(std::string_view line) {
  State& state = *m_state;
  ++state.lines;
  auto json = json_text::parse(line, state.where());
  if (!json) return tl::unexpected<Error>(json.error());
  JsonFields fields(*json, state.where());
  std::string event;
  fields.bytes("event", event);
  if (auto taken = fields.result(); !taken) return tl::unexpected<Error>(taken.error());
  if (event == "started") return state.started(*json);
  if (event == "progress") return state.progress(*json);
  if (event == "error") return state.error(*json);
  if (event == "finding") return Event{};  // snapshot() draws the conclusions itself
  if (event != "step" && event != "done") {
    return fail(ErrorKind::malformed,
                fmt::format("{}: \"{}\" is no event of version {}", state.where(),
                            json_text::dump(Json(event.substr(0, 40))), kEventVersion));
  }
  if (!state.facts) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: \"{}\" before \"started\"", state.where(), event));
  }
  return event == "step" ? state.step(*json) : state.finished(*json);
}

ComparisonPointer EventReader::snapshot() const {
  const State& state = *m_state;
  if (!state.facts) return nullptr;
  auto comparison = std::make_shared<Comparison>(state.comparison);
  comparison->generation = ++state.generation;
  comparison->lanes = state.lanes_so_far();
  for (const auto& [id, bytes] : state.pieces)
    comparison->pieces.push_back({.id = id, .bytes = bytes});
  conclude(*comparison, *state.facts);
  return comparison;
}

}  // namespace driftscope
