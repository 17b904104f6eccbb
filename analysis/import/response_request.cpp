// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/response_request.h"

#include <array>

#include "analysis/import/formats.h"

namespace driftscope {
namespace {

std::optional<double> number_in(JsonValue object, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (object[key].is_number()) return object[key].number();
  }
  return std::nullopt;
}

std::optional<std::int64_t> asked_alternatives(JsonValue request) {
  for (const std::string_view key :
       {"top_logprobs", "n_probs", "top_logprobs_num", "top_n_tokens", "logprobs"}) {
    if (const auto count = request[key].integer(); count && *count > 0) return count;
  }
  return std::nullopt;
}

std::optional<std::int64_t> asked_most_tokens(JsonValue request) {
  for (const std::string_view key :
       {"max_completion_tokens", "max_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens",
        "max_new_tokens", "n_predict", "num_predict"}) {
    if (const auto count = request[key].integer()) return count;
  }
  return std::nullopt;
}

}  // namespace

void note_request(JsonValue request, Response& response) {
  JsonDocument document;
  std::string text;
  if (request.is_text()) {
    text = request.text();
    if (!document.parse(text)) return;
    request = document.root();
  }
  // Of a recorded exchange: the body is inside.
  for (const std::string_view key : {"body", "json", "json_data", "kwargs", "params"}) {
    if (const JsonValue inner = request[key]; inner.is_object() || inner.is_text()) {
      return note_request(inner, response);
    }
  }
  if (!request.is_object()) return;
  ResponseRequest& asked = response.request;
  set_if_given(asked.model, request["model"]);
  JsonValue settings = request;
  for (const std::string_view key : {"parameters", "options", "generationConfig",
                                     "generation_config", "inferenceConfig", "sampling_params"}) {
    if (request[key].is_object()) settings = request[key];
  }
  asked.temperature = number_in(settings, {"temperature"});
  asked.echo = request["echo"].boolean();
  asked.top_p = number_in(settings, {"top_p", "topP"});
  if (settings["seed"].is_number()) asked.seed = std::string(settings["seed"].raw());
  asked.alternatives = asked_alternatives(settings);
  if (!asked.alternatives) asked.alternatives = asked_alternatives(request);
  asked.most_tokens = asked_most_tokens(settings);
  if (!asked.most_tokens) asked.most_tokens = asked_most_tokens(request);
  for (const std::string_view key :
       {"messages", "prompt", "input", "contents", "inputs", "text", "message"}) {
    const JsonValue prompt = request[key];
    if (prompt.is_null()) continue;
    asked.prompt = prompt.is_text() ? prompt.text() : prompt.canonical();
    break;
  }
  if (response.model.empty()) response.model = asked.model;
  if (!response.temperature) response.temperature = asked.temperature;
  if (!response.top_p) response.top_p = asked.top_p;
  if (!response.seed) response.seed = asked.seed;
}

}  // namespace driftscope
