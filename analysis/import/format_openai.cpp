// SPDX-License-Identifier: Apache-2.0
// OpenAI chat completions and completions, whole and streamed, with what other servers add.
#include <algorithm>
#include <iterator>

#include "analysis/import/formats.h"
#include "analysis/import/logprob_reading.h"
#include "analysis/import/openai_parts.h"

namespace driftscope {
namespace {

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

// Streamed calls come in pieces that belong to the call of their index. Servers that number every
// call 0 send another id with each.
ToolCall& tool_at(std::vector<ToolCall>& calls, std::size_t index, const std::string& id) {
  if (calls.size() <= index) calls.resize(index + 1);
  if (id.empty() || calls[index].id.empty() || calls[index].id == id) return calls[index];
  const auto same =
      std::find_if(calls.begin(), calls.end(), [&](const ToolCall& c) { return c.id == id; });
  return same != calls.end() ? *same : calls.emplace_back();
}

void read_tool_calls(JsonValue calls, ResponseChoice& choice) {
  std::size_t position = 0;
  for (const JsonValue call : calls) {
    const auto index = static_cast<std::size_t>(std::clamp<std::int64_t>(
        call["index"].integer().value_or(static_cast<std::int64_t>(position)), 0, 255));
    const std::string id = call["id"].text();
    ToolCall& target = tool_at(choice.tool_calls, index, id);
    if (!id.empty()) target.id = id;
    const JsonValue function = call["custom"].is_object() ? call["custom"] : call["function"];
    const JsonValue arguments =
        call["custom"].is_object() ? function["input"] : function["arguments"];
    if (function["name"].is_text() && target.name != function["name"].text()) {
      target.name += function["name"].text();
    }
    if (arguments.is_text()) target.arguments += arguments.text();
    if (arguments.is_object()) target.arguments = arguments.canonical();
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
  const JsonValue function = message["function_call"];
  if (!function.is_object()) return;
  if (choice.tool_calls.empty()) choice.tool_calls.emplace_back();
  choice.tool_calls[0].name += function["name"].text();
  choice.tool_calls[0].arguments += function["arguments"].text();
}

// One message; or a list of them, of which the assistant's counts (Azure on your data, Mistral).
void read_messages(JsonValue entry, ResponseChoice& choice) {
  if (entry["message"].is_object()) return read_message(entry["message"], choice);
  if (entry["delta"].is_object()) return read_message(entry["delta"], choice);
  for (const JsonValue message : entry["messages"]) {
    const JsonValue inner = message["delta"].is_object() ? message["delta"] : message;
    if (inner["role"].raw() != "tool" && inner["role"].raw() != "user") read_message(inner, choice);
  }
}

void read_logprobs(JsonValue entry, JsonValue event, ResponseChoice& choice) {
  const JsonValue logprobs = entry["logprobs"];
  const JsonValue token = event["token"];
  // Together's streams: a bare number, the token beside it or at the top.
  if (logprobs.is_number() || (logprobs.is_null() && token.is_object() && token.has("logprob"))) {
    const JsonValue delta = entry["delta"].is_object() ? entry["delta"] : entry;
    const JsonValue text = delta["content"].is_text() ? delta["content"] : delta["text"];
    const JsonValue id = delta["token_id"].is_null() ? token["id"] : delta["token_id"];
    ResponseStep step;
    step.token = read_token(text.is_text() ? text : token["text"], {}, id);
    step.logprob = read_logprob(logprobs.is_number() ? logprobs : token["logprob"]);
    step.special = token["special"].boolean().value_or(false);
    choice.content.has_steps = true;
    choice.content.steps.push_back(std::move(step));
    return;
  }
  read_token_objects(logprobs["content"], choice.content);
  read_token_objects(logprobs["refusal"], choice.refusal);
  for (const std::string_view key : {"reasoning_content", "reasoning"}) {
    read_token_objects(logprobs[key], choice.reasoning);
  }
  if (!logprobs["content"].is_array()) read_legacy_arrays(logprobs, choice.content);
  if (logprobs.is_array()) read_token_objects(logprobs, choice.content);
}

void read_usage(JsonValue usage, Response& response) {
  if (!usage.is_object() || !usage.has("prompt_tokens")) return;
  ResponseUsage& to = response.usage;
  to.prompt_tokens = usage["prompt_tokens"].integer();
  to.completion_tokens = usage["completion_tokens"].integer();
  to.reasoning_tokens = usage["completion_tokens_details"]["reasoning_tokens"].integer();
  if (!to.reasoning_tokens) to.reasoning_tokens = usage["reasoning_tokens"].integer();
  to.cached_tokens = usage["prompt_tokens_details"]["cached_tokens"].integer();
  if (!to.cached_tokens) to.cached_tokens = usage["prompt_cache_hit_tokens"].integer();
}

// What llama.cpp's server adds.
void read_llama_extras(JsonValue body, Response& response) {
  const JsonValue timings = body["timings"];
  if (timings["draft_n"].integer().value_or(0) > 0) response.speculative = true;
  if (timings["cache_n"].integer()) response.usage.cached_tokens = timings["cache_n"].integer();
  const JsonValue verbose = body["__verbose"];
  const JsonValue settings = verbose["generation_settings"];
  if (verbose["prompt"].is_text()) response.prompt_text = verbose["prompt"].text();
  if (settings["temperature"].is_number()) response.temperature = settings["temperature"].number();
  if (settings["seed"].is_number() && settings["seed"].raw() != "4294967295") {
    response.seed = std::string(settings["seed"].raw());
  }
}

void read_groq_extras(JsonValue groq, Response& response) {
  read_usage(groq["usage"], response);
  if (groq["seed"].is_number()) response.seed = std::string(groq["seed"].raw());
  const JsonValue debug = groq["debug"];
  if (const auto ids = read_ids(debug["input_token_ids"]); !ids.empty()) response.prompt_ids = ids;
  note_error(response, groq["error"]);
  const auto ids = read_ids(debug["output_token_ids"]);
  if (ids.empty() || response.choices.size() != 1) return;
  ResponseChoice& choice = response.choices[0];
  choice.token_ids = ids;
  if (choice.content.has_steps || debug["output_tokens"].size() != ids.size()) return;
  // No logprobs, but which tokens: enough to say at which of them two answers part.
  auto text = debug["output_tokens"].begin();
  for (const std::int64_t id : ids) {
    ResponseStep& step = choice.content.steps.emplace_back();
    step.token = read_token(*text, {}, {});
    step.token.id = id;
    ++text;
  }
  choice.content.has_steps = true;
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
  read_llama_extras(body, response);
  if (body["prompt_text"].is_text()) response.prompt_text = body["prompt_text"].text();
  note_error(response, body["error"]);
}

std::int64_t index_of(JsonValue entry, std::int64_t position) {
  return entry["index"].integer().value_or(position);
}

void read_ids_beside(JsonValue entry, Response& response, ResponseChoice& choice) {
  choice.token_ids = read_ids(entry["token_ids"]);
  if (choice.token_ids.empty()) {
    choice.token_ids = read_ids(entry["raw_output"]["completion_token_ids"]);
  }
  for (const JsonValue ids : {entry["prompt_token_ids"], entry["raw_output"]["prompt_token_ids"]}) {
    if (const auto prompt = read_ids(ids); !prompt.empty()) response.prompt_ids = prompt;
  }
  adopt_ids(choice.token_ids, choice.content);
}

void read_choice(JsonValue body, JsonValue entry, std::int64_t index, Response& response) {
  ResponseChoice& choice = choice_at(response, index);
  read_messages(entry, choice);
  if (!entry.has("message")) add_text(choice.content, entry["text"]);
  read_logprobs(entry, body, choice);
  set_if_given(choice.finish_reason, entry["finish_reason"]);
  choice.seed = entry["seed"].integer();
  read_ids_beside(entry, response, choice);
  if (entry["error"].is_object()) note_error(response, entry["error"]);
  choice.may_echo = entry["logprobs"]["tokens"].is_array();
}

// One number for two entries: their places count.
bool numbers_repeat(JsonValue choices) {
  std::vector<std::int64_t> seen;
  for (const JsonValue entry : choices) {
    const auto index = entry["index"].integer();
    if (!index) continue;
    if (std::find(seen.begin(), seen.end(), *index) != seen.end()) return true;
    seen.push_back(*index);
  }
  return false;
}

}  // namespace

namespace formats {

bool is_openai_body(JsonValue body) {
  const JsonValue first = body["choices"].at(0);
  return body["choices"].is_array() &&
         (first.has("message") || first.has("messages") || first.has("text") ||
          first.has("logprobs") || first.has("delta") ||
          body["object"].raw().find("completion") != std::string_view::npos);
}

bool is_openai_event(JsonValue event) { return event["choices"].is_array(); }

void read_openai_body(JsonValue body, Response& response) {
  response.format = std::string(openai_dialect(body));
  read_envelope(body, response);
  const JsonValue choices = body["choices"];
  const bool repeated = numbers_repeat(choices);
  if (repeated)
    response.warn("choices_renumbered", "two choices have one number; their places count");
  std::int64_t position = 0;
  for (const JsonValue entry : choices) {
    read_choice(body, entry, repeated ? position : index_of(entry, position), response);
    ++position;
  }
  const JsonValue scored = body["prompt_logprobs"];
  read_prompt_logprobs(scored.is_array() ? scored : choices.at(0)["prompt_logprobs"], response);
  read_together_prompt(body["prompt"].at(0), response);
  read_groq_extras(body["x_groq"], response);
  if (response.choices.size() == 1 && response.choices[0].seed && !response.seed) {
    response.seed = std::to_string(*response.choices[0].seed);
  }
}

void read_openai_event(std::string_view, JsonValue event, Response& response) {
  if (response.format.empty() || response.format == "openai") {
    response.format = std::string(openai_dialect(event));
  }
  read_envelope(event, response);
  std::int64_t position = 0;
  for (const JsonValue entry : event["choices"]) {
    ResponseChoice& choice = choice_at(response, index_of(entry, position++));
    read_messages(entry, choice);
    if (!entry.has("delta") && !entry.has("message")) add_text(choice.content, entry["text"]);
    ResponseChannel added;
    std::swap(added.steps, choice.content.steps);
    read_logprobs(entry, event, choice);
    const auto ids = read_ids(entry["token_ids"]);
    if (ids.size() == choice.content.steps.size()) adopt_ids(ids, choice.content);
    choice.token_ids.insert(choice.token_ids.end(), ids.begin(), ids.end());
    std::move(choice.content.steps.begin(), choice.content.steps.end(),
              std::back_inserter(added.steps));
    choice.content.steps = std::move(added.steps);
    set_if_given(choice.finish_reason, entry["finish_reason"]);
    if (entry["seed"].integer()) choice.seed = entry["seed"].integer();
    if (entry["error"].is_object()) note_error(response, entry["error"]);
    if (const auto prompt = read_ids(entry["prompt_token_ids"]); !prompt.empty()) {
      response.prompt_ids = prompt;
    }
  }
  if (event["object"].raw().find("text") != std::string_view::npos && event["usage"].is_object()) {
    for (ResponseChoice& choice : response.choices) choice.may_echo = true;
  }
  read_groq_extras(event["x_groq"], response);
}

}  // namespace formats
}  // namespace driftscope
