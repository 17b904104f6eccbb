// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/response_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "analysis/import/formats.h"
#include "analysis/import/json_document.h"
#include "analysis/import/response_headers.h"
#include "analysis/import/response_lines.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

constexpr std::size_t kShownCharacters = 60;

// ---- one body ----

void note_oddities(const JsonDocument& document, Response& response) {
  std::vector<std::string_view> seen;
  for (const JsonOddity& oddity : document.oddities()) {
    if (std::find(seen.begin(), seen.end(), oddity.what) != seen.end()) continue;
    seen.push_back(oddity.what);
    response.warn("json_oddity", fmt::format("{} at byte {}", oddity.what, oddity.offset));
  }
}

class Reader {
 public:
  Reader(std::string_view name, const ResponseTaker& take, JsonDocument& document)
      : m_name(name), m_take(take), m_document(document) {}

  Result<void> read(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    m_block = take_headers(text);
    const std::string_view content = trimmed(text);
    if (content.empty()) return empty();
    if (is_event_stream(content)) return event_stream(content);
    std::size_t used = 0;
    if (auto done = m_document.parse_first(content, used); !done) {
      // A later line may be sound: a log of many answers with a broken one at its front.
      if (content.find('\n') == std::string_view::npos || !looks_like_lines(content)) {
        return fail(ErrorKind::malformed,
                    fmt::format("{}: {} (near \"{}\"); give a response as JSON, JSON Lines or a "
                                "saved stream",
                                display(), done.error().message, near(content, done.error())));
      }
      return lines(content);
    }
    if (used < content.size()) return lines(content);
    return value(m_document.root(), m_name);
  }

 private:
  [[nodiscard]] std::string display() const { return escape_for_display(m_name); }

