// SPDX-License-Identifier: Apache-2.0
#include "engine/config/knob.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/config/knob_codec.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int32_t kMostGraphRows = 8192;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row.back();
}

std::string nearest_knobs(std::string_view id) {
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  for (const KnobSpec& knob : knob_registry()) {
    const bool part = knob.id.find(id) != std::string_view::npos;
    ranked.emplace_back(part ? 0 : edit_distance(id, knob.id), knob.id);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  std::string text;
  for (std::size_t i = 0; i < 3 && i < ranked.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranked[i].second);
  }
  return text;
}

std::string allowed_values(const KnobSpec& knob) {
  switch (knob.kind) {
    case KnobKind::choice:
      return fmt::format("one of {}", fmt::join(knob.choices, ", "));
    case KnobKind::integer:
      return fmt::format("{}integer from {:.0f} to {:.0f}",
                         knob.power_of_two ? "a power of two, " : "an ", knob.minimum,
                         knob.maximum);
    case KnobKind::real:
      return fmt::format("a number from {} to {}", knob.minimum, knob.maximum);
    case KnobKind::boolean:
      return "true or false";
    case KnobKind::text_list:
      return "a JSON list of non-empty strings";
    case KnobKind::integer_list:
      return "a JSON list of integers";
  }
  return "";
}

bool in_range(const KnobSpec& knob, std::string_view text) {
  if (knob.kind == KnobKind::integer) {
    std::int64_t value = 0;
    if (!codec::from_text(text, value)) return false;
    const auto real = static_cast<double>(value);
    if (real < knob.minimum || real > knob.maximum) return false;
    return !knob.power_of_two || (value & (value - 1)) == 0;
  }
  if (knob.kind == KnobKind::real) {
    double value = 0.0;
    return codec::from_text(text, value) && std::isfinite(value) && value >= knob.minimum &&
           value <= knob.maximum;
  }
  if (knob.kind == KnobKind::choice) {
    return std::find(knob.choices.begin(), knob.choices.end(), text) != knob.choices.end();
  }
  return true;
}

bool honours(const std::vector<std::string_view>& values, std::string_view value) {
  return values.empty() || std::find(values.begin(), values.end(), value) != values.end();
}

Json typed_value(const KnobSpec& knob, const std::string& text) {
  switch (knob.kind) {
    case KnobKind::choice:
      return text;
    case KnobKind::boolean:
      return text == "true";
    case KnobKind::integer:
    case KnobKind::real:
    case KnobKind::text_list:
    case KnobKind::integer_list:
      return Json::parse(text);
  }
  return text;
}

}  // namespace

std::string_view name_of(KnobEffect effect) {
  switch (effect) {
    case KnobEffect::changes_bits:
      return "changes_bits";
    case KnobEffect::changes_with_batch:
      return "changes_with_batch";
    case KnobEffect::changes_choice:
      return "changes_choice";
    case KnobEffect::none_expected:
      return "none_expected";
  }
  return "?";
}

std::string_view name_of(KnobKind kind) {
  switch (kind) {
    case KnobKind::choice:
      return "choice";
    case KnobKind::integer:
      return "integer";
    case KnobKind::real:
      return "real";
    case KnobKind::boolean:
      return "boolean";
    case KnobKind::text_list:
      return "text_list";
    case KnobKind::integer_list:
      return "integer_list";
  }
  return "?";
}

const KnobSpec* find_knob(std::string_view id) {
  for (const KnobSpec& knob : knob_registry()) {
    if (knob.id == id) return &knob;
  }
  return nullptr;
}

Result<void> set_knob(RunConfig& config, std::string_view id, std::string_view text) {
  const KnobSpec* knob = find_knob(id);
  if (knob == nullptr) {
    return fail(ErrorKind::usage,
                fmt::format("unknown knob \"{}\"; nearest: {}; see: driftscope knobs", id,
                            nearest_knobs(id)));
  }
  RunConfig changed = config;
  if (!in_range(*knob, text) || !knob->set(changed, text)) {
    return fail(ErrorKind::usage, fmt::format("knob {}: \"{}\" is not a value of it; give {}", id,
                                              text, allowed_values(*knob)));
  }
  config = std::move(changed);
  return {};
}

