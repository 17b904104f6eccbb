// SPDX-License-Identifier: Apache-2.0
// OpenAI Responses: output items, each with its own kind of content.
#include "analysis/import/formats.h"
#include "analysis/import/logprob_reading.h"

namespace driftscope::formats {
namespace {

void read_item(JsonValue item, ResponseChoice& choice) {
  const std::string type = item["type"].text_or("");
  if (type == "reasoning") {
    for (const JsonValue part : item["summary"]) add_text(choice.reasoning, part["text"]);
    for (const JsonValue part : item["content"]) add_text(choice.reasoning, part["text"]);
    return;
  }
  if (type == "function_call") {
    choice.tool_calls.push_back(
        {.name = item["name"].text(), .arguments = item["arguments"].text()});
    return;
  }
  if (type == "custom_tool_call") {
    choice.tool_calls.push_back({.name = item["name"].text(), .arguments = item["input"].text()});
    return;
  }
  if (!type.empty() && type != "message") return;
  for (const JsonValue part : item["content"]) {
    if (part["type"].text_or("") == "refusal") {
      add_text(choice.refusal, part["refusal"]);
      continue;
    }
    add_text(choice.content, part["text"]);
    // Compatible servers send an empty list where they know nothing.
    if (part["logprobs"].size() > 0) read_token_objects(part["logprobs"], choice.content);
  }
}

void read_envelope(JsonValue body, Response& response) {
  set_if_given(response.request_id, body["id"]);
  set_if_given(response.model, body["model"]);
  set_if_given(response.service_tier, body["service_tier"]);
  set_if_given(response.fingerprint, body["system_fingerprint"]);
  set_if_given(response.created, body["created_at"]);
  if (body["temperature"].is_number()) response.temperature = body["temperature"].number();
  if (body["top_p"].is_number()) response.top_p = body["top_p"].number();
  const JsonValue usage = body["usage"];
  if (usage.is_object()) {
    response.usage = {
        .prompt_tokens = usage["input_tokens"].integer(),
        .completion_tokens = usage["output_tokens"].integer(),
        .reasoning_tokens = usage["output_tokens_details"]["reasoning_tokens"].integer(),
        .cached_tokens = usage["input_tokens_details"]["cached_tokens"].integer()};
  }
  note_error(response, body["error"]);
  const std::string status = body["status"].text_or("");
  if (status.empty() || status == "in_progress" || status == "queued") return;
  ResponseChoice& choice = choice_at(response, 0);
  choice.finish_reason =
      status == "completed" ? "stop" : body["incomplete_details"]["reason"].text_or(status);
}

}  // namespace

bool is_responses_body(JsonValue body) {
  return body["object"].raw() == "response" ||
         (body["output"].is_array() && body["output"].at(0)["type"].is_text());
}

bool is_responses_event(JsonValue event) {
  return event["type"].raw().starts_with("response.") || is_responses_body(event);
}

void read_responses_body(JsonValue body, Response& response) {
  response.format = "openai-responses";
  read_envelope(body, response);
  ResponseChoice& choice = choice_at(response, 0);
  for (const JsonValue item : body["output"]) read_item(item, choice);
}

// Deltas as they come; the event at the end repeats everything, with the bytes that the deltas
// lack, and takes their place.
void read_responses_event(std::string_view, JsonValue event, Response& response) {
  response.format = "openai-responses";
  const std::string type = event["type"].text_or("");
  ResponseChoice& choice = choice_at(response, 0);
  if (type == "response.output_text.delta") {
    add_text(choice.content, event["delta"]);
    if (event["logprobs"].size() > 0) read_token_objects(event["logprobs"], choice.content);
    return;
  }
  if (type == "response.refusal.delta") return add_text(choice.refusal, event["delta"]);
  if (type == "response.reasoning_summary_text.delta" || type == "response.reasoning_text.delta") {
    return add_text(choice.reasoning, event["delta"]);
  }
  // The call's piece belongs to the item that came before it.
  if (type == "response.output_item.added" && event["item"]["type"].raw() == "function_call") {
    choice.tool_calls.push_back(
        {.name = event["item"]["name"].text(), .arguments = {}, .id = event["item"]["id"].text()});
    return;
  }
  if (type == "response.function_call_arguments.delta") {
    const std::string id = event["item_id"].text();
    for (ToolCall& call : choice.tool_calls) {
      if (call.id == id) call.arguments += event["delta"].text();
    }
    return;
  }
  if (type == "error")
    return note_error(response, event["error"].is_object() ? event["error"] : event);
  const JsonValue whole = event["response"];
  if (!whole.is_object()) return;
  const bool last =
      type == "response.completed" || type == "response.incomplete" || type == "response.failed";
  if (last && whole["output"].size() > 0) {
    ResponseChannel streamed = std::move(choice.content);
    response.choices.clear();
    read_responses_body(whole, response);
    // Some servers repeat the text without its logprobs.
    ResponseChannel& content = choice_at(response, 0).content;
    if (!content.has_steps && streamed.has_steps && streamed.text == content.text) {
      content.steps = std::move(streamed.steps);
      content.has_steps = true;
    }
    return;
  }
  read_envelope(whole, response);
}

}  // namespace driftscope::formats
