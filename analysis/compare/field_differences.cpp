// SPDX-License-Identifier: Apache-2.0
// Knobs and fields of the envelopes that differ between the sides.
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/compare/conclusion.h"
#include "analysis/compare/imported_side.h"
#include "engine/config/knob.h"

namespace driftscope {

namespace {

using Json = nlohmann::ordered_json;

// Names of one run, its times, and what repeats knobs or other fields.
// (Findings of the prompts are told as findings.)
constexpr std::array<std::string_view, 11> kIgnoredFields{
    "request_id",    "created",         "command",           "timing",
    "timing_ns",     "fingerprint",     "prompt_findings",   "import.file",
    "import.sha256", "import.findings", "import.prompt_text"};
constexpr std::array<std::string_view, 5> kRepeatedKnobs{
    "runtime.knobs", "runtime.backend", "runtime.attention_backend", "runtime.kv_cache_dtype",
    "runtime.threads"};
// One field however many prompts it holds; it follows from the knob where that differs.
constexpr std::string_view kNeighbourPrompts = "neighbour_prompt_ids";
constexpr int kDeepest = 32;

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_ignored(const std::string& path) {
  return std::find(kIgnoredFields.begin(), kIgnoredFields.end(), path) != kIgnoredFields.end() ||
         std::find(kRepeatedKnobs.begin(), kRepeatedKnobs.end(), path) != kRepeatedKnobs.end();
}

// Leaves by dotted path. Lists of single values stay whole: a prompt is one field, not a thousand.
void flatten(const Json& value, const std::string& path, int depth,
             std::map<std::string, std::string>& leaves) {
  if (is_ignored(path)) return;
  const bool holds_parts =
      value.is_object() ||
      (value.is_array() && std::any_of(value.begin(), value.end(),
                                       [](const Json& entry) { return entry.is_structured(); }));
  if (!holds_parts || depth >= kDeepest || path == kNeighbourPrompts) {
    leaves[path] = text_of(value);
    return;
  }
  std::size_t index = 0;
  for (const auto& [key, entry] : value.items()) {
    const std::string name = value.is_array() ? std::to_string(index++) : key;
    flatten(entry, path.empty() ? name : path + "." + name, depth + 1, leaves);
  }
}

std::map<std::string, std::string> leaves_of(const std::string& text) {
  std::map<std::string, std::string> leaves;
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_object()) flatten(json, "", 0, leaves);
  return leaves;
}

std::string value_at(const std::map<std::string, std::string>& leaves, const std::string& path) {
  const auto found = leaves.find(path);
  return found == leaves.end() ? "(absent)" : found->second;
}

// "sampling.seed" repeats the knob "seed".
bool repeats_knob(const std::string& path, const std::set<std::string>& knobs) {
  if (path == kNeighbourPrompts) return knobs.contains("neighbours");
  constexpr std::string_view prefix = "sampling.";
  if (!path.starts_with(prefix)) return false;
  return knobs.contains(path.substr(prefix.size()));
}

}  // namespace

std::vector<FieldDifference> find_field_differences(const ExperimentFacts& facts) {
  std::vector<FieldDifference> differences;
  std::set<std::string> knobs;
  const bool known = !imported_side(facts.envelope_a) && !imported_side(facts.envelope_b);
  for (const KnobDifference& knob :
       known ? config_difference(facts.config_a, facts.config_b) : std::vector<KnobDifference>()) {
    differences.push_back({"knob." + knob.id, knob.a, knob.b});
    knobs.insert(knob.id);
  }
  const auto a = leaves_of(facts.envelope_a);
  const auto b = leaves_of(facts.envelope_b);
  if (a.empty() || b.empty()) return differences;  // unknown, not different
  std::set<std::string> paths;
  for (const auto& [path, value] : a) paths.insert(path);
  for (const auto& [path, value] : b) paths.insert(path);
  for (const std::string& path : paths) {
    std::string value_a = value_at(a, path);
    std::string value_b = value_at(b, path);
    if (value_a == value_b || repeats_knob(path, knobs)) continue;
    differences.push_back({path, std::move(value_a), std::move(value_b)});
  }
  return differences;
}

}  // namespace driftscope
