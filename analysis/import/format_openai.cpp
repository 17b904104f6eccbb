// SPDX-License-Identifier: Apache-2.0
// OpenAI chat completions and completions, whole and streamed, with what other servers add.
#include <algorithm>
#include <array>
#include <cctype>

#include "analysis/import/formats.h"
#include "analysis/import/logprob_reading.h"
#include "kernels/base/utf8.h"

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
  return body.has("prompt_filter_results") || has_in_choice(body, "content_filter_results") ||
         body["object"].raw().starts_with("extensions.");
}
bool is_dialect_groq(JsonValue body) { return body.has("x_groq"); }
bool is_dialect_openrouter(JsonValue body) {
  return body.has("openrouter_metadata") || has_in_choice(body, "native_finish_reason") ||
         (body["provider"].is_text() && body["id"].raw().starts_with("gen-"));
}
bool is_dialect_fireworks(JsonValue body) {
  return body["model"].raw().starts_with("accounts/fireworks/") || body.has("perf_metrics") ||
         has_in_choice(body, "raw_output");
}
bool is_dialect_together(JsonValue body) {
  return body["object"].raw() == "text.completion" || body["prompt"].is_array() ||
         body["choices"].at(0)["delta"].has("token_id") || body.has("warnings");
}
bool is_dialect_sglang(JsonValue body) {
  return body["metadata"].has("weight_version") || has_in_choice(body, "matched_stop");
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

void read_content(JsonValue content, ResponseChoice& choice) {
  if (content.is_text()) return add_text(choice.content, content);
  for (const JsonValue part : content) {  // chunks: text, thinking, references
    const std::string type = part["type"].text_or("");
    if (type == "text" || type == "output_text") add_text(choice.content, part["text"]);
    if (type == "refusal") add_text(choice.refusal, part["refusal"]);
    if (type != "thinking") continue;
    const JsonValue thinking = part["thinking"];
    add_text(choice.reasoning, thinking);
    for (const JsonValue piece : thinking) add_text(choice.reasoning, piece["text"]);
  }
}

// Streamed calls come in pieces that belong to the call of their index.
void read_tool_calls(JsonValue calls, ResponseChoice& choice) {
  std::size_t position = 0;
  for (const JsonValue call : calls) {
    const auto index = static_cast<std::size_t>(std::clamp<std::int64_t>(
        call["index"].integer().value_or(static_cast<std::int64_t>(position)), 0, 255));
    if (choice.tool_calls.size() <= index) choice.tool_calls.resize(index + 1);
    ToolCall& target = choice.tool_calls[index];
    const JsonValue function = call["function"];
    if (function["name"].is_text()) target.name += function["name"].text();
    if (function["arguments"].is_text()) target.arguments += function["arguments"].text();
    if (function["arguments"].is_object()) target.arguments = function["arguments"].canonical();
    ++position;
  }
}

void read_message(JsonValue message, ResponseChoice& choice) {
  read_content(message["content"], choice);
  add_text(choice.refusal, message["refusal"]);
  for (const std::string_view key : {"reasoning_content", "reasoning", "thinking"}) {
    if (!message[key].is_text()) continue;
    add_text(choice.reasoning, message[key]);
    break;
  }
  read_tool_calls(message["tool_calls"], choice);
  if (message["function_call"].is_object()) {
    choice.tool_calls.push_back(
        {message["function_call"]["name"].text(), message["function_call"]["arguments"].text()});
  }
}

void read_logprobs(JsonValue choice_body, std::size_t prompt_characters, Response& response,
                   ResponseChoice& choice) {
  const JsonValue logprobs = choice_body["logprobs"];
  if (logprobs.is_number()) {  // Together's streams: a bare number, the token beside it
    const JsonValue delta = choice_body["delta"];
    ResponseStep step;
    step.token = read_token(delta["content"], {}, delta["token_id"]);
    step.logprob = read_logprob(logprobs);
    choice.content.has_steps = true;
    choice.content.steps.push_back(std::move(step));
    return;
  }
  read_token_objects(logprobs["content"], choice.content);
  read_token_objects(logprobs["refusal"], choice.refusal);
  read_token_objects(logprobs["reasoning_content"], choice.reasoning);
  if (!logprobs.has("content")) {
    read_legacy_arrays(logprobs, prompt_characters, response.prompt_steps, choice.content);
  }
}

// [null, {"<id>": {logprob, rank, decoded_token}}, …]: which entry is the prompt's own token is
// not marked; prompt_token_ids says.
void read_prompt_logprobs(JsonValue list, Response& response) {
  std::size_t position = 0;
  for (const JsonValue entry : list) {
    ResponseStep step;
    const bool known = position < response.prompt_ids.size();
    if (known) step.token.id = response.prompt_ids[position];
    for (auto it = entry.begin(); entry.is_object() && it != entry.end(); ++it) {
      TokenAlternative other;
      const JsonValue value = *it;
      other.logprob = read_logprob(value.is_object() ? value["logprob"] : value);
      other.token.text = value["decoded_token"].text_or("");
      other.token.bytes = other.token.text;
      const std::string key = it.key();
      if (!key.empty() && key.find_first_not_of("0123456789") == std::string::npos &&
          key.size() < 18) {
        other.token.id = std::stoll(key);
      }
      if (known && other.token.id == step.token.id) {
        step.token = other.token;
        step.logprob = other.logprob;
      }
      step.alternatives.push_back(std::move(other));
    }
    if (entry.is_null()) step.logprob = {.state = LogprobState::null};
    response.prompt_steps.push_back(std::move(step));
    ++position;
  }
}

void read_usage(JsonValue usage, Response& response) {
  if (!usage.is_object()) return;
  ResponseUsage& to = response.usage;
  to.prompt_tokens = usage["prompt_tokens"].integer();
  to.completion_tokens = usage["completion_tokens"].integer();
  to.reasoning_tokens = usage["completion_tokens_details"]["reasoning_tokens"].integer();
  if (!to.reasoning_tokens) to.reasoning_tokens = usage["reasoning_tokens"].integer();
  to.cached_tokens = usage["prompt_tokens_details"]["cached_tokens"].integer();
  if (!to.cached_tokens) to.cached_tokens = usage["prompt_cache_hit_tokens"].integer();
}

void read_envelope(JsonValue body, Response& response) {
  set_if_given(response.request_id, body["id"]);
  set_if_given(response.model, body["model"]);
  set_if_given(response.fingerprint, body["system_fingerprint"]);
  set_if_given(response.provider, body["provider"]);
  set_if_given(response.service_tier, body["service_tier"]);
  set_if_given(response.region, body["openrouter_metadata"]["region"]);
  set_if_given(response.weight_version, body["metadata"]["weight_version"]);
  if (body["created"].raw() != "0") set_if_given(response.created, body["created"]);
  read_usage(body["usage"], response);
  if (const auto ids = read_ids(body["prompt_token_ids"]); !ids.empty()) response.prompt_ids = ids;
  const JsonValue groq = body["x_groq"];
  if (groq["seed"].is_number()) response.seed = std::string(groq["seed"].raw());
  if (const auto ids = read_ids(groq["debug"]["input_token_ids"]); !ids.empty()) {
    response.prompt_ids = ids;
  }
  if (body["timings"]["draft_n"].integer().value_or(0) > 0) response.speculative = true;
  if (body["prompt_text"].is_text()) response.prompt_text = body["prompt_text"].text();
  note_error(response, body["error"]);
}

// The prompt's length in characters, where an echoed answer begins with it: text_offset counts
// from the prompt's start and the echo's first token has no logprob.
std::size_t echoed_characters(JsonValue choice, JsonValue usage) {
  const JsonValue logprobs = choice["logprobs"];
  const JsonValue values = logprobs["token_logprobs"];
  const auto prompt_tokens = usage["prompt_tokens"].integer();
  if (values.size() == 0 || !values.at(0).is_null() || !prompt_tokens || *prompt_tokens < 0) {
    return 0;
  }
  if (logprobs["text_offset"].at(0).integer().value_or(-1) != 0) return 0;
  const JsonValue first = logprobs["text_offset"].at(static_cast<std::size_t>(*prompt_tokens));
  return static_cast<std::size_t>(std::max<std::int64_t>(0, first.integer().value_or(0)));
}

// Where the character of that number begins; the text's end where it has fewer.
std::size_t byte_of_character(std::string_view text, std::size_t character) {
  std::size_t at = 0;
  for (; character > 0 && at < text.size(); --character) at += decode_utf8(text, at).length;
  return at;
}

void read_choice(JsonValue body, JsonValue entry, Response& response) {
  ResponseChoice& choice = choice_at(response, entry["index"].integer().value_or(0));
  read_message(entry["message"], choice);
  const std::size_t echoed = echoed_characters(entry, body["usage"]);
  if (entry["text"].is_text() && !entry.has("message")) {
    const std::string text = entry["text"].text();
    const std::size_t cut = byte_of_character(text, echoed);
    choice.content.text += text.substr(cut);
    choice.content.has_text = true;
    if (echoed > 0) response.prompt_text = text.substr(0, cut);
  }
  read_logprobs(entry, echoed, response, choice);
  set_if_given(choice.finish_reason, entry["finish_reason"]);
  choice.seed = entry["seed"].integer();
  choice.token_ids = read_ids(entry["token_ids"]);
  if (choice.token_ids.empty())
    choice.token_ids = read_ids(entry["raw_output"]["completion_token_ids"]);
  const auto prompt_ids = read_ids(entry["prompt_token_ids"]);
  if (!prompt_ids.empty()) response.prompt_ids = prompt_ids;
  const auto raw_prompt_ids = read_ids(entry["raw_output"]["prompt_token_ids"]);
  if (!raw_prompt_ids.empty()) response.prompt_ids = raw_prompt_ids;
  adopt_ids(choice.token_ids, choice.content);
}

}  // namespace

