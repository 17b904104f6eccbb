// SPDX-License-Identifier: Apache-2.0
// The native routes of servers that people run themselves.
#include <algorithm>
#include <utility>

#include "analysis/import/formats.h"
#include "analysis/import/logprob_reading.h"

namespace driftscope::formats {
namespace {

// A list of token entries: {id, text, logprob, special}.
std::vector<ResponseStep> tgi_steps(JsonValue tokens, JsonValue tops) {
  std::vector<ResponseStep> steps;
  auto top = tops.begin();
  for (const JsonValue token : tokens) {
    ResponseStep step;
    step.token = read_token(token["text"], {}, token["id"]);
    step.logprob = read_logprob(token["logprob"]);
    step.special = token["special"].boolean().value_or(false);
    if (tops.is_array() && top != tops.end()) {
      for (const JsonValue other : *top) {
        step.alternatives.push_back({.token = read_token(other["text"], {}, other["id"]),
                                     .logprob = read_logprob(other["logprob"])});
      }
      ++top;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

// Values of what the samplers left; the older list of "probs" is read as logarithms of its values.
void note_scale(JsonValue entries, Response& response) {
  const JsonValue first = entries.at(0);
  if (first.has("prob") || first.has("top_probs")) response.after_sampling = true;
}

void read_llama_settings(JsonValue body, Response& response) {
  const JsonValue settings = body["generation_settings"];
  set_if_given(response.model, body["model"]);
  if (settings["temperature"].is_number()) response.temperature = settings["temperature"].number();
  if (settings["top_p"].is_number()) response.top_p = settings["top_p"].number();
  if (settings["seed"].is_number() && settings["seed"].raw() != "4294967295") {
    response.seed = std::string(settings["seed"].raw());  // 2^32 - 1 asks for a random one
  }
  if (body["prompt"].is_text()) response.prompt_text = body["prompt"].text();
  if (body["tokens_evaluated"].integer()) {
    response.usage.prompt_tokens = body["tokens_evaluated"].integer();
  }
  if (body["tokens_predicted"].integer()) {
    response.usage.completion_tokens = body["tokens_predicted"].integer();
  }
  if (body["timings"]["draft_n"].integer().value_or(0) > 0) response.speculative = true;
  if (body["timings"]["cache_n"].integer()) {
    response.usage.cached_tokens = body["timings"]["cache_n"].integer();
  }
}

std::string llama_stop(JsonValue body) {
  if (body["stop_type"].is_text() && body["stop_type"].raw() != "none") {
    return body["stop_type"].text();
  }
  if (body["stopped_eos"].boolean().value_or(false)) return "eos";
  if (body["stopped_word"].boolean().value_or(false)) return "word";
  if (body["stopped_limit"].boolean().value_or(false)) return "limit";
  return {};
}

}  // namespace

namespace {

// The list begins at logprob_start_len: ids of a part of the prompt are not the prompt's ids.
void read_sglang_prompt(JsonValue meta, Response& response) {
  response.prompt_steps = read_triples(meta["input_token_logprobs"], meta["input_top_logprobs"]);
  const auto counted = meta["prompt_tokens"].integer();
  const auto listed = static_cast<std::int64_t>(response.prompt_steps.size());
  if (counted && *counted > listed) {
    if (listed > 0) response.warn("prompt_partial", "logprobs are given of the prompt's end only");
    return;
  }
  for (const ResponseStep& step : response.prompt_steps) {
    if (step.token.id) response.prompt_ids.push_back(*step.token.id);
  }
  if (response.prompt_ids.size() != response.prompt_steps.size()) response.prompt_ids.clear();
}

}  // namespace

bool is_sglang_body(JsonValue body) { return body["meta_info"].is_object(); }

void read_sglang_body(JsonValue body, Response& response) {
  response.format = "sglang";
  const JsonValue meta = body["meta_info"];
  ResponseChoice& choice = choice_at(response, body["index"].integer().value_or(0));
  add_text(choice.content, body["text"]);
  choice.token_ids = read_ids(body["output_ids"]);
  if (meta["output_token_logprobs"].is_array()) {
    choice.content.has_steps = true;
    choice.content.steps = read_triples(meta["output_token_logprobs"], meta["output_top_logprobs"]);
  }
  read_sglang_prompt(meta, response);
  const JsonValue finish = meta["finish_reason"];
  choice.finish_reason = finish.is_text() ? finish.text() : finish["type"].text_or("");
  set_if_given(response.request_id, meta["id"]);
  set_if_given(response.weight_version, meta["weight_version"]);
  response.usage = {.prompt_tokens = meta["prompt_tokens"].integer(),
                    .completion_tokens = meta["completion_tokens"].integer(),
                    .cached_tokens = meta["cached_tokens"].integer()};
  if (finish["type"].raw() == "abort") note_error(response, finish);
  note_error(response, body["error"]);
}

namespace {

// Whether a list holds all tokens until now: it begins with those before, and is as long as the
// server counts, but for an end mark.
bool holds_all(const std::vector<std::int64_t>& now, const std::vector<std::int64_t>& before,
               std::optional<std::int64_t> counted) {
  const bool begins =
      now.size() >= before.size() && std::equal(before.begin(), before.end(), now.begin());
  return begins && (!counted || static_cast<std::int64_t>(now.size()) + 1 >= *counted);
}

std::vector<std::int64_t> ids_of(const std::vector<ResponseStep>& steps) {
  std::vector<std::int64_t> ids;
  for (const ResponseStep& step : steps) ids.push_back(step.token.id.value_or(-1));
  return ids;
}

void prepend(const std::vector<ResponseStep>& front, std::vector<ResponseStep>& steps) {
  steps.insert(steps.begin(), front.begin(), front.end());
}

}  // namespace

// Each event repeats all that was said before, or, with incremental output, only what is new; text,
// tokens and ids each for itself.
void read_sglang_event(std::string_view, JsonValue event, Response& response) {
  Response next;
  read_sglang_body(event, next);
  if (next.choices.empty()) return;
  ResponseChoice& choice = choice_at(response, next.choices[0].index);
  ResponseChoice& fresh = next.choices[0];
  const auto counted = next.usage.completion_tokens;
  const bool all_steps =
      holds_all(ids_of(fresh.content.steps), ids_of(choice.content.steps), counted);
  const bool all_ids = holds_all(fresh.token_ids, choice.token_ids, counted);
  const bool listed = fresh.content.has_steps || !fresh.token_ids.empty();
  const bool tokens_say_all = fresh.content.has_steps ? all_steps : all_ids;
  constexpr std::size_t kTelling = 12;  // bytes that no new piece repeats by chance
  const bool begins = fresh.content.text.starts_with(choice.content.text);
  const bool all_text =
      begins && (!listed || tokens_say_all || choice.content.text.size() >= kTelling);
  if (!all_text) fresh.content.text = choice.content.text + fresh.content.text;
  if (!all_steps) prepend(choice.content.steps, fresh.content.steps);
  if (!all_ids) {
    fresh.token_ids.insert(fresh.token_ids.begin(), choice.token_ids.begin(),
                           choice.token_ids.end());
  }
  std::swap(choice, fresh);
  response.format = next.format;
  response.request_id = next.request_id;
  response.weight_version = next.weight_version;
  response.usage = next.usage;
  if (!next.error.empty()) response.error = next.error;
  if (!next.prompt_steps.empty()) response.prompt_steps = std::move(next.prompt_steps);
  if (!next.prompt_ids.empty()) response.prompt_ids = std::move(next.prompt_ids);
}

bool is_llama_server_body(JsonValue body) {
  return body["content"].is_text() && !body.has("message") && !body.has("choices") &&
         (body.has("tokens_predicted") || body.has("completion_probabilities") ||
          body.has("stop_type") || body.has("stopped_eos") || body.has("id_slot") ||
          body.has("slot_id") || body.has("generation_settings") || body.has("timings") ||
          body["stop"].kind() == JsonKind::boolean);
}

void read_llama_server_body(JsonValue body, Response& response) {
  response.format = "llama.cpp";
  ResponseChoice& choice = choice_at(response, body["index"].integer().value_or(0));
  add_text(choice.content, body["content"]);
  const auto ids = read_ids(body["tokens"]);
  JsonValue entries = body["completion_probabilities"];
  if (!entries.is_array()) entries = body["probs"];
  if (entries.is_array()) {
    note_scale(entries, response);
    ResponseChannel added;
    read_token_objects(entries, added);
    adopt_ids(ids, added);
    choice.content.has_steps = true;
    std::move(added.steps.begin(), added.steps.end(), std::back_inserter(choice.content.steps));
  }
  choice.token_ids.insert(choice.token_ids.end(), ids.begin(), ids.end());
  read_llama_settings(body, response);
  if (const std::string stop = llama_stop(body); !stop.empty()) choice.finish_reason = stop;
  note_error(response, body["error"]);
}

void read_llama_server_event(std::string_view, JsonValue event, Response& response) {
  read_llama_server_body(event, response);
}

bool is_ollama_body(JsonValue body) {
  return body["done"].kind() == JsonKind::boolean && body["model"].is_text() &&
         (body["message"].is_object() || body["response"].is_text());
}

void read_ollama_body(JsonValue body, Response& response) {
  response.format = "ollama";
  ResponseChoice& choice = choice_at(response, 0);
  const JsonValue message = body["message"];
  add_text(choice.content, message.is_object() ? message["content"] : body["response"]);
  add_text(choice.reasoning, message.is_object() ? message["thinking"] : body["thinking"]);
  for (const JsonValue call : message["tool_calls"]) {
    choice.tool_calls.push_back(
        {call["function"]["name"].text(), call["function"]["arguments"].canonical()});
  }
  if (body["logprobs"].is_array()) read_token_objects(body["logprobs"], choice.content);
  set_if_given(response.model, body["model"]);
  set_if_given(response.created, body["created_at"]);
  set_if_given(response.provider, body["remote_host"]);
  if (body["remote_model"].is_text() && !body["remote_model"].raw().empty() &&
      body["done"].boolean().value_or(false)) {
    response.warn("remote_model", "a cloud model answered: " + body["remote_model"].text());
  }
  set_if_given(choice.finish_reason, body["done_reason"]);
  if (body["prompt_eval_count"].integer()) {
    response.usage.prompt_tokens = body["prompt_eval_count"].integer();
  }
  if (body["eval_count"].integer()) response.usage.completion_tokens = body["eval_count"].integer();
  // Prompt and reply ids in one list; the reply's are the last ones, without the end mark.
  const auto context = read_ids(body["context"]);
  const std::size_t steps = choice.content.steps.size();
  if (steps > 0 && context.size() >= steps) {
    const auto begin = context.end() - static_cast<std::ptrdiff_t>(steps);
    choice.token_ids.assign(begin, context.end());
    response.prompt_ids.assign(context.begin(), begin);
    adopt_ids(choice.token_ids, choice.content);
  }
  note_error(response, body["error"]);
}

void read_ollama_event(std::string_view, JsonValue event, Response& response) {
  read_ollama_body(event, response);
}

bool is_tgi_body(JsonValue body) { return body["generated_text"].is_text() && !body.has("token"); }
bool is_tgi_event(JsonValue event) {
  return event["token"].is_object() && event["token"].has("id") && event.has("generated_text");
}

void read_tgi_body(JsonValue body, Response& response) {
  response.format = "tgi";
  ResponseChoice& choice = choice_at(response, 0);
  add_text(choice.content, body["generated_text"]);
  const JsonValue details = body["details"];
  if (details["tokens"].is_array()) {
    choice.content.has_steps = true;
    choice.content.steps = tgi_steps(details["tokens"], details["top_tokens"]);
  }
  set_if_given(choice.finish_reason, details["finish_reason"]);
  response.usage.completion_tokens = details["generated_tokens"].integer();
  if (details["seed"].is_number()) response.seed = std::string(details["seed"].raw());
  response.prompt_steps = tgi_steps(details["prefill"], {});
  for (const ResponseStep& step : response.prompt_steps) {
    if (step.token.id) response.prompt_ids.push_back(*step.token.id);
  }
  std::int64_t index = 1;
  for (const JsonValue other : details["best_of_sequences"]) {
    ResponseChoice& next = choice_at(response, index++);
    add_text(next.content, other["generated_text"]);
    next.content.has_steps = true;
    next.content.steps = tgi_steps(other["tokens"], other["top_tokens"]);
    set_if_given(next.finish_reason, other["finish_reason"]);
  }
}

void read_tgi_event(std::string_view, JsonValue event, Response& response) {
  response.format = "tgi";
  ResponseChoice& choice = choice_at(response, 0);
  const JsonValue token = event["token"];
  ResponseStep step;
  step.token = read_token(token["text"], {}, token["id"]);
  step.logprob = read_logprob(token["logprob"]);
  step.special = token["special"].boolean().value_or(false);
  for (const JsonValue other : event["top_tokens"]) {
    step.alternatives.push_back({.token = read_token(other["text"], {}, other["id"]),
                                 .logprob = read_logprob(other["logprob"])});
  }
  choice.content.has_steps = true;
  if (!step.special) {
    choice.content.text += step.token.text;
    choice.content.has_text = true;
  }
  choice.content.steps.push_back(std::move(step));
  if (event["generated_text"].is_text()) choice.content.text = event["generated_text"].text();
  const JsonValue details = event["details"];
  set_if_given(choice.finish_reason, details["finish_reason"]);
  if (details["generated_tokens"].integer()) {
    response.usage.completion_tokens = details["generated_tokens"].integer();
  }
  if (details["input_length"].integer()) {
    response.usage.prompt_tokens = details["input_length"].integer();
  }
}

}  // namespace driftscope::formats
