// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/formats.h"

#include <algorithm>
#include <array>

namespace driftscope {
namespace {

bool never(JsonValue) { return false; }
void no_event(std::string_view, JsonValue, Response&) {}

using namespace formats;

// Narrow shapes before wide ones.
constexpr std::array<ResponseFormat, 15> kFormats{{
    {"openai-responses", "OpenAI Responses, and servers that speak it", &is_responses_body,
     &is_responses_event, &read_responses_body, &read_responses_event},
    {"anthropic", "Anthropic Messages and batch results", &is_anthropic_body, &is_anthropic_event,
     &read_anthropic_body, &read_anthropic_event},
    {"sglang", "SGLang /generate", &is_sglang_body, &is_sglang_body, &read_sglang_body,
     &read_sglang_event},
    {"llama.cpp", "llama.cpp /completion, also of before December 2024", &is_llama_server_body,
     &is_llama_server_body, &read_llama_server_body, &read_llama_server_event},
    {"ollama", "Ollama /api/chat and /api/generate", &is_ollama_body, &is_ollama_body,
     &read_ollama_body, &read_ollama_event},
    {"tgi", "Text Generation Inference /generate", &is_tgi_body, &is_tgi_event, &read_tgi_body,
     &read_tgi_event},
    {"gemini", "Gemini and Vertex generateContent", &is_gemini_body, &is_gemini_body,
     &read_gemini_body, &read_gemini_event},
    {"cohere", "Cohere v2 chat and v1 generate", &is_cohere_body, &is_cohere_event,
     &read_cohere_body, &read_cohere_event},
    {"bedrock", "Bedrock Converse", &is_bedrock_body, &is_bedrock_event, &read_bedrock_body,
     &read_bedrock_event},
    {"bedrock-llama", "Bedrock InvokeModel of Llama models", &is_bedrock_llama_body,
     &is_bedrock_llama_body, &read_bedrock_llama_body, &read_bedrock_llama_event},
    {"bedrock-invoke", "Bedrock InvokeModel of Titan and Mistral models", &is_bedrock_invoke_body,
     &is_bedrock_invoke_body, &read_bedrock_invoke_body, &read_bedrock_invoke_event},
    {"langchain", "LangChain messages and results, as dumped", &is_langchain_body, &never,
     &read_langchain_body, &no_event},
    {"openai", "OpenAI chat and completions, and servers that speak them", &is_openai_body,
     &is_openai_event, &read_openai_body, &read_openai_event},
    {"token-list", "Token ids or texts with logprobs in plain lists", &is_token_list_body, &never,
     &read_token_list_body, &no_event},
    {"error", "An error in place of an answer", &is_error_body, &is_error_body, &read_error_body,
     &no_event},
}};

}  // namespace

std::span<const ResponseFormat> response_formats() { return kFormats; }

const ResponseFormat* find_body_format(JsonValue body) {
  const auto* found = std::find_if(kFormats.begin(), kFormats.end(),
                                   [&](const ResponseFormat& row) { return row.is_body(body); });
  return found == kFormats.end() ? nullptr : found;
}

const ResponseFormat* find_event_format(JsonValue event) {
  const auto* found = std::find_if(kFormats.begin(), kFormats.end(),
                                   [&](const ResponseFormat& row) { return row.is_event(event); });
  return found == kFormats.end() ? nullptr : found;
}

ResponseChoice& choice_at(Response& response, std::int64_t index) {
  auto at = std::lower_bound(
      response.choices.begin(), response.choices.end(), index,
      [](const ResponseChoice& choice, std::int64_t wanted) { return choice.index < wanted; });
  if (at == response.choices.end() || at->index != index) {
    at = response.choices.emplace(at);
    at->index = index;
  }
  return *at;
}

void add_text(ResponseChannel& channel, JsonValue text) {
  if (!text.is_text()) return;
  channel.text += text.text();
  channel.has_text = true;
}

void set_if_given(std::string& target, JsonValue text) {
  if (text.is_text() && !text.raw().empty()) target = text.text();
  if (text.is_number()) target = std::string(text.raw());
}

void note_error(Response& response, JsonValue error) {
  const bool told = error.is_text() ? !error.raw().empty() : error.is_object() && error.size() > 0;
  if (!told) return;
  std::string message = error["message"].text_or("");
  if (message.empty()) message = error.is_text() ? error.text() : error.canonical();
  const std::string kind = error["code"].is_null() ? error["type"].text_or("")
                                                   : error["code"].text_or(error["code"].raw());
  response.error = kind.empty() ? message : kind + ": " + message;
}

}  // namespace driftscope