std::string_view openai_dialect(JsonValue body) {
  for (const DialectRow& row : kDialects) {
    if (row.matches(body)) return row.name;
  }
  return "openai";
}

namespace formats {

bool is_openai_body(JsonValue body) {
  const JsonValue first = body["choices"].at(0);
  return body["choices"].is_array() &&
         (first.has("message") || first.has("text") || first.has("logprobs") ||
          body["object"].raw().find("completion") != std::string_view::npos);
}

bool is_openai_event(JsonValue event) { return event["choices"].is_array(); }

void read_openai_body(JsonValue body, Response& response) {
  response.format = std::string(openai_dialect(body));
  read_envelope(body, response);
  for (const JsonValue entry : body["choices"]) read_choice(body, entry, response);
  if (body["prompt_logprobs"].is_array()) {
    read_prompt_logprobs(body["prompt_logprobs"], response);
  } else {
    read_prompt_logprobs(body["choices"].at(0)["prompt_logprobs"], response);
  }
  if (body["prompt"].is_array()) {  // Together's echo
    ResponseChannel echoed;
    read_legacy_arrays(body["prompt"].at(0)["logprobs"], 0, response.prompt_steps, echoed);
    response.prompt_steps = std::move(echoed.steps);
    if (body["prompt"].at(0)["text"].is_text()) {
      response.prompt_text = body["prompt"].at(0)["text"].text();
    }
  }
  const auto ids = read_ids(body["x_groq"]["debug"]["output_token_ids"]);
  if (!ids.empty() && response.choices.size() == 1) response.choices[0].token_ids = ids;
  if (body["usage"].has("prompt_tokens") && response.choices.size() == 1) {
    const auto seed = response.choices[0].seed;
    if (seed && !response.seed) response.seed = std::to_string(*seed);
  }
}

void read_openai_event(std::string_view, JsonValue event, Response& response) {
  if (response.format.empty() || response.format == "openai") {
    response.format = std::string(openai_dialect(event));
  }
  const ResponseUsage before = response.usage;
  read_envelope(event, response);
  if (!event["usage"].is_object()) response.usage = before;
  for (const JsonValue entry : event["choices"]) {
    ResponseChoice& choice = choice_at(response, entry["index"].integer().value_or(0));
    read_message(entry["delta"], choice);
    if (!entry.has("delta")) read_message(entry["message"], choice);
    if (!entry.has("delta") && !entry.has("message")) add_text(choice.content, entry["text"]);
    ResponseChannel added;
    std::swap(added.steps, choice.content.steps);
    const bool had = choice.content.has_steps;
    read_logprobs(entry, 0, response, choice);
    const auto ids = read_ids(entry["token_ids"]);
    adopt_ids(ids, choice.content);
    choice.token_ids.insert(choice.token_ids.end(), ids.begin(), ids.end());
    std::move(choice.content.steps.begin(), choice.content.steps.end(),
              std::back_inserter(added.steps));
    choice.content.steps = std::move(added.steps);
    choice.content.has_steps = choice.content.has_steps || had;
    set_if_given(choice.finish_reason, entry["finish_reason"]);
    if (entry["seed"].integer()) choice.seed = entry["seed"].integer();
  }
}

}  // namespace formats
}  // namespace driftscope
