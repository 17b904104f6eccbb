// SPDX-License-Identifier: Apache-2.0
// The values of a saved file: bodies, lists of them, and what scripts, proxies and browsers put
// around them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/import/readable_text.h"
#include "analysis/import/response_finish.h"
#include "analysis/import/response_reader.h"
#include "analysis/import/response_request.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

constexpr std::size_t kShownCharacters = 60;
constexpr int kMostDepth = 4;
constexpr std::array<std::string_view, 12> kRequestKeys{
    "request", "input",  "modelInput",  "request_body", "prompt",  "messages",
    "params",  "kwargs", "requestBody", "expected",     "headers", "invocation_params"};

bool is_request_key(std::string_view key) {
  return std::find(kRequestKeys.begin(), kRequestKeys.end(), key) != kRequestKeys.end();
}

std::string keys_of(JsonValue root) {
  if (!root.is_object()) return root.is_array() ? "a list" : "no object";
  std::string keys;
  for (auto it = root.begin(); it != root.end() && keys.size() < kShownCharacters; ++it) {
    keys += (keys.empty() ? "the keys " : ", ") + escape_for_display(it.key());
  }
  return keys.empty() ? "no keys" : keys;
}

bool is_archive_entry(JsonValue value) {
  return value["response"]["content"]["text"].is_text() && value["response"].has("status");
}

bool is_json_text(JsonValue value) {
  if (!value.is_text()) return false;
  const std::string_view front = value.raw().substr(0, 4);
  return front.starts_with("{\\") || front.starts_with("{}") || front.starts_with("[{") ||
         front.starts_with("data") || front.starts_with("{\\n") || front.starts_with("even");
}

// Why the body of a recorded exchange is no response: "HTTP 502: the body is a page of HTML, …".
// Empty: nothing is known, or it is no text.
std::string why_no_response(JsonValue body, const std::optional<std::int64_t>& status) {
  if (!body.is_text()) return {};
  const std::string text = body.text();
  if (trimmed(text).empty()) return {};
  std::string why = why_no_json(text);
  const bool refused = status && *status >= 400;
  if (why.empty() && !refused) return {};
  return fmt::format("{}the body {}", status ? fmt::format("HTTP {}: ", *status) : "",
                     why.empty() ? "is no JSON" : why);
}

}  // namespace

Result<void> ResponseReader::value(JsonValue root, const std::string& source, int depth) {
  if (root["log"]["entries"].is_array()) return archive(root["log"]["entries"], source);
  if (root.is_array()) return list(root, source, depth);
  return object(root, source, {}, depth);
}

Result<void> ResponseReader::list(JsonValue root, const std::string& source, int depth) {
  const JsonValue first = root.at(0);
  if (!first) return fail(ErrorKind::malformed, fmt::format("{}: is an empty list", display()));
  if (first.is_text()) return list_of_texts(root, source);
  if (is_archive_entry(first)) return archive(root, source);
  if (is_stream_piece(first)) return array_stream(root, source);
  if (const ResponseFormat* format = find_body_format(root))
    return known(root, *format, source, {});
  if (depth >= kMostDepth) {
    return fail(ErrorKind::malformed, fmt::format("{}: lists are nested too deeply", display()));
  }
  std::size_t position = 0;
  std::size_t good = 0;
  std::optional<Error> first_error;
  for (const JsonValue item : root) {
    const std::string part = root.size() == 1 ? source : fmt::format("{}[{}]", source, position);
    ++position;
    auto done = value(item, part, depth + 1);
    if (done) {
      ++good;
      continue;
    }
    if (m_refused) return done;
    if (!first_error) first_error = done.error();
    if (root.size() == 1) break;
    if (auto given = give_broken(part, done.error().message); !given) return given;
  }
  if (good == 0 && first_error) return tl::unexpected(*first_error);
  return {};
}

// Lines of a stream, or bodies, each as a text.
Result<void> ResponseReader::list_of_texts(JsonValue root, const std::string& source) {
  std::string joined;
  for (const JsonValue item : root) joined += item.text() + "\n";
  if (m_depth >= kMostDepth) {
    return fail(ErrorKind::malformed, fmt::format("{}: texts are nested too deeply", display()));
  }
  return read_inside(joined, source, m_take, m_depth + 1);
}

