// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/response_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/import/readable_text.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

bool finished(const Response& response) {
  return !response.choices.empty() &&
         std::all_of(response.choices.begin(), response.choices.end(),
                     [](const ResponseChoice& c) { return !c.finish_reason.empty(); });
}

// {"event": kind, "data": {…} | "…"}: how SDKs print events; {"chunk": {"bytes": base64}}.
bool is_wrapped_event(JsonValue value) {
  const JsonValue data = value["data"];
  const bool named = value["event"].is_text() && (data.is_object() || data.is_text());
  return named || value["chunk"]["bytes"].is_text();
}

bool begins_answer(JsonValue event) {
  const std::string_view type = event["type"].raw();
  return type == "message_start" || type == "message-start" || type == "response.created" ||
         event["event_type"].raw() == "stream-start" || event["messageStart"].is_object();
}

bool ends_answer(JsonValue event) {
  return event["done"].boolean().value_or(false) || event["stop"].boolean().value_or(false) ||
         (event["token"].is_object() && event["generated_text"].is_text());
}

std::string id_of(JsonValue event) {
  for (const JsonValue id : {event["id"], event["responseId"], event["meta_info"]["id"]}) {
    if (id.is_text() && !id.raw().empty()) return id.text();
  }
  return {};
}

bool is_unfinished(JsonValue value) {
  const JsonValue choice = value["choices"].at(0);
  if (choice["text"].is_text())
    return choice.has("finish_reason") && choice["finish_reason"].is_null();
  const JsonValue candidate = value["candidates"].at(0);
  if (candidate.is_object())
    return candidate["finishReason"].is_null() && candidate["finish_reason"].is_null();
  const JsonValue meta = value["meta_info"];
  return meta.is_object() && meta.has("finish_reason") && meta["finish_reason"].is_null();
}

}  // namespace

bool is_event_only(JsonValue value) {
  if (!value.is_object()) return false;
  return is_wrapped_event(value) || value["object"].raw().ends_with(".chunk") ||
         value["choices"].at(0)["delta"].is_object() ||
         value["type"].raw().starts_with("response.") || formats::is_anthropic_event(value) ||
         formats::is_cohere_event(value) || formats::is_bedrock_event(value) ||
         formats::is_tgi_event(value);
}

bool is_stream_piece(JsonValue value) {
  if (is_event_only(value) || is_unfinished(value)) return true;
  if (formats::is_ollama_body(value)) return !value["done"].boolean().value_or(true);
  return formats::is_llama_server_body(value) && !value["stop"].boolean().value_or(true);
}

void note_oddities(const JsonDocument& document, Response& response) {
  for (const JsonOddity& oddity : document.oddities()) {
    const bool seen = std::any_of(
        response.warnings.begin(), response.warnings.end(), [&](const ResponseWarning& warning) {
          return warning.id == "json_oddity" && warning.text.starts_with(oddity.what);
        });
    if (seen) continue;
    response.warn("json_oddity", fmt::format("{} at byte {}", oddity.what, oddity.offset));
  }
}

StreamAssembler::StreamAssembler(std::string source, Give give)
    : m_source(std::move(source)), m_give(std::move(give)) {
  m_response.source = m_source;
}

Result<void> StreamAssembler::feed(std::string_view kind, const JsonDocument& document) {
  note_oddities(document, m_response);
  return feed(kind, document.root());
}

Result<void> StreamAssembler::feed_text(std::string_view kind, std::string_view text) {
  JsonDocument document;
  if (auto done = document.parse(text); !done) {
    if (text == "[DONE]") {
      end_mark();
    } else {
      warn("bad_event", fmt::format("an event's data: {}", done.error().message));
    }
    return {};
  }
  return feed(kind, document);
}

Result<void> StreamAssembler::feed(std::string_view kind, JsonValue event) {
  if (is_wrapped_event(event)) {
    if (const JsonValue bytes = event["chunk"]["bytes"]; bytes.is_text()) {
      const auto decoded = bytes_of_base64(bytes.raw());
      return decoded ? feed_text(kind, *decoded) : Result<void>{};
    }
    const std::string name = event["event"].text();
    const JsonValue data = event["data"];
    if (data.is_text()) return feed_text(name, data.text());
    return feed(name, data);
  }
  if (begins_another(event)) {
    if (auto done = give(); !done) return done;
  }
  const bool error = !event["error"].is_null();
  if (m_format == nullptr) m_format = find_event_format(event);
  if (m_format == nullptr || (error && !m_format->is_event(event))) {
    if (error) note_error(m_response, event["error"]);
    return {};
  }
  m_format->read_event(kind, event, m_response);
  if (error && m_response.error.empty()) note_error(m_response, event["error"]);
  m_ended = m_ended || ends_answer(event);
  return {};
}

bool StreamAssembler::begins_another(JsonValue event) const {
  if (m_format == nullptr) return false;
  if (begins_answer(event)) return !m_response.choices.empty() || !m_response.request_id.empty();
  const std::string id = id_of(event);
  const bool other = !id.empty() && !m_response.request_id.empty() && id != m_response.request_id;
  if (m_ended) return find_event_format(event) != nullptr && (other || id.empty() || !m_done_mark);
  return other && finished(m_response);
}

Result<void> StreamAssembler::give() {
  const bool whole = finished(m_response) || m_done_mark || m_ended || !m_response.error.empty();
  if (!whole && m_format != nullptr) {
    m_response.warn("stream_cut", "the stream ends without a finish reason: it was cut off");
  } else if (m_done_mark && m_response.error.empty() && !m_response.choices.empty() &&
             !finished(m_response)) {
    m_response.warn("no_finish_reason",
                    "the stream has its end mark and no finish reason: whether the answer is whole "
                    "is not known");
  }
  if (m_response.format.empty() && m_format != nullptr)
    m_response.format = std::string(m_format->name);
  Response next;
  next.source = fmt::format("{}[{}]", m_source, ++m_answers);
  m_format = nullptr;
  m_ended = m_done_mark = false;
  return m_give(std::exchange(m_response, std::move(next)));
}

Result<void> StreamAssembler::finish(std::string_view display_name) {
  if (m_format == nullptr && m_response.error.empty()) {
    if (m_answers > 0) return {};
    return fail(ErrorKind::malformed,
                fmt::format("{}: no event of the stream has a format that is known", display_name));
  }
  if (m_format == nullptr) m_response.format = "error";
  return give();
}

}  // namespace driftscope
