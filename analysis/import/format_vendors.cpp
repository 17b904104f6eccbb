// SPDX-License-Identifier: Apache-2.0
// Gemini, Cohere, Anthropic, Bedrock.
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

// proto3 leaves out what is zero: an absent logProbability is 0, an absent tokenId is 0.
TokenAlternative gemini_token(JsonValue entry) {
  TokenAlternative token;
  token.token = read_token(entry["token"], {}, either(entry, "tokenId", "token_id"));
  if (!token.token.id) token.token.id = 0;
  const JsonValue value = either(entry, "logProbability", "log_probability");
  token.logprob = value ? read_logprob(value)
                        : Logprob{.state = LogprobState::number, .value = 0.0, .decimals = 0};
  return token;
}

void read_gemini_logprobs(JsonValue result, ResponseChannel& channel) {
  const JsonValue chosen = either(result, "chosenCandidates", "chosen_candidates");
  if (!chosen.is_array()) return;
  const JsonValue tops = either(result, "topCandidates", "top_candidates");
  channel.has_steps = true;
  auto top = tops.begin();
  for (const JsonValue entry : chosen) {
    TokenAlternative token = gemini_token(entry);
    ResponseStep step;
    step.token = std::move(token.token);
    step.logprob = token.logprob;
    if (tops.is_array() && top != tops.end()) {
      const JsonValue row = *top;
      for (const JsonValue other : row["candidates"]) {
        step.alternatives.push_back(gemini_token(other));
      }
      ++top;
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
  if (mean.is_number()) choice.mean_logprob = mean.number();
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
  const JsonValue tokens = usage["tokens"];
  if (!tokens.is_object()) return;
  response.usage = {.prompt_tokens = tokens["input_tokens"].integer(),
                    .completion_tokens = tokens["output_tokens"].integer(),
                    .cached_tokens = usage["cached_tokens"].integer()};
}

void read_cohere_generations(JsonValue body, Response& response) {
  if (body["prompt"].is_text()) response.prompt_text = body["prompt"].text();
  std::int64_t position = 0;
  for (const JsonValue generation : body["generations"]) {
    ResponseChoice& choice =
        choice_at(response, generation["index"].integer().value_or(position++));
    add_text(choice.content, generation["text"]);
    set_if_given(choice.finish_reason, generation["finish_reason"]);
    if (generation["likelihood"].is_number()) {
      choice.mean_logprob = generation["likelihood"].number();  // a logarithm, whatever its name
    }
    for (const JsonValue item : generation["token_likelihoods"]) {
      ResponseStep step;
      step.token = read_token(item["token"], {}, {});
      step.logprob = read_logprob(item["likelihood"]);
      choice.content.steps.push_back(std::move(step));
      choice.content.has_steps = true;
    }
  }
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
         body["promptFeedback"].is_object();
}

void read_gemini_body(JsonValue body, Response& response) {
  response.format = "gemini";
  for (const JsonValue candidate : body["candidates"]) {
    read_gemini_candidate(candidate, choice_at(response, candidate["index"].integer().value_or(0)));
  }
  set_if_given(response.model, either(body, "modelVersion", "model_version"));
  set_if_given(response.request_id, either(body, "responseId", "response_id"));
  set_if_given(response.created, either(body, "createTime", "create_time"));
  const JsonValue usage = either(body, "usageMetadata", "usage_metadata");
  if (usage.is_object()) {
    response.usage = {
        .prompt_tokens = either(usage, "promptTokenCount", "prompt_token_count").integer(),
        .completion_tokens =
            either(usage, "candidatesTokenCount", "candidates_token_count").integer(),
        .reasoning_tokens = either(usage, "thoughtsTokenCount", "thoughts_token_count").integer(),
        .cached_tokens =
            either(usage, "cachedContentTokenCount", "cached_content_token_count").integer()};
    set_if_given(response.service_tier, either(usage, "trafficType", "traffic_type"));
  }
  const JsonValue blocked = body["promptFeedback"]["blockReason"];
  if (blocked.is_text()) response.error = "the prompt was blocked: " + blocked.text();
  note_error(response, body["error"]);
}

void read_gemini_event(std::string_view, JsonValue event, Response& response) {
  read_gemini_body(event, response);
}

bool is_cohere_body(JsonValue body) {
  return body["generations"].is_array() ||
         (body["message"]["content"].is_array() && body["finish_reason"].is_text() &&
          !body.has("object") && !body.has("type") && !body.has("choices"));
}

bool is_cohere_event(JsonValue event) {
  const std::string_view type = event["type"].raw();
  return type == "message-start" || type == "message-end" || type.starts_with("content-") ||
         type.starts_with("tool-") || type.starts_with("citation-");
}

void read_cohere_body(JsonValue body, Response& response) {
  response.format = "cohere";
  set_if_given(response.request_id, body["id"]);
  if (body["generations"].is_array()) return read_cohere_generations(body, response);
  ResponseChoice& choice = choice_at(response, 0);
  for (const JsonValue part : body["message"]["content"]) {
    if (part["type"].raw() == "thinking") add_text(choice.reasoning, part["thinking"]);
    if (part["type"].raw() == "text") add_text(choice.content, part["text"]);
  }
  for (const JsonValue call : body["message"]["tool_calls"]) {
    choice.tool_calls.push_back(
        {call["function"]["name"].text(), call["function"]["arguments"].text()});
  }
  for (const JsonValue item : body["logprobs"]) read_cohere_item(item, choice.content);
  set_if_given(choice.finish_reason, body["finish_reason"]);
  read_cohere_usage(body["usage"], response);
}

void read_cohere_event(std::string_view, JsonValue event, Response& response) {
  response.format = "cohere";
  ResponseChoice& choice = choice_at(response, 0);
  set_if_given(response.request_id, event["id"]);
  const JsonValue delta = event["delta"];
  add_text(choice.content, delta["message"]["content"]["text"]);
  add_text(choice.reasoning, delta["message"]["content"]["thinking"]);
  if (event["logprobs"].is_object()) read_cohere_item(event["logprobs"], choice.content);
  set_if_given(choice.finish_reason, delta["finish_reason"]);
  read_cohere_usage(delta["usage"], response);
}

bool is_anthropic_body(JsonValue body) {
  return (body["type"].raw() == "message" && body["content"].is_array()) ||
         (body["type"].raw() == "error" && body["error"].is_object()) ||
         (body["result"]["type"].is_text() && body.has("custom_id"));
}

bool is_anthropic_event(JsonValue event) {
  const std::string_view type = event["type"].raw();
  return type == "message_start" || type == "message_delta" || type == "message_stop" ||
         type.starts_with("content_block_");
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
  set_if_given(choice.finish_reason, body["stop_reason"]);
  set_if_given(response.request_id, body["id"]);
  set_if_given(response.model, body["model"]);
  read_anthropic_usage(body["usage"], response);
}

void read_anthropic_event(std::string_view, JsonValue event, Response& response) {
  response.format = "anthropic";
  const std::string_view type = event["type"].raw();
  if (type == "message_start") return read_anthropic_body(event["message"], response);
  ResponseChoice& choice = choice_at(response, 0);
  if (type == "content_block_start") return read_anthropic_block(event["content_block"], choice);
  if (type == "error") return note_error(response, event["error"]);
  const JsonValue delta = event["delta"];
  add_text(choice.content, delta["text"]);
  add_text(choice.reasoning, delta["thinking"]);
  if (delta["partial_json"].is_text() && !choice.tool_calls.empty()) {
    choice.tool_calls.back().arguments += delta["partial_json"].text();
  }
  set_if_given(choice.finish_reason, delta["stop_reason"]);
  read_anthropic_usage(event["usage"], response);
}

bool is_bedrock_body(JsonValue body) {
  return body["output"]["message"].is_object() && body.has("stopReason");
}

bool is_bedrock_event(JsonValue event) {
  return event["messageStart"].is_object() || event["contentBlockDelta"].is_object() ||
         event["contentBlockStart"].is_object() || event["contentBlockStop"].is_object() ||
         event["messageStop"].is_object() ||
         (event["metadata"].is_object() && event["metadata"]["usage"].has("inputTokens"));
}

void read_bedrock_body(JsonValue body, Response& response) {
  response.format = "bedrock";
  ResponseChoice& choice = choice_at(response, 0);
  for (const JsonValue part : body["output"]["message"]["content"]) {
    add_text(choice.content, part["text"]);
    add_text(choice.reasoning, part["reasoningContent"]["reasoningText"]["text"]);
    const JsonValue tool = part["toolUse"];
    if (tool.is_object()) {
      choice.tool_calls.push_back({tool["name"].text(), tool["input"].canonical()});
    }
  }
  set_if_given(choice.finish_reason, body["stopReason"]);
  set_if_given(response.model, body["trace"]["promptRouter"]["invokedModelId"]);
  const JsonValue usage = body["usage"];
  response.usage = {.prompt_tokens = usage["inputTokens"].integer(),
                    .completion_tokens = usage["outputTokens"].integer(),
                    .cached_tokens = usage["cacheReadInputTokens"].integer()};
}

void read_bedrock_event(std::string_view, JsonValue event, Response& response) {
  response.format = "bedrock";
  ResponseChoice& choice = choice_at(response, 0);
  const JsonValue tool = event["contentBlockStart"]["start"]["toolUse"];
  if (tool.is_object()) choice.tool_calls.push_back({tool["name"].text(), ""});
  const JsonValue delta = event["contentBlockDelta"]["delta"];
  add_text(choice.content, delta["text"]);
  add_text(choice.reasoning, delta["reasoningContent"]["text"]);
  if (delta["toolUse"]["input"].is_text() && !choice.tool_calls.empty()) {
    choice.tool_calls.back().arguments += delta["toolUse"]["input"].text();
  }
  set_if_given(choice.finish_reason, event["messageStop"]["stopReason"]);
  const JsonValue usage = event["metadata"]["usage"];
  if (usage.is_object()) {
    response.usage = {.prompt_tokens = usage["inputTokens"].integer(),
                      .completion_tokens = usage["outputTokens"].integer(),
                      .cached_tokens = usage["cacheReadInputTokens"].integer()};
  }
}

bool is_bedrock_llama_body(JsonValue body) {
  return body["generation"].is_text() && body.has("generation_token_count");
}

void read_bedrock_llama_body(JsonValue body, Response& response) {
  response.format = "bedrock-llama";
  ResponseChoice& choice = choice_at(response, 0);
  add_text(choice.content, body["generation"]);
  set_if_given(choice.finish_reason, body["stop_reason"]);
  response.usage.prompt_tokens = body["prompt_token_count"].integer();
  response.usage.completion_tokens = body["generation_token_count"].integer();
}

}  // namespace driftscope::formats
