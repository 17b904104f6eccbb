// SPDX-License-Identifier: Apache-2.0
// Which server an OpenAI-like reply is from, by the fields that only it sends.
#include <algorithm>
#include <array>
#include <cctype>

#include "analysis/import/formats.h"

namespace driftscope {
namespace {

bool has_in_choice(JsonValue body, std::string_view key) { return body["choices"].at(0).has(key); }

bool is_build_number(std::string_view fingerprint) {  // "b6500-0123abcd"
  return fingerprint.size() > 3 && fingerprint[0] == 'b' &&
         std::isdigit(static_cast<unsigned char>(fingerprint[1])) != 0 &&
         fingerprint.find('-') != std::string_view::npos;
}

bool is_version_label(std::string_view fingerprint) {  // "3.3.5-native"
  const std::size_t dash = fingerprint.find('-');
  if (dash == std::string_view::npos) return false;
  const std::string_view version = fingerprint.substr(0, dash);
  return std::count(version.begin(), version.end(), '.') == 2 &&
         version.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_dialect_azure(JsonValue body) {
  return body["prompt_filter_results"].is_array() ||
         has_in_choice(body, "content_filter_results") ||
         body["object"].raw().starts_with("extensions.");
}
bool is_dialect_groq(JsonValue body) { return body.has("x_groq"); }
bool is_dialect_openrouter(JsonValue body) {
  return body.has("openrouter_metadata") || has_in_choice(body, "native_finish_reason") ||
         (body["provider"].is_text() && body["id"].raw().starts_with("gen-"));
}
bool is_dialect_fireworks(JsonValue body) {
  return body["model"].raw().starts_with("accounts/fireworks/") || body.has("perf_metrics") ||
         has_in_choice(body, "raw_output") ||
         body["choices"].at(0)["logprobs"]["content"].at(0).has("sampling_logprob");
}
bool is_dialect_together(JsonValue body) {
  return body["object"].raw() == "text.completion" || body["prompt"].is_array() ||
         body["choices"].at(0)["delta"].has("token_id") || body["warnings"].is_array();
}
bool is_dialect_sglang(JsonValue body) {
  return body["metadata"].has("weight_version") || has_in_choice(body, "matched_stop") ||
         body.has("sglext");
}
bool is_dialect_vllm(JsonValue body) {
  return body.has("prompt_token_ids") || body.has("prompt_logprobs") ||
         body.has("kv_transfer_params") || has_in_choice(body, "stop_reason");
}
bool is_dialect_llama(JsonValue body) {
  return body.has("timings") || is_build_number(body["system_fingerprint"].raw());
}
bool is_dialect_ollama(JsonValue body) { return body["system_fingerprint"].raw() == "fp_ollama"; }
bool is_dialect_tgi(JsonValue body) { return is_version_label(body["system_fingerprint"].raw()); }
bool is_dialect_deepseek(JsonValue body) {
  return body["usage"].has("prompt_cache_hit_tokens") ||
         body["model"].raw().starts_with("deepseek-");
}
bool is_dialect_mistral(JsonValue body) {
  const JsonValue message = body["choices"].at(0)["message"];
  constexpr std::array kNames{"mistral-",  "magistral-", "ministral-", "codestral-",
                              "devstral-", "pixtral-",   "open-mi"};
  const std::string_view model = body["model"].raw();
  return message.has("prefix") || std::any_of(kNames.begin(), kNames.end(), [&](const char* name) {
           return model.starts_with(name);
         });
}

struct DialectRow {
  std::string_view name;
  bool (*matches)(JsonValue body);
};
constexpr std::array<DialectRow, 12> kDialects{{{"azure", &is_dialect_azure},
                                                {"groq", &is_dialect_groq},
                                                {"openrouter", &is_dialect_openrouter},
                                                {"fireworks", &is_dialect_fireworks},
                                                {"ollama", &is_dialect_ollama},
                                                {"llama.cpp", &is_dialect_llama},
                                                {"sglang", &is_dialect_sglang},
                                                {"together", &is_dialect_together},
                                                {"vllm", &is_dialect_vllm},
                                                {"tgi", &is_dialect_tgi},
                                                {"deepseek", &is_dialect_deepseek},
                                                {"mistral", &is_dialect_mistral}}};

}  // namespace

std::string_view openai_dialect(JsonValue body) {
  for (const DialectRow& row : kDialects) {
    if (row.matches(body)) return row.name;
  }
  return "openai";
}

}  // namespace driftscope
