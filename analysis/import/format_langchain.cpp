// SPDX-License-Identifier: Apache-2.0
// LangChain: messages and results as its users dump them. What the server said is in
// response_metadata, or in llm_output and generation_info.
#include "analysis/import/formats.h"
#include "analysis/import/logprob_reading.h"

namespace driftscope::formats {
namespace {

void read_metadata(JsonValue metadata, Response& response, ResponseChoice& choice) {
  set_if_given(response.model, metadata["model"]);
  set_if_given(response.model, metadata["model_name"]);
  set_if_given(response.fingerprint, metadata["system_fingerprint"]);
  set_if_given(response.service_tier, metadata["service_tier"]);
  for (const std::string_view key : {"finish_reason", "stop_reason", "done_reason"}) {
    set_if_given(choice.finish_reason, metadata[key]);
  }
  const JsonValue usage = metadata["token_usage"];
  if (usage.is_object()) {
    response.usage.prompt_tokens = usage["prompt_tokens"].integer();
    response.usage.completion_tokens = usage["completion_tokens"].integer();
    response.usage.reasoning_tokens =
        usage["completion_tokens_details"]["reasoning_tokens"].integer();
  }
  const JsonValue logprobs = metadata["logprobs"];
  read_token_objects(logprobs["content"], choice.content);
  if (!logprobs["content"].is_array()) read_legacy_arrays(logprobs, choice.content);
}

void read_langchain_message(JsonValue message, Response& response, ResponseChoice& choice) {
  const JsonValue content = message["content"];
  add_text(choice.content, content);
  for (const JsonValue part : content) {
    if (content.is_array() && part["type"].raw() != "thinking")
      add_text(choice.content, part["text"]);
    add_text(choice.reasoning, part["thinking"]);
  }
  for (const JsonValue call : message["tool_calls"]) {
    choice.tool_calls.push_back(
        {.name = call["name"].text(), .arguments = call["args"].canonical()});
  }
  add_text(choice.refusal, message["additional_kwargs"]["refusal"]);
  add_text(choice.reasoning, message["additional_kwargs"]["reasoning_content"]);
  read_metadata(message["response_metadata"], response, choice);
  set_if_given(response.request_id, message["id"]);
  const JsonValue usage = message["usage_metadata"];
  if (!usage.is_object()) return;
  response.usage.prompt_tokens = usage["input_tokens"].integer();
  response.usage.completion_tokens = usage["output_tokens"].integer();
  response.usage.cached_tokens = usage["input_token_details"]["cache_read"].integer();
  response.usage.reasoning_tokens = usage["output_token_details"]["reasoning"].integer();
}

// {"lc": 1, "kwargs": {…}} | {"type": "ai", "data": {…}} | the message itself
JsonValue message_in(JsonValue value) {
  if (value["kwargs"].is_object() && value.has("lc")) return value["kwargs"];
  return value["data"]["content"] ? value["data"] : value;
}

bool is_langchain_message(JsonValue value) {
  const JsonValue message = message_in(value);
  return message["response_metadata"].is_object() && message.has("content");
}

}  // namespace

bool is_langchain_body(JsonValue body) {
  return is_langchain_message(body) || body["generations"].at(0).is_array() ||
         (body["generations"].is_array() && body.has("llm_output"));
}

void read_langchain_body(JsonValue body, Response& response) {
  if (is_langchain_message(body)) {
    return read_langchain_message(message_in(body), response, choice_at(response, 0));
  }
  JsonValue generations = body["generations"];
  if (generations.at(0).is_array()) generations = generations.at(0);
  std::int64_t index = 0;
  for (const JsonValue generation : generations) {
    ResponseChoice& choice = choice_at(response, index++);
    const JsonValue message = message_in(generation["message"]);
    if (message.is_object()) {
      read_langchain_message(message, response, choice);
    } else {
      add_text(choice.content, generation["text"]);
    }
    if (!choice.content.has_steps) read_metadata(generation["generation_info"], response, choice);
    if (choice.finish_reason.empty()) {
      set_if_given(choice.finish_reason, generation["generation_info"]["finish_reason"]);
    }
  }
  const JsonValue output = body["llm_output"];
  set_if_given(response.model, output["model_name"]);
  set_if_given(response.fingerprint, output["system_fingerprint"]);
  const JsonValue usage = output["token_usage"];
  if (!usage.is_object()) return;
  response.usage.prompt_tokens = usage["prompt_tokens"].integer();
  response.usage.completion_tokens = usage["completion_tokens"].integer();
}

}  // namespace driftscope::formats
