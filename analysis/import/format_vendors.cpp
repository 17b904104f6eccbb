// SPDX-License-Identifier: Apache-2.0
// Gemini, Cohere, Anthropic.
#include <utility>

#include "analysis/import/formats.h"
#include "analysis/import/logprob_reading.h"

namespace driftscope::formats {
namespace {

// SDK dumps use snake_case.
JsonValue either(JsonValue object, std::string_view camel, std::string_view snake) {
  const JsonValue found = object[camel];
  return found ? found : object[snake];
}

// proto3 leaves out what is zero: an absent logProbability is 0. An absent tokenId is 0 too, where
// the server sends ids at all.
TokenAlternative gemini_token(JsonValue entry, bool has_ids) {
  TokenAlternative token;
  token.token = read_token(entry["token"], {}, {});
  const JsonValue id = either(entry, "tokenId", "token_id");
  token.token.id = integer_of(id);
  if (!id && has_ids) token.token.id = 0;
  const JsonValue value = either(entry, "logProbability", "log_probability");
  token.logprob = value ? read_logprob(value)
                        : Logprob{.state = LogprobState::number, .value = 0.0, .decimals = 0};
  return token;
}

bool lists_ids(JsonValue entries) {
  for (const JsonValue entry : entries) {
    if (integer_of(either(entry, "tokenId", "token_id"))) return true;
    if (lists_ids(entry["candidates"])) return true;
  }
  return false;
}

void read_gemini_logprobs(JsonValue result, ResponseChannel& channel) {
  const JsonValue chosen = either(result, "chosenCandidates", "chosen_candidates");
  if (!chosen.is_array()) return;
  const JsonValue tops = either(result, "topCandidates", "top_candidates");
  const bool has_ids = lists_ids(chosen) || lists_ids(tops);
  channel.has_steps = true;
  auto top = tops.begin();
  std::size_t left = tops.is_array() ? tops.size() : 0;
  for (const JsonValue entry : chosen) {
    TokenAlternative token = gemini_token(entry, has_ids);
    ResponseStep step;
    step.token = std::move(token.token);
    step.logprob = token.logprob;
    if (left > 0) {
      const JsonValue row = *top;
      for (const JsonValue other : row["candidates"]) {
        step.alternatives.push_back(gemini_token(other, has_ids));
      }
      ++top;
      --left;
    }
    channel.steps.push_back(std::move(step));
  }
}

void read_gemini_candidate(JsonValue candidate, ResponseChoice& choice) {
  for (const JsonValue part : candidate["content"]["parts"]) {
    const bool thought = part["thought"].boolean().value_or(false);
    add_text(thought ? choice.reasoning : choice.content, part["text"]);
    const JsonValue call = either(part, "functionCall", "function_call");
    if (call.is_object()) {
      choice.tool_calls.push_back({call["name"].text(), call["args"].canonical()});
    }
  }
  set_if_given(choice.finish_reason, either(candidate, "finishReason", "finish_reason"));
  const JsonValue mean = either(candidate, "avgLogprobs", "avg_logprobs");
  if (const auto number = number_of(mean); number) choice.mean_logprob = number;
  read_gemini_logprobs(either(candidate, "logprobsResult", "logprobs_result"), choice.content);
}

void read_cohere_item(JsonValue item, ResponseChannel& channel) {
  channel.has_steps = true;
  const JsonValue ids = item["token_ids"];
  auto value = item["logprobs"].begin();
  std::size_t position = 0;
  for (const JsonValue id : ids) {
    ResponseStep step;
    // One text for several tokens stands at the first of them.
    step.token = read_token(position == 0 ? item["text"] : JsonValue{}, {}, id);
    step.text_of_group = ids.size() > 1;
    if (position < item["logprobs"].size()) {
      step.logprob = read_logprob(*value);
      ++value;
    }
    channel.steps.push_back(std::move(step));
    ++position;
  }
}

void read_cohere_usage(JsonValue usage, Response& response) {
  const JsonValue tokens = usage["tokens"].is_object() ? usage["tokens"] : usage["billed_units"];
  if (!tokens.is_object()) return;
  response.usage = {.prompt_tokens = tokens["input_tokens"].integer(),
                    .completion_tokens = tokens["output_tokens"].integer(),
                    .cached_tokens = usage["cached_tokens"].integer()};
}

// Likelihoods of the prompt's tokens too, where all were asked for.
void split_cohere_prompt(const std::string& prompt, Response& response, ResponseChoice& choice) {
  std::vector<ResponseStep>& steps = choice.content.steps;
  if (prompt.empty() || choice.content.text.starts_with(prompt)) return;
  std::size_t at = 0;
  auto cut = steps.begin();
  while (cut != steps.end() && at < prompt.size()) at += (cut++)->token.bytes.size();
  std::string joined;
  for (const ResponseStep& step : steps) joined += step.token.bytes;
  if (at != prompt.size() || !joined.starts_with(prompt)) return;
  response.prompt_steps.assign(steps.begin(), cut);
  steps.erase(steps.begin(), cut);
}

void read_cohere_generations(JsonValue body, Response& response) {
  const std::string prompt = body["prompt"].text();
  if (!prompt.empty()) response.prompt_text = prompt;
  std::int64_t position = 0;
  for (const JsonValue generation : body["generations"]) {
    ResponseChoice& choice =
        choice_at(response, generation["index"].integer().value_or(position++));
    add_text(choice.content, generation["text"]);
    set_if_given(choice.finish_reason, generation["finish_reason"]);
    // A logarithm, whatever its name.
    if (const auto mean = number_of(generation["likelihood"]); mean) choice.mean_logprob = mean;
    for (const JsonValue item : generation["token_likelihoods"]) {
      ResponseStep step;
      step.token = read_token(item["token"], {}, {});
      step.logprob = read_logprob(item["likelihood"]);
      choice.content.steps.push_back(std::move(step));
      choice.content.has_steps = true;
    }
    split_cohere_prompt(prompt, response, choice);
  }
  read_cohere_usage(body["meta"], response);
}

void read_cohere_call(JsonValue call, ResponseChoice& choice) {
  const JsonValue function = call["function"].is_object() ? call["function"] : call;
  const JsonValue arguments =
      function["arguments"].is_null() ? function["parameters"] : function["arguments"];
  choice.tool_calls.push_back({.name = function["name"].text(),
                               .arguments = arguments.is_text()     ? arguments.text()
                                            : arguments.is_object() ? arguments.canonical()
                                                                    : std::string(),
                               .id = call["id"].text()});
}

// v1 chat: one text, no parts.
void read_cohere_chat_v1(JsonValue body, Response& response) {
  ResponseChoice& choice = choice_at(response, 0);
  choice.content.text.clear();
  add_text(choice.content, body["text"]);
  for (const JsonValue call : body["tool_calls"]) read_cohere_call(call, choice);
  set_if_given(choice.finish_reason, body["finish_reason"]);
  set_if_given(response.request_id, body["response_id"]);
  read_cohere_usage(body["meta"], response);
}

void read_anthropic_block(JsonValue block, ResponseChoice& choice) {
  const std::string type = block["type"].text_or("");
  if (type == "text") add_text(choice.content, block["text"]);
  if (type == "thinking") add_text(choice.reasoning, block["thinking"]);
  if (type == "tool_use") {
    const JsonValue input = block["input"];
    choice.tool_calls.push_back(
        {block["name"].text(), input.size() > 0 ? input.canonical() : std::string()});
  }
}

void read_anthropic_usage(JsonValue usage, Response& response) {
  if (usage["input_tokens"].integer()) {
    response.usage.prompt_tokens = usage["input_tokens"].integer();
  }
  if (usage["output_tokens"].integer()) {
    response.usage.completion_tokens = usage["output_tokens"].integer();
  }
  if (usage["cache_read_input_tokens"].integer()) {
    response.usage.cached_tokens = usage["cache_read_input_tokens"].integer();
  }
  set_if_given(response.service_tier, usage["service_tier"]);
  set_if_given(response.region, usage["inference_geo"]);
}

}  // namespace

bool is_gemini_body(JsonValue body) {
  return body["candidates"].is_array() || body["modelVersion"].is_text() ||
         body["promptFeedback"].is_object() || body["usageMetadata"].is_object();
}

void read_gemini_body(JsonValue body, Response& response) {
  response.format = "gemini";
  for (const JsonValue candidate : body["candidates"]) {
    read_gemini_candidate(candidate,
                          choice_at(response, integer_of(candidate["index"]).value_or(0)));
  }
  set_if_given(response.model, either(body, "modelVersion", "model_version"));
  set_if_given(response.request_id, either(body, "responseId", "response_id"));
  set_if_given(response.created, either(body, "createTime", "create_time"));
  const JsonValue usage = either(body, "usageMetadata", "usage_metadata");
  if (usage.is_object()) {
    const auto count = [&](std::string_view camel, std::string_view snake) {
      return integer_of(either(usage, camel, snake));
    };
    response.usage = {
        .prompt_tokens = count("promptTokenCount", "prompt_token_count"),
        .completion_tokens = count("candidatesTokenCount", "candidates_token_count"),
        .reasoning_tokens = count("thoughtsTokenCount", "thoughts_token_count"),
        .cached_tokens = count("cachedContentTokenCount", "cached_content_token_count")};
    set_if_given(response.service_tier, either(usage, "trafficType", "traffic_type"));
  }
  const JsonValue feedback = either(body, "promptFeedback", "prompt_feedback");
  const JsonValue blocked = either(feedback, "blockReason", "block_reason");
  if (blocked.is_text()) response.error = "the prompt was blocked: " + blocked.text();
  note_error(response, body["error"]);
}

void read_gemini_event(std::string_view, JsonValue event, Response& response) {
  read_gemini_body(event, response);
}

namespace {

bool is_cohere_chat_v1(JsonValue body) {
  return body["text"].is_text() && (body.has("generation_id") || body.has("response_id"));
}

bool is_cohere_generations(JsonValue body) {
  const JsonValue first = body["generations"].at(0);
  return first.is_object() && first["text"].is_text();
}

}  // namespace

bool is_cohere_body(JsonValue body) {
  const JsonValue message = body["message"];
  const bool parts = message["content"].is_array() || message["tool_calls"].is_array() ||
                     message["tool_plan"].is_text();
  return is_cohere_generations(body) || is_cohere_chat_v1(body) ||
         (parts && body["finish_reason"].is_text() && !body.has("object") && !body.has("type") &&
          !body.has("choices"));
}

bool is_cohere_event(JsonValue event) {
  const std::string_view type = event["type"].raw();
  return type == "message-start" || type == "message-end" || type.starts_with("content-") ||
         type.starts_with("tool-") || type.starts_with("citation-") ||
         (event["event_type"].is_text() && event["is_finished"].kind() == JsonKind::boolean);
}

void read_cohere_body(JsonValue body, Response& response) {
  response.format = "cohere";
  set_if_given(response.request_id, body["id"]);
  if (is_cohere_generations(body)) return read_cohere_generations(body, response);
  if (is_cohere_chat_v1(body)) return read_cohere_chat_v1(body, response);
  ResponseChoice& choice = choice_at(response, 0);
  add_text(choice.reasoning, body["message"]["tool_plan"]);
  for (const JsonValue part : body["message"]["content"]) {
    if (part["type"].raw() == "thinking") add_text(choice.reasoning, part["thinking"]);
    if (part["type"].raw() == "text") add_text(choice.content, part["text"]);
  }
  for (const JsonValue call : body["message"]["tool_calls"]) read_cohere_call(call, choice);
  for (const JsonValue item : body["logprobs"]) read_cohere_item(item, choice.content);
  set_if_given(choice.finish_reason, body["finish_reason"]);
  read_cohere_usage(body["usage"], response);
}

void read_cohere_event(std::string_view, JsonValue event, Response& response) {
  response.format = "cohere";
  ResponseChoice& choice = choice_at(response, 0);
  if (event["event_type"].is_text()) {  // v1
    if (event["event_type"].raw() == "text-generation") add_text(choice.content, event["text"]);
    if (is_cohere_chat_v1(event["response"])) read_cohere_chat_v1(event["response"], response);
    set_if_given(choice.finish_reason, event["finish_reason"]);
    return;
  }
  set_if_given(response.request_id, event["id"]);
  const JsonValue delta = event["delta"];
  const JsonValue message = delta["message"];
  add_text(choice.content, message["content"]["text"]);
  add_text(choice.reasoning, message["content"]["thinking"]);
  add_text(choice.reasoning, message["tool_plan"]);
  const JsonValue call = message["tool_calls"];
  if (event["type"].raw() == "tool-call-start") read_cohere_call(call, choice);
  if (event["type"].raw() == "tool-call-delta" && !choice.tool_calls.empty()) {
    choice.tool_calls.back().arguments += call["function"]["arguments"].text();
  }
  for (const JsonValue logprobs : {event["logprobs"], delta["logprobs"]}) {
    if (logprobs.is_object()) read_cohere_item(logprobs, choice.content);
  }
  set_if_given(choice.finish_reason, delta["finish_reason"]);
  note_error(response, delta["error"]);
  read_cohere_usage(delta["usage"], response);
}

bool is_anthropic_body(JsonValue body) {
  return (body["type"].raw() == "message" && body["content"].is_array()) ||
         (body["type"].raw() == "completion" && body["completion"].is_text()) ||
         (body["type"].raw() == "error" && body["error"].is_object()) ||
         (body["result"]["type"].is_text() && body.has("custom_id"));
}

bool is_anthropic_event(JsonValue event) {
  const std::string_view type = event["type"].raw();
  return type == "message_start" || type == "message_delta" || type == "message_stop" ||
         type.starts_with("content_block_") ||
         (type == "completion" && event["completion"].is_text() && event["stop_reason"].is_null());
}

void read_anthropic_body(JsonValue body, Response& response) {
  response.format = "anthropic";
  set_if_given(response.custom_id, body["custom_id"]);
  const JsonValue result = body["result"];
  if (result.is_object()) {
    if (result["message"].is_object()) return read_anthropic_body(result["message"], response);
    const JsonValue error = result["error"];
    note_error(response, error["error"].is_object() ? error["error"] : error);
    if (response.error.empty()) response.error = "the request is " + result["type"].text();
    return;
  }
  if (body["type"].raw() == "error") return note_error(response, body["error"]);
  ResponseChoice& choice = choice_at(response, 0);
  for (const JsonValue block : body["content"]) read_anthropic_block(block, choice);
  add_text(choice.content, body["completion"]);
  set_if_given(choice.finish_reason, body["stop_reason"]);
  set_if_given(response.request_id, body["id"]);
  set_if_given(response.model, body["model"]);
  read_anthropic_usage(body["usage"], response);
}

void read_anthropic_event(std::string_view, JsonValue event, Response& response) {
  response.format = "anthropic";
  const std::string_view type = event["type"].raw();
  if (type == "message_start") return read_anthropic_body(event["message"], response);
  if (type == "completion") return read_anthropic_body(event, response);
  ResponseChoice& choice = choice_at(response, 0);
  if (type == "content_block_start") return read_anthropic_block(event["content_block"], choice);
  if (type == "error") return note_error(response, event["error"]);
  const JsonValue delta = event["delta"];
  if (type == "content_block_delta") {
    add_text(choice.content, delta["text"]);
    add_text(choice.reasoning, delta["thinking"]);
  }
  if (delta["partial_json"].is_text() && !choice.tool_calls.empty()) {
    choice.tool_calls.back().arguments += delta["partial_json"].text();
  }
  set_if_given(choice.finish_reason, delta["stop_reason"]);
  read_anthropic_usage(event["usage"], response);
}

}  // namespace driftscope::formats
