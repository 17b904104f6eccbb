// SPDX-License-Identifier: Apache-2.0
// What was wrong with the prompts, as the envelopes of the sides tell it.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/compare/findings.h"

namespace driftscope {

namespace {

using Json = nlohmann::ordered_json;

// Of one side: the list under prompt_findings; entries of another shape are left out.
Json prompt_findings_of(const std::string& envelope) {
  const Json json = Json::parse(envelope, nullptr, false);
  Json list = Json::array();
  if (!json.is_object()) return list;
  const auto found = json.find("prompt_findings");
  if (found == json.end() || !found->is_array()) return list;
  for (const Json& entry : *found) {
    const bool whole = entry.is_object() && entry.contains("id") && entry["id"].is_string() &&
                       entry.contains("text") && entry["text"].is_string() &&
                       entry.contains("severity") && entry["severity"].is_string() &&
                       severity_from_name(entry["severity"].get<std::string>());
    if (whole) list.push_back(entry);
  }
  return list;
}

void tell(const Json& entry, std::string_view sides, std::vector<Finding>& findings) {
  Json evidence = entry.contains("evidence") && entry["evidence"].is_object() ? entry["evidence"]
                                                                              : Json::object();
  evidence["sides"] = sides;
  findings.push_back(make_finding(
      entry["id"].get<std::string>(), *severity_from_name(entry["severity"].get<std::string>()),
      fmt::format("{}: {}", sides, entry["text"].get<std::string>()), evidence));
}

}  // namespace

void find_prompt_findings(const RunContext& context, std::vector<Finding>& findings) {
  const Json a = prompt_findings_of(context.facts.envelope_a);
  Json b = prompt_findings_of(context.facts.envelope_b);
  for (const Json& entry : a) {
    const auto same = std::find(b.begin(), b.end(), entry);
    const bool both = same != b.end();
    if (both) b.erase(same);
    tell(entry, both ? "A and B" : "A", findings);
  }
  for (const Json& entry : b) tell(entry, "B", findings);
}

}  // namespace driftscope
