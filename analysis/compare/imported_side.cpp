// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/imported_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace driftscope {

namespace {

using Json = nlohmann::ordered_json;

// What prompts are compared by, in the object "import".
constexpr const char* kIds = "prompt_ids";
constexpr const char* kText = "prompt_text";
constexpr const char* kRequest = "request_prompt";

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool flag_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

// Empty where one is no id.
std::vector<std::int64_t> ids_of(const Json& json, const char* key) {
  std::vector<std::int64_t> ids;
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) return ids;
  for (const Json& entry : *found) {
    if (!entry.is_number_integer()) return {};
    ids.push_back(entry.get<std::int64_t>());
  }
  return ids;
}

// "differ from byte 3 on", or empty: not known on both sides, or equal.
std::string text_difference(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty() || a == b) return {};
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  (void)other;
  return fmt::format("differ from byte {} on", at - a.begin());
}

std::string id_difference(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  if (a.empty() || b.empty() || a == b) return {};
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  (void)other;
  return fmt::format("the prompts' token ids differ from position {} on ({} and {} tokens)",
                     at - a.begin(), a.size(), b.size());
}

// Counts of tokens mean something where nothing says that two versions answered: another version
// may count the same prompt otherwise.
std::string count_difference(const std::string& envelope_a, const std::string& envelope_b) {
  const Json a = Json::parse(envelope_a, nullptr, false);
  const Json b = Json::parse(envelope_b, nullptr, false);
  const auto differ = [&](const char* field) {
    const std::string left = text_of(a, field);
    const std::string right = text_of(b, field);
    return !left.empty() && !right.empty() && left != right;
  };
  constexpr const char* kTokens = "usage.prompt_tokens";
  if (!differ(kTokens)) return {};
  for (const char* version :
       {"model", "system_fingerprint", "provider", "weight_version", "service_tier", "region"}) {
    if (differ(version)) return {};
  }
  return fmt::format("the servers counted {} and {} prompt tokens", text_of(a, kTokens),
                     text_of(b, kTokens));
}

// The object "import" of an envelope; null: there is none.
Json import_of(std::string_view envelope_json) {
  // Most envelopes are of runs: do not parse those.
  if (envelope_json.find("\"import\"") == std::string_view::npos) return nullptr;
  const Json json = Json::parse(envelope_json, nullptr, false);
  if (!json.is_object()) return nullptr;
  const auto found = json.find("import");
  return found == json.end() || !found->is_object() ? Json(nullptr) : *found;
}

// Narrower than the field "values" where the file says more.
std::string kind_of(const Json& import) {
  if (flag_of(import, "placeholders")) return kPlaceholders;
  if (!text_of(import, "after_sampling").empty()) return kSampled;
  if (!text_of(import, "converted").empty()) return kProbabilities;
  return text_of(import, "values");
}

}  // namespace

std::optional<ImportedSide> imported_side(std::string_view envelope_json) {
  const Json import = import_of(envelope_json);
  if (!import.is_object()) return std::nullopt;
  return ImportedSide{.format = text_of(import, "format"),
                      .values = kind_of(import),
                      .listed = text_of(import, "rows") == "listed",
                      .interned = text_of(import, "ids") == "interned",
                      .scored = flag_of(import, "scored"),
                      .tokens_given = text_of(import, "tokens") == "given",
                      .lossy = flag_of(import, "lossy"),
                      .prompt_text = text_of(import, "prompt_text")};
}

std::string imported_element(std::string_view envelope_json) {
  const Json import = import_of(envelope_json);
  return text_of(import, "element");
}

std::string describe_values(const ImportedSide& side) {
  if (side.values == kPlaceholders) return "placeholders (every value is 0)";
  if (side.values == kSampled) return "probabilities of what the samplers left";
  if (side.values == kProbabilities) return "probabilities";
  if (side.values == "log_probability") return "log probabilities";
  if (side.values == "logit") return "logits";
  return "logits or log probabilities, it does not say which";
}

std::string imported_prompt_difference(const ExperimentFacts& facts) {
  const Json a = import_of(facts.envelope_a);
  const Json b = import_of(facts.envelope_b);
  if (!a.is_object() || !b.is_object()) return {};
  if (std::string ids = id_difference(ids_of(a, kIds), ids_of(b, kIds)); !ids.empty()) return ids;
  const auto difference = [&](const char* field) {
    return text_difference(text_of(a, field), text_of(b, field));
  };
  if (const std::string texts = difference(kText); !texts.empty()) {
    return "the texts of the prompts " + texts;
  }
  if (const std::string asked = difference(kRequest); !asked.empty()) {
    return "the requests' prompts " + asked;
  }
  return count_difference(facts.envelope_a, facts.envelope_b);
}

bool prompts_known(const ExperimentFacts& facts) {
  if (!facts.prompt_a.empty() && !facts.prompt_b.empty()) return true;
  const Json a = import_of(facts.envelope_a);
  const Json b = import_of(facts.envelope_b);
  const auto both = [&](const char* field) {
    return !text_of(a, field).empty() && !text_of(b, field).empty();
  };
  return (!ids_of(a, kIds).empty() && !ids_of(b, kIds).empty()) || both(kText) || both(kRequest);
}

}  // namespace driftscope