Result<void> set_knob_assignment(RunConfig& config, std::string_view assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    return fail(ErrorKind::usage,
                fmt::format("\"{}\" is not knob=value; write for example matmul_policy=invariant",
                            assignment));
  }
  return set_knob(config, assignment.substr(0, equals), assignment.substr(equals + 1));
}

std::string get_knob(const RunConfig& config, const KnobSpec& knob) { return knob.get(config); }

Json config_to_json(const RunConfig& config) {
  Json json = Json::object();
  json["name"] = config.name;
  for (const KnobSpec& knob : knob_registry()) {
    json[std::string(knob.id)] = typed_value(knob, knob.get(config));
  }
  return json;
}

Result<RunConfig> config_from_json(const Json& json, std::string_view where) {
  if (!json.is_object()) {
    return fail(ErrorKind::usage,
                fmt::format("{}: a configuration is a JSON object of knob: value", where));
  }
  RunConfig config;
  if (const auto preset = json.find("preset"); preset != json.end()) {
    if (!preset->is_string()) {
      return fail(ErrorKind::usage, fmt::format("{}: \"preset\" must be a string", where));
    }
    const auto name = preset->get<std::string>();
    const auto found = std::find_if(presets().begin(), presets().end(),
                                    [&](const Preset& entry) { return entry.name == name; });
    if (found == presets().end()) {
      return fail(ErrorKind::usage,
                  fmt::format("{}: unknown preset \"{}\"; see: driftscope presets", where, name));
    }
    config = found->make();
  }
  for (const auto& [key, value] : json.items()) {
    if (key == "preset") continue;
    if (key == "name") {
      if (value.is_string()) config.name = value.get<std::string>();
      continue;
    }
    const auto text = value.is_string() ? value.get<std::string>() : value.dump();
    if (auto set = set_knob(config, key, text); !set) {
      return fail(set.error().kind, fmt::format("{}: {}", where, set.error().message));
    }
  }
  return config;
}

std::vector<KnobDifference> config_difference(const RunConfig& a, const RunConfig& b) {
  std::vector<KnobDifference> differences;
  for (const KnobSpec& knob : knob_registry()) {
    auto value_a = knob.get(a);
    auto value_b = knob.get(b);
    if (value_a != value_b) {
      differences.push_back({std::string(knob.id), std::move(value_a), std::move(value_b)});
    }
  }
  return differences;
}

namespace {

// A tree of f32 sums is the only all-reduce that continues a rank's own split-K.
Result<void> check_tree_alignment(const RunConfig& config) {
  if (!config.tensor_parallel_invariant) return {};
  for (const auto& [id, wanted] :
       {std::pair{"all_reduce", "tree"}, std::pair{"reduce_dtype", "f32"},
        std::pair{"accumulator", "f32"}}) {
    const std::string value = get_knob(config, *find_knob(id));
    if (value == wanted) continue;
    return fail(ErrorKind::usage,
                fmt::format("knob tensor_parallel_invariant: its tree of sums needs {0}={1}, not "
                            "{2}; give --set {0}={1}",
                            id, wanted, value));
  }
  return {};
}

}  // namespace

Result<void> check_config(const RunConfig& config) {
  const bool host = config.backend == BackendKind::host;
  const std::string_view backend = host ? "host" : "cuda";
  for (const KnobSpec& knob : knob_registry()) {
    const auto& values = host ? knob.host_values : knob.cuda_values;
    const auto value = knob.get(config);
    if (!honours(values, value)) {
      return fail(
          ErrorKind::engine,
          fmt::format("knob {}: backend {} cannot honour \"{}\"; it honours {}{}", knob.id, backend,
                      value, fmt::join(values, ", "), host ? "" : "; or give backend=host"));
    }
  }
  if (config.batch_position > config.neighbours) {
    return fail(ErrorKind::usage,
                fmt::format("knob batch_position: {} is beyond the {} neighbours; give 0 to {}",
                            config.batch_position, config.neighbours, config.neighbours));
  }
  for (const std::int32_t size : config.graph_sizes) {
    if (size >= 1 && size <= kMostGraphRows) continue;
    return fail(ErrorKind::usage,
                fmt::format("knob graph_sizes: {} is no number of rows to pad to; give 1 to {}",
                            size, kMostGraphRows));
  }
  return check_tree_alignment(config);
}

}  // namespace driftscope