  Result<void> empty() {
    if (m_block.headers.empty() && !m_block.status) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: is empty; give a saved response", display()));
    }
    Response response;
    response.source = m_name;
    response.format = "headers";
    apply(m_block, response);
    return m_take(std::move(response));
  }

  static std::string near(std::string_view text, const Error& error) {
    std::size_t at = 0;
    const std::size_t digits = error.message.find("byte ");
    if (digits != std::string::npos) {
      (void)std::from_chars(error.message.data() + digits + 5,
                            error.message.data() + error.message.size(), at);
    }
    return escape_for_display(std::string(text.substr(std::min(at, text.size()), 24)));
  }

  static bool is_event_stream(std::string_view text) {
    for (const std::string_view start : {"data:", "event:", ":", "id:", "retry:"}) {
      if (text.starts_with(start)) return true;
    }
    return false;
  }

  static bool looks_like_lines(std::string_view text) {
    std::size_t at = 0;
    std::size_t braces = 0;
    for (int i = 0; i < 3 && at < text.size(); ++i) {
      if (trimmed(next_line(text, at)).starts_with('{')) ++braces;
    }
    return braces >= 2;
  }

  // ---- streams ----

  Result<void> event_stream(std::string_view text) {
    Response response;
    response.source = m_name;
    const ResponseFormat* format = nullptr;
    std::size_t at = 0;
    std::string name;
    std::string data;
    std::size_t event = 0;
    const auto flush = [&]() -> Result<void> {
      const std::string payload = std::exchange(data, {});
      const std::string kind = std::exchange(name, {});
      if (trimmed(payload).empty() || trimmed(payload) == "[DONE]") return {};
      ++event;
      if (auto done = m_document.parse(payload); !done) {
        response.warn("bad_event", fmt::format("event {}: {}", event, done.error().message));
        return {};
      }
      note_oddities(m_document, response);
      return feed(format, kind, response);
    };
    while (at < text.size()) {
      const std::string_view line = next_line(text, at);
      if (line.empty()) {
        if (auto done = flush(); !done) return done;
        continue;
      }
      if (line.starts_with(':')) continue;  // a comment
      const std::size_t colon = line.find(':');
      const std::string_view field = line.substr(0, colon);
      std::string_view content =
          colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
      if (content.starts_with(' ')) content.remove_prefix(1);
      if (field == "event") name = std::string(content);
      if (field == "data") data += (data.empty() ? "" : "\n") + std::string(content);
    }
    if (auto done = flush(); !done) return done;
    if (format == nullptr && response.error.empty()) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: no event of the stream has a format that is known", display()));
    }
    finish_stream(text, format, response);
    return give(std::move(response));
  }

  Result<void> feed(const ResponseFormat*& format, std::string_view kind, Response& response) {
    const JsonValue root = m_document.root();
    if (format == nullptr) format = find_event_format(root);
    if (format == nullptr) {
      if (root["error"]) note_error(response, root["error"]);
      return {};
    }
    format->read_event(kind, root, response);
    if (format->name != "openai" && root["error"].is_object()) note_error(response, root["error"]);
    return {};
  }

  static void finish_stream(std::string_view text, const ResponseFormat* format,
                            Response& response) {
    const bool finished =
        std::any_of(response.choices.begin(), response.choices.end(),
                    [](const ResponseChoice& c) { return !c.finish_reason.empty(); });
    const bool done_mark = text.find("[DONE]") != std::string_view::npos;
    if (!finished && !done_mark && format != nullptr && response.error.empty()) {
      response.warn("stream_cut", "the stream ends without a finish reason: it was cut off");
    }
  }

  // ---- several values ----

  // Lines that are events of one answer (Ollama, Bedrock), or a response each.
  Result<void> lines(std::string_view text) {
    std::size_t at = 0;
    std::size_t line_number = 0;
    const std::string_view first = [&] {
      std::size_t probe = 0;
      return trimmed(next_line(text, probe));
    }();
    if (m_document.parse(first) && is_line_of_stream(m_document.root())) return line_stream(text);
    std::optional<Error> first_error;
    std::size_t good = 0;
    while (at < text.size()) {
      const std::string_view line = trimmed(next_line(text, at));
      ++line_number;
      if (line.empty()) continue;
      std::optional<Error> problem;
      if (auto done = single_line(line, line_number, problem); !done) return done;
      if (!problem) ++good;
      if (problem && !first_error) first_error = std::move(problem);
    }
    if (good == 0 && first_error) return tl::unexpected(*first_error);
    return {};
  }

 public:
  // A line that cannot be read, or that holds something else, does not lose the others.
  Result<void> single_line(std::string_view line, std::size_t number,
                           std::optional<Error>& problem) {
    const std::string source = fmt::format("{}:{}", m_name, number);
    std::string reason;
    if (auto done = m_document.parse(line); !done) {
      reason = fmt::format("line {}: {}", number, done.error().message);
      problem = Error{.kind = ErrorKind::malformed,
                      .message = fmt::format("{}: {}", display(), reason),
                      .detail = {}};
    } else {
      m_refused = false;
      auto given = value(m_document.root(), source);
      if (given) return given;
      if (m_refused) return given;
      problem = given.error();
      reason = fmt::format("line {}: {}", number, given.error().message);
    }
    Response broken;
    broken.source = source;
    broken.format = "unreadable";
    broken.custom_id = custom_id_of_line(line);
    broken.error = std::move(reason);
    return m_take(std::move(broken));
  }

 private:
  Result<void> line_stream(std::string_view text) {
    std::size_t at = 0;
    std::size_t line_number = 0;
    std::optional<Response> response;
    const ResponseFormat* format = nullptr;
    while (at < text.size()) {
      const std::string_view line = trimmed(next_line(text, at));
      ++line_number;
      if (line.empty()) continue;
      if (!response) response.emplace().source = m_name;
      if (auto done = m_document.parse(line); !done) {
        response->warn("bad_event", fmt::format("line {}: {}", line_number, done.error().message));
        continue;
      }
      note_oddities(m_document, *response);
      if (auto done = feed(format, "", *response); !done) return done;
    }
    if (!response) return {};
    finish_stream(text, format, *response);
    return give(std::move(*response));
  }

  // ---- one value ----

  Result<void> value(JsonValue root, const std::string& source) {
    if (root["log"]["entries"].is_array()) return archive(root["log"]["entries"], source);
    if (root.is_array()) {
      if (root.size() > 0 && is_line_of_stream(root.at(0))) return array_stream(root, source);
      std::size_t position = 0;
      for (const JsonValue item : root) {
        const std::string part =
            root.size() == 1 ? source : fmt::format("{}[{}]", source, position);
        if (auto done = body(item, part, {}); !done) return done;
        ++position;
      }
      if (position == 0)
        return fail(ErrorKind::malformed, fmt::format("{}: is an empty list", display()));
      return {};
    }
    return body(root, source, {});
  }

  Result<void> array_stream(JsonValue root, const std::string& source) {
    Response response;
    response.source = source;
    const ResponseFormat* format = find_event_format(root.at(0));
    for (const JsonValue item : root) format->read_event("", item, response);
    return give(std::move(response));
  }

  Result<void> body(JsonValue root, const std::string& source, const std::string& custom_id) {
    Response response;
    response.source = source;
    response.custom_id = custom_id;
    note_oddities(m_document, response);
    const JsonValue wrapped = root["response"];
    // A batch line: the answer is inside, or an error stands beside it.
    if (root.has("custom_id") && (wrapped || root.has("error")) && !root.has("result")) {
      response.custom_id = root["custom_id"].text();
      response.http_status = wrapped["status_code"].integer();
      set_if_given(response.request_id, wrapped["request_id"]);
      if (wrapped["body"].is_object()) return known(wrapped["body"], std::move(response));
      note_error(response, root["error"]);
      if (response.error.empty()) response.error = "the batch line has no response";
      response.format = "error";
      return give(std::move(response));
    }
    // {"status": …, "headers": {…}, "body": {…}}: what scripts save of an exchange.
    if (root["body"].is_object() && find_body_format(root) == nullptr) {
      response.http_status = root["status"].integer();
      HeaderBlock block;
      const JsonValue headers = root["headers"];
      for (auto it = headers.begin(); headers.is_object() && it != headers.end(); ++it) {
        add_header(block, it.key(), (*it).text());
      }
      apply(block, response);
      return known(root["body"], std::move(response));
    }
    return known(root, std::move(response));
  }

  Result<void> known(JsonValue root, Response&& response) {
    const ResponseFormat* format = find_body_format(root);
    if (format == nullptr) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: is JSON, but of no response format that is known (it has {}); "
                              "see driftscope vendor --formats",
                              escape_for_display(response.source), keys_of(root)));
    }
    response.format = std::string(format->name);
    format->read_body(root, response);
    return give(std::move(response));
  }

  static std::string keys_of(JsonValue root) {
    if (!root.is_object()) return root.is_array() ? "a list" : "no object";
    std::string keys;
    for (auto it = root.begin(); it != root.end() && keys.size() < kShownCharacters; ++it) {
      keys += (keys.empty() ? "the keys " : ", ") + escape_for_display(it.key());
    }
    return keys.empty() ? "no keys" : keys;
  }

  Result<void> give(Response&& response) {
    // A scored prompt without a continuation is an answer to compare too.
    if (response.choices.empty() && !response.prompt_steps.empty()) (void)choice_at(response, 0);
    apply(m_block, response);
    auto taken = m_take(std::move(response));
    m_refused = !taken;
    return taken;
  }

  // ---- HAR ----

  Result<void> archive(JsonValue entries, const std::string& source) {
    std::size_t position = 0;
    std::size_t found = 0;
    for (const JsonValue entry : entries) {
      const JsonValue answer = entry["response"];
      std::string text = answer["content"]["text"].text();
      const std::string part = fmt::format("{}[{}]", source, position++);
      if (trimmed(text).empty() || answer["content"]["encoding"].raw() == "base64") continue;
      HeaderBlock block;
      block.status = answer["status"].integer();
      for (const JsonValue header : answer["headers"]) {
        add_header(block, header["name"].text(), header["value"].text());
      }
      // Pages and pictures of the same recording are no responses; they are passed over.
      const ResponseTaker take = [&](Response&& response) -> Result<void> {
        apply(block, response);
        ++found;
        return m_take(std::move(response));
      };
      JsonDocument inner;
      (void)Reader(part, take, inner).read(text);
    }
    if (found > 0) return {};
    return fail(ErrorKind::malformed, fmt::format("{}: none of the {} recorded exchanges holds a "
                                                  "response that is known",
                                                  display(), position));
  }

  std::string m_name;
  const ResponseTaker& m_take;
  HeaderBlock m_block;
  bool m_refused = false;  // by m_take: that ends the reading
  JsonDocument& m_document;
};

}  // namespace

Result<void> read_responses(std::string_view text, std::string_view name,
                            const ResponseTaker& take) {
  JsonDocument document;
  return Reader(name, take, document).read(text);
}

Result<void> read_response_line(std::string_view line, std::string_view name, std::int64_t number,
                                JsonDocument& document, const ResponseTaker& take) {
  std::optional<Error> problem;
  return Reader(name, take, document).single_line(line, static_cast<std::size_t>(number), problem);
}

bool is_line_of_stream(JsonValue value) {
  return (formats::is_ollama_body(value) && !value["done"].boolean().value_or(true)) ||
         formats::is_bedrock_event(value) || value["object"].raw() == "chat.completion.chunk";
}

Result<std::vector<Response>> read_responses(std::string_view text, std::string_view name) {
  std::vector<Response> responses;
  auto done = read_responses(text, name, [&](Response&& response) -> Result<void> {
    responses.push_back(std::move(response));
    return {};
  });
  if (!done) return tl::unexpected(std::move(done.error()));
  return responses;
}

}  // namespace driftscope