Result<void> ResponseReader::array_stream(JsonValue root, const std::string& source) {
  StreamAssembler assembler(source,
                            [this](Response&& response) { return give(std::move(response), {}); });
  for (const JsonValue item : root) {
    if (auto done = assembler.feed("", item); !done) return done;
  }
  return assembler.finish(display());
}

void ResponseReader::add_context(JsonValue root, Context& context) {
  for (const std::string_view key :
       {"request", "modelInput", "request_body", "input", "kwargs", "params"}) {
    if (!context.request && !root[key].is_null()) context.request = root[key];
  }
  // A batch's input has what is asked under "body", and whoever joins input and output keeps that.
  if (!context.request && root.has("response") && !holds_response(root["body"], 0))
    context.request = root["body"];
  for (const std::string_view key : {"custom_id", "recordId", "key"}) {
    if (root[key].is_text() && context.custom_id.empty()) context.custom_id = root[key].text();
  }
  for (const std::string_view key : {"status", "status_code", "statusCode", "http_status"}) {
    if (root[key].integer() && !context.block.status) context.block.status = root[key].integer();
  }
  const JsonValue headers = root["headers"];
  for (auto it = headers.begin(); headers.is_object() && it != headers.end(); ++it) {
    add_header(context.block, it.key(), (*it).text());
  }
  if (!headers.is_array()) return;
  for (const JsonValue pair : headers) {
    const bool named = pair.is_object();
    add_header(context.block, named ? pair["name"].text() : pair.at(0).text(),
               named ? pair["value"].text() : pair.at(1).text());
  }
}

// A batch line: the answer is inside, or an error stands beside it.
Result<void> ResponseReader::batch_line(JsonValue root, const std::string& source,
                                        Context context) {
  const JsonValue wrapped = root["response"];
  context.custom_id = root["custom_id"].text();
  context.block.status = wrapped["status_code"].integer();
  add_context(root, context);
  if (wrapped["request_id"].is_text()) context.request_id = wrapped["request_id"].text();
  const JsonValue body = wrapped["body"].is_object() ? wrapped["body"] : wrapped;
  if (holds_response(body, 0)) return inner(body, source, context, 1);
  Response response;
  response.source = source;
  note_error(response, root["error"]);
  if (response.error.empty())
    response.error = why_no_response(wrapped["body"], wrapped["status_code"].integer());
  if (response.error.empty()) note_error(response, wrapped["body"]);
  if (response.error.empty()) response.error = "the batch line has no response";
  response.format = "error";
  return give(std::move(response), context);
}

bool ResponseReader::holds_response(JsonValue value, int depth) {
  if (is_json_text(value)) return true;
  if (value.is_array()) {
    return value.size() > 0 && (find_body_format(value) != nullptr ||
                                is_stream_piece(value.at(0)) || holds_response(value.at(0), depth));
  }
  if (!value.is_object()) return false;
  return find_body_format(value) != nullptr || is_event_only(value) || is_archive_entry(value) ||
         !members_with_responses(value, depth + 1).empty();
}

ResponseReader::Members ResponseReader::members_with_responses(JsonValue root, int depth) {
  Members members;
  if (depth > kMostDepth) return members;
  for (auto it = root.begin(); root.is_object() && it != root.end(); ++it) {
    const std::string key = it.key();
    if (!is_request_key(key) && holds_response(*it, depth)) members.emplace_back(key, *it);
  }
  return members;
}

