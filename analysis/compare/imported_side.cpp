// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/imported_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace driftscope {

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool flag_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace

std::optional<ImportedSide> imported_side(std::string_view envelope_json) {
  // Most envelopes are of runs: do not parse those.
  if (envelope_json.find("\"import\"") == std::string_view::npos) return std::nullopt;
  const Json json = Json::parse(envelope_json, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find("import");
  if (found == json.end() || !found->is_object()) return std::nullopt;
  return ImportedSide{.format = text_of(*found, "format"),
                      .values = text_of(*found, "values"),
                      .listed = text_of(*found, "rows") == "listed",
                      .interned = text_of(*found, "ids") == "interned",
                      .scored = flag_of(*found, "scored"),
                      .tokens_given = text_of(*found, "tokens") == "given",
                      .lossy = flag_of(*found, "lossy"),
                      .prompt_text = text_of(*found, "prompt_text")};
}

std::string imported_prompt_difference(const ExperimentFacts& facts) {
  const auto a = imported_side(facts.envelope_a);
  const auto b = imported_side(facts.envelope_b);
  if (!a || !b || a->prompt_text.empty() || b->prompt_text.empty()) return {};
  const auto [at, other] = std::mismatch(a->prompt_text.begin(), a->prompt_text.end(),
                                         b->prompt_text.begin(), b->prompt_text.end());
  if (at == a->prompt_text.end() && other == b->prompt_text.end()) return {};
  return fmt::format("the texts of the prompts differ from byte {} on",
                     at - a->prompt_text.begin());
}

}  // namespace driftscope
