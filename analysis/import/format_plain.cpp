// SPDX-License-Identifier: Apache-2.0
// Shapes of no server's own: numbers as people paste them into reports, and errors.
#include <algorithm>

#include "analysis/import/formats.h"
#include "analysis/import/logprob_reading.h"

namespace driftscope::formats {
namespace {

bool is_token_object(JsonValue entry) {
  return entry.is_object() && (entry["token"].is_text() || entry["text"].is_text()) &&
         (entry.has("logprob") || entry.has("prob"));
}

bool is_token_pair(JsonValue entry) {  // ["text", -0.1]
  return entry.is_array() && entry.size() == 2 && entry.at(0).is_text() &&
         (entry.at(1).is_number() || entry.at(1).is_null());
}

// The tokens to choose from at one step, as texts with values: [["a", -0.1], …] | {"a": -0.1}.
bool is_candidate_list(JsonValue list) {
  return list.is_array() && (is_token_pair(list.at(0)) || is_token_object(list.at(0)));
}

void add_candidates(JsonValue list, ResponseStep& step) {
  for (const JsonValue entry : list) {
    const bool pair = entry.is_array();
    step.alternatives.push_back(
        {.token = read_token(pair ? entry.at(0) : entry["token"], entry["bytes"], entry["id"]),
         .logprob = read_logprob(pair ? entry.at(1) : entry["logprob"])});
  }
}

void add_texts(ResponseChannel& channel) {
  for (const ResponseStep& step : channel.steps) {
    if (step.token.bytes.empty()) continue;
    channel.text += step.token.bytes;
    channel.has_text = true;
  }
}

JsonValue listed_values(JsonValue body) {
  for (const std::string_view key : {"token_logprobs", "logprobs", "logits"}) {
    if (body[key].is_array()) return body[key];
  }
  return {};
}

JsonValue listed_ids(JsonValue body) {
  for (const std::string_view key : {"output_ids", "token_ids", "output_token_ids", "ids"}) {
    if (body[key].is_array()) return body[key];
  }
  return {};
}

bool is_prompt_ids(JsonValue body) {
  return body["ids"].is_array() && body["ids"].at(0).is_number() && body["bos"].is_number();
}

void read_parallel_lists(JsonValue body, Response& response, ResponseChannel& channel) {
  const JsonValue values = listed_values(body);
  const JsonValue ids = listed_ids(body);
  const JsonValue texts = body["tokens"];
  const JsonValue tops = body["top_logprobs"];
  const std::size_t count = std::max(ids.size(), texts.size());
  auto id = ids.begin();
  auto text = texts.begin();
  auto value = values.begin();
  auto top = tops.begin();
  for (std::size_t i = 0; i < count; ++i) {
    ResponseStep step;
    const bool has_text = i < texts.size();
    const bool has_id = i < ids.size();
    step.token = read_token(has_text ? *text : JsonValue{}, {}, has_id ? *id : JsonValue{});
    if (has_text) ++text;
    if (has_id) ++id;
    if (i < values.size()) {
      step.logprob = read_logprob(*value);
      ++value;
    }
    if (tops.is_array() && i < tops.size()) {
      const JsonValue entries = *top;
      if (is_candidate_list(entries)) add_candidates(entries, step);
      if (entries.is_object()) read_legacy_top(entries, step.alternatives);
      ++top;
    }
    channel.steps.push_back(std::move(step));
  }
  if (values.size() < count) {
    response.warn("logprobs_cut", "there are fewer logprobs than tokens");
  }
}

}  // namespace

bool is_error_body(JsonValue body) {
  const JsonValue error = body["error"];
  if (error.is_object() || (error.is_text() && !error.raw().empty())) return true;
  if (body["detail"].is_text() || body["detail"].at(0).has("msg")) return true;
  if (body["object"].raw() == "error") return true;
  const JsonValue message = body["message"].is_text() ? body["message"] : body["Message"];
  return message.is_text() && !body.has("choices") && !body.has("content") &&
         (body.has("code") || body.has("type") || body.has("__type") || body.size() <= 2);
}

void read_error_body(JsonValue body, Response& response) {
  note_error(response, body["error"]);
  if (!response.error.empty()) return;
  const JsonValue detail = body["detail"];
  if (detail.is_text()) response.error = detail.text();
  if (detail.is_array()) response.error = detail.at(0)["msg"].text();
  if (!response.error.empty()) return;
  if (body["message"].is_object()) {
    response.error = body["message"].canonical();
    return;
  }
  note_error(response, body);
  if (body["message"].is_null()) response.error = body["Message"].text_or(response.error);
}

// {tokens: […], logprobs | token_logprobs: […], ids | output_ids: […], top_logprobs: […]}, a list
// of {token, logprob} or of ["text", value], {top: [["text", value], …]} for one step, and
// {ids: […], bos} of a prompt.
bool is_token_list_body(JsonValue body) {
  if (is_candidate_list(body) || is_candidate_list(body["top"]) || is_prompt_ids(body)) return true;
  if (!body.is_object()) return false;
  if (is_token_object(body["content"].at(0)) || is_token_object(body["tokens"].at(0))) return true;
  return (body["tokens"].is_array() || listed_ids(body)) && listed_values(body);
}

void read_token_list_body(JsonValue body, Response& response) {
  set_if_given(response.model, body["model"]);
  if (is_prompt_ids(body)) {
    response.prompt_ids = read_ids(body["ids"]);
    response.bos = body["bos"].integer();
    (void)choice_at(response, 0);
    return;
  }
  ResponseChannel& channel = choice_at(response, 0).content;
  channel.has_steps = true;
  JsonValue objects = body.is_array() ? body : body["content"];
  if (is_token_object(body["tokens"].at(0))) objects = body["tokens"];
  if (is_candidate_list(body["top"])) {
    add_candidates(body["top"], channel.steps.emplace_back());
  } else if (is_token_object(objects.at(0))) {
    read_token_objects(objects, channel);
  } else if (is_token_pair(objects.at(0))) {
    for (const JsonValue pair : objects) {
      ResponseStep& step = channel.steps.emplace_back();
      step.token = read_token(pair.at(0), {}, {});
      step.logprob = read_logprob(pair.at(1));
    }
  } else {
    read_parallel_lists(body, response, channel);
  }
  add_texts(channel);
}

}  // namespace driftscope::formats