Result<void> ResponseReader::object(JsonValue root, const std::string& source, Context context,
                                    int depth) {
  if (is_archive_entry(root)) {
    std::string problem;
    return archive_entry(root, source, problem);
  }
  if (root["stage"].raw() == "discovery" && root.has("url")) return discovery_only(source);
  const bool batch = root.has("custom_id") && (root["response"] || root.has("error"));
  if (batch && !root.has("result")) return batch_line(root, source, std::move(context));
  // A line whose format is that of the whole line says what was asked beside the answer, too.
  if (root.has("custom_id")) add_context(root, context);
  const ResponseFormat* format = find_body_format(root);
  if (format != nullptr && format->name != "error" && !is_event_only(root)) {
    return known(root, *format, source, context);
  }
  if (is_event_only(root)) {
    StreamAssembler assembler(
        source, [&](Response&& response) { return give(std::move(response), context); });
    if (auto done = assembler.feed("", root); !done) return done;
    return assembler.finish(display());
  }
  const Members members = members_with_responses(root, depth + 1);
  if (members.empty() && format != nullptr) return known(root, *format, source, context);
  if (members.empty()) {
    add_context(root, context);
    for (const std::string_view key : {"body", "response", "response_body", "text", "content"}) {
      std::string why = why_no_response(root[key], context.block.status);
      if (!why.empty()) return no_response(source, context, std::move(why));
    }
    return fail(ErrorKind::malformed,
                fmt::format("{}: is JSON, but of no response format that is known (it has {}); "
                            "see driftscope vendor --formats",
                            escape_for_display(source), keys_of(root)));
  }
  add_context(root, context);
  for (const auto& [key, value] : members) {
    const std::string part = members.size() == 1 ? source : fmt::format("{}.{}", source, key);
    if (auto done = inner(value, part, context, depth + 1); !done) return done;
  }
  return {};
}

Result<void> ResponseReader::no_response(const std::string& source, const Context& context,
                                         std::string error) {
  Response response;
  response.source = source;
  response.format = "error";
  response.error = std::move(error);
  return give(std::move(response), context);
}

Result<void> ResponseReader::inner(JsonValue value, const std::string& source,
                                   const Context& context, int depth) {
  if (value.is_object()) return object(value, source, context, depth);
  if (value.is_array()) return list(value, source, depth);
  if (m_depth >= kMostDepth) {
    return fail(ErrorKind::malformed, fmt::format("{}: texts are nested too deeply", display()));
  }
  const ResponseTaker inside = [&](Response&& response) {
    return give(std::move(response), context);
  };
  return read_inside(value.text(), source, inside, m_depth + 1);
}

Result<void> ResponseReader::known(JsonValue root, const ResponseFormat& format,
                                   const std::string& source, const Context& context) {
  Response response;
  response.source = source;
  note_oddities(m_document, response);
  response.format = std::string(format.name);
  format.read_body(root, response);
  return give(std::move(response), context);
}

Result<void> ResponseReader::give(Response&& response, const Context& context) {
  if (!context.custom_id.empty()) response.custom_id = context.custom_id;
  if (!context.request_id.empty()) response.request_id = context.request_id;
  if (context.request) note_request(context.request, response);
  finish_response(response);
  apply(context.block, response);
  apply(m_block, response);
  for (ResponseWarning& warning : m_pending) response.warnings.push_back(std::move(warning));
  m_pending.clear();
  return take(std::move(response));
}

// ---- HAR ----

Result<void> ResponseReader::archive(JsonValue entries, const std::string& source) {
  std::size_t position = 0;
  std::size_t found = 0;
  std::string problem;
  for (const JsonValue entry : entries) {
    const std::string part = entries.size() == 1 ? source : fmt::format("{}[{}]", source, position);
    ++position;
    // Pages and pictures of the same recording are no responses; they are passed over.
    if (archive_entry(entry, part, problem)) ++found;
  }
  if (found > 0) return {};
  return fail(ErrorKind::malformed,
              fmt::format("{}: none of the {} recorded exchanges holds a response that is known{}",
                          display(), position, problem.empty() ? "" : " (" + problem + ")"));
}

Result<void> ResponseReader::archive_entry(JsonValue entry, const std::string& source,
                                           std::string& problem) {
  const JsonValue answer = entry["response"];
  std::string text = answer["content"]["text"].text();
  if (answer["content"]["encoding"].raw() == "base64") {
    text = bytes_of_base64(text).value_or(std::string());
  }
  Context context;
  context.block.status = answer["status"].integer();
  for (const JsonValue header : answer["headers"]) {
    add_header(context.block, header["name"].text(), header["value"].text());
  }
  context.request = entry["request"]["postData"]["text"];
  const ResponseTaker inside = [&](Response&& response) {
    return give(std::move(response), context);
  };
  auto done = m_depth < kMostDepth
                  ? read_inside(text, source, inside, m_depth + 1)
                  : Result<void>(fail(ErrorKind::malformed, "recordings are nested too deeply"));
  if (!done) problem = done.error().message;
  return done;
}

}  // namespace driftscope
