// SPDX-License-Identifier: Apache-2.0
// The response formats that are read: one row each. To add one: a reader in a file beside this
// one, its row in formats.cpp, a sample in the tests.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "analysis/import/json_document.h"
#include "analysis/import/response.h"

namespace driftscope {

struct ResponseFormat {
  std::string_view name;
  std::string_view summary;
  // Whether a body, or an event of a stream, has this format. Rows are asked in order.
  bool (*is_body)(JsonValue body);
  bool (*is_event)(JsonValue event);
  // Adds what the body, or the next event, says. `event_name`: of an SSE "event:" line, else "".
  void (*read_body)(JsonValue body, Response& response);
  void (*read_event)(std::string_view event_name, JsonValue event, Response& response);
};

[[nodiscard]] std::span<const ResponseFormat> response_formats();
[[nodiscard]] const ResponseFormat* find_body_format(JsonValue body);
[[nodiscard]] const ResponseFormat* find_event_format(JsonValue event);
// The vendor or server behind an OpenAI-like reply, by the fields that only it sends.
[[nodiscard]] std::string_view openai_dialect(JsonValue body);

// The choice of that index, made where it is not there yet.
[[nodiscard]] ResponseChoice& choice_at(Response& response, std::int64_t index);
void add_text(ResponseChannel& channel, JsonValue text);
void note_error(Response& response, JsonValue error);
void set_if_given(std::string& target, JsonValue text);

// Readers, by family.
namespace formats {
bool is_openai_body(JsonValue body);
bool is_openai_event(JsonValue event);
void read_openai_body(JsonValue body, Response& response);
void read_openai_event(std::string_view name, JsonValue event, Response& response);
bool is_responses_body(JsonValue body);
bool is_responses_event(JsonValue event);
void read_responses_body(JsonValue body, Response& response);
void read_responses_event(std::string_view name, JsonValue event, Response& response);
bool is_sglang_body(JsonValue body);
void read_sglang_body(JsonValue body, Response& response);
void read_sglang_event(std::string_view name, JsonValue event, Response& response);
bool is_llama_server_body(JsonValue body);
void read_llama_server_body(JsonValue body, Response& response);
void read_llama_server_event(std::string_view name, JsonValue event, Response& response);
bool is_ollama_body(JsonValue body);
void read_ollama_body(JsonValue body, Response& response);
void read_ollama_event(std::string_view name, JsonValue event, Response& response);
bool is_tgi_body(JsonValue body);
bool is_tgi_event(JsonValue event);
void read_tgi_body(JsonValue body, Response& response);
void read_tgi_event(std::string_view name, JsonValue event, Response& response);
bool is_gemini_body(JsonValue body);
void read_gemini_body(JsonValue body, Response& response);
void read_gemini_event(std::string_view name, JsonValue event, Response& response);
bool is_cohere_body(JsonValue body);
bool is_cohere_event(JsonValue event);
void read_cohere_body(JsonValue body, Response& response);
void read_cohere_event(std::string_view name, JsonValue event, Response& response);
bool is_anthropic_body(JsonValue body);
bool is_anthropic_event(JsonValue event);
void read_anthropic_body(JsonValue body, Response& response);
void read_anthropic_event(std::string_view name, JsonValue event, Response& response);
bool is_bedrock_body(JsonValue body);
bool is_bedrock_event(JsonValue event);
void read_bedrock_body(JsonValue body, Response& response);
void read_bedrock_event(std::string_view name, JsonValue event, Response& response);
bool is_bedrock_llama_body(JsonValue body);
void read_bedrock_llama_body(JsonValue body, Response& response);
void read_bedrock_llama_event(std::string_view name, JsonValue event, Response& response);
bool is_bedrock_invoke_body(JsonValue body);
void read_bedrock_invoke_body(JsonValue body, Response& response);
void read_bedrock_invoke_event(std::string_view name, JsonValue event, Response& response);
bool is_langchain_body(JsonValue body);
void read_langchain_body(JsonValue body, Response& response);
bool is_error_body(JsonValue body);
void read_error_body(JsonValue body, Response& response);
bool is_token_list_body(JsonValue body);
void read_token_list_body(JsonValue body, Response& response);
}  // namespace formats

}  // namespace driftscope
