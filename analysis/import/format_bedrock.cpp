// SPDX-License-Identifier: Apache-2.0
// Bedrock: Converse, and InvokeModel with the shapes of a few model families.
#include "analysis/import/formats.h"
#include "analysis/import/logprob_reading.h"

namespace driftscope::formats {
namespace {

// What an SDK adds to every reply.
void read_aws_metadata(JsonValue body, Response& response) {
  const JsonValue metadata = body["ResponseMetadata"];
  set_if_given(response.request_id, metadata["RequestId"]);
  if (metadata["HTTPStatusCode"].integer()) {
    response.http_status = metadata["HTTPStatusCode"].integer();
  }
  set_if_given(response.service_tier, body["serviceTier"]["type"]);
}

// {"throttlingException": {"message": …}}: an event in place of what should follow.
std::string exception_in(JsonValue event) {
  if (!event.is_object() || event.size() != 1) return {};
  const std::string kind = event.begin().key();
  if (!kind.ends_with("Exception")) return {};
  return kind + ": " + (*event.begin())["message"].text_or("no message");
}

}  // namespace

bool is_bedrock_body(JsonValue body) {
  return body["output"]["message"].is_object() && body.has("stopReason");
}

bool is_bedrock_event(JsonValue event) {
  return event["messageStart"].is_object() || event["contentBlockDelta"].is_object() ||
         event["contentBlockStart"].is_object() || event["contentBlockStop"].is_object() ||
         event["messageStop"].is_object() ||
         (event["metadata"].is_object() && event["metadata"]["usage"].has("inputTokens")) ||
         !exception_in(event).empty();
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
  read_aws_metadata(body, response);
  set_if_given(response.model, body["trace"]["promptRouter"]["invokedModelId"]);
  const JsonValue usage = body["usage"];
  response.usage = {.prompt_tokens = usage["inputTokens"].integer(),
                    .completion_tokens = usage["outputTokens"].integer(),
                    .cached_tokens = usage["cacheReadInputTokens"].integer()};
}

void read_bedrock_event(std::string_view, JsonValue event, Response& response) {
  response.format = "bedrock";
  if (const std::string problem = exception_in(event); !problem.empty()) {
    response.error = problem;
    return;
  }
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
  set_if_given(response.model, event["metadata"]["trace"]["promptRouter"]["invokedModelId"]);
}

bool is_bedrock_llama_body(JsonValue body) {
  return body["generation"].is_text() && body.has("generation_token_count");
}

void read_bedrock_llama_body(JsonValue body, Response& response) {
  response.format = "bedrock-llama";
  ResponseChoice& choice = choice_at(response, 0);
  add_text(choice.content, body["generation"]);
  set_if_given(choice.finish_reason, body["stop_reason"]);
  if (body["prompt_token_count"].integer()) {
    response.usage.prompt_tokens = body["prompt_token_count"].integer();
  }
  response.usage.completion_tokens = body["generation_token_count"].integer();
}

void read_bedrock_llama_event(std::string_view, JsonValue event, Response& response) {
  read_bedrock_llama_body(event, response);
}

// Titan: {results: [{outputText, completionReason}]}, streamed {outputText}; Mistral:
// {outputs: [{text, stop_reason}]}.
bool is_bedrock_invoke_body(JsonValue body) {
  return body["results"].at(0)["outputText"].is_text() || body["outputs"].at(0)["text"].is_text() ||
         body["outputText"].is_text();
}

void read_bedrock_invoke_body(JsonValue body, Response& response) {
  response.format = "bedrock-invoke";
  std::int64_t index = 0;
  for (const JsonValue result : body["results"]) {
    ResponseChoice& choice = choice_at(response, index++);
    add_text(choice.content, result["outputText"]);
    set_if_given(choice.finish_reason, result["completionReason"]);
    response.usage.completion_tokens = result["tokenCount"].integer();
  }
  for (const JsonValue output : body["outputs"]) {
    ResponseChoice& choice = choice_at(response, index++);
    add_text(choice.content, output["text"]);
    set_if_given(choice.finish_reason, output["stop_reason"]);
  }
  if (body["outputText"].is_text()) {
    ResponseChoice& choice = choice_at(response, 0);
    add_text(choice.content, body["outputText"]);
    set_if_given(choice.finish_reason, body["completionReason"]);
  }
  if (body["inputTextTokenCount"].integer()) {
    response.usage.prompt_tokens = body["inputTextTokenCount"].integer();
  }
}

void read_bedrock_invoke_event(std::string_view, JsonValue event, Response& response) {
  read_bedrock_invoke_body(event, response);
}

}  // namespace driftscope::formats
