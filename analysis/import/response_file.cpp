// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/response_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "analysis/import/binary_events.h"
#include "analysis/import/readable_text.h"
#include "analysis/import/response_lines.h"
#include "analysis/import/response_reader.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

bool is_event_stream(std::string_view text) {
  for (const std::string_view start : {"data:", "event:", ":", "id:", "retry:"}) {
    if (text.starts_with(start)) return true;
  }
  return false;
}

bool looks_like_lines(std::string_view text) {
  std::size_t at = 0;
  std::size_t braces = 0;
  for (int i = 0; i < 3 && at < text.size(); ++i) {
    const std::string_view line = trimmed(next_line(text, at));
    if (line.starts_with("{\"") || line.starts_with("[{")) ++braces;
  }
  return braces >= 2;
}

// A line that begins a value.
bool begins_value(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::string_view line = trimmed(next_line(text, at));
    if (line.starts_with('{') || line.starts_with('[')) return true;
  }
  return false;
}

std::size_t byte_of(const Error& error, std::size_t most) {
  std::size_t at = 0;
  const std::size_t digits = error.message.find("byte ");
  if (digits != std::string::npos) {
    (void)std::from_chars(error.message.data() + digits + 5,
                          error.message.data() + error.message.size(), at);
  }
  return std::min(at, most);
}

std::size_t skip_separators(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(", \t\r\n", at), text.size());
}

std::string_view header_of(const HeaderBlock& block, std::string_view name) {
  for (const ResponseHeader& header : block.headers) {
    if (header.name == name) return header.value;
  }
  return {};
}

}  // namespace

std::string ResponseReader::display() const { return escape_for_display(m_name); }

Result<void> ResponseReader::read(std::string_view bytes) {
  if (is_binary_event_stream(bytes)) return binary_events(bytes);
  auto text = readable_text(bytes, m_name, m_storage);
  if (!text) return tl::unexpected(text.error());
  std::string_view rest = *text;
  m_block = take_headers(rest);
  if (m_block.headers.empty()) return content(rest);
  if (is_binary_event_stream(rest)) return binary_events(rest);
  if (header_of(m_block, "transfer-encoding").find("chunked") != std::string_view::npos) {
    if (auto joined = join_chunks(rest); joined) {
      m_storage = std::move(*joined);
      rest = m_storage;
    }
  }
  std::string storage;
  auto body = readable_text(rest, m_name, storage);
  if (!body) return tl::unexpected(body.error());
  return content(*body);
}

Result<void> ResponseReader::content(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return empty();
  if (is_event_stream(text)) return event_stream(text);
  return json_text(text);
}

Result<void> ResponseReader::json_text(std::string_view text) {
  std::size_t used = 0;
  if (auto done = m_document.parse_first(text, used); !done) {
    // A later value may be sound: a log of many answers with a broken one, or a list cut short.
    if (looks_like_lines(text) && text.starts_with('{')) return lines(text);
    if (text.starts_with("[") && trimmed(text.substr(1)).starts_with('{')) {
      return sequence(text.substr(1));
    }
    return unreadable(text, done.error());
  }
  const std::string_view rest = text.substr(used);
  if (rest.empty()) return value(m_document.root(), m_name, 0);
  if (!begins_value(rest.starts_with(',') ? rest.substr(1) : rest)) {
    m_pending.push_back(
        {"trailing_text", fmt::format("\"{}\" follows the JSON text and is passed over",
                                      escape_for_display(trimmed(rest).substr(0, 24)))});
    return value(m_document.root(), m_name, 0);
  }
  const bool several_lines = trimmed(text.substr(0, used)).find('\n') != std::string_view::npos;
  const bool same_line = text.substr(0, used).find('\n') == std::string_view::npos;
  return several_lines || same_line ? sequence(text) : lines(text);
}

Result<void> ResponseReader::unreadable(std::string_view text, const Error& error) {
  std::string why = why_no_json(text);
  if (m_block.status && *m_block.status >= 400) {
    return headers_only(
        fmt::format("HTTP {}: the body {}", *m_block.status, why.empty() ? "is no JSON" : why));
  }
  if (!why.empty()) return fail(ErrorKind::malformed, fmt::format("{}: {}", display(), why));
  const std::size_t at = byte_of(error, text.size());
  const bool json = text.starts_with('{') || text.starts_with('[');
  if (json && trimmed(text.substr(at)).empty()) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: {}: the file ends inside a value, it was cut off; save the whole "
                            "response",
                            display(), error.message));
  }
  return fail(
      ErrorKind::malformed,
      fmt::format("{}: {} (near \"{}\"); give a response as JSON, JSON Lines or a saved "
                  "stream",
                  display(), error.message, escape_for_display(std::string(text.substr(at, 24)))));
}

Result<void> ResponseReader::empty() {
  if (m_block.headers.empty() && !m_block.status) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: is empty; give a saved response", display()));
  }
  if (m_block.status && *m_block.status >= 400)
    return headers_only(fmt::format("HTTP {}: the body is empty", *m_block.status));
  return headers_only({});
}

Result<void> ResponseReader::headers_only(std::string error) {
  Response response;
  response.source = m_name;
  response.format = error.empty() ? std::string(kHeadersOnly) : "error";
  response.error = std::move(error);
  apply(m_block, response);
  return take(std::move(response));
}

Result<void> ResponseReader::give_broken(std::string source, std::string error,
                                         std::string custom_id) {
  Response broken;
  broken.source = std::move(source);
  broken.format = "unreadable";
  broken.custom_id = std::move(custom_id);
  broken.error = std::move(error);
  return take(std::move(broken));
}

Result<void> ResponseReader::take(Response&& response) {
  auto taken = m_take(std::move(response));
  m_refused = !taken;
  return taken;
}

// ---- streams ----

Result<void> ResponseReader::event_stream(std::string_view text) {
  StreamAssembler assembler(m_name,
                            [this](Response&& response) { return give(std::move(response), {}); });
  if (auto done = event_lines(text, assembler); !done) return done;
  return assembler.finish(display());
}

Result<void> ResponseReader::event_lines(std::string_view text, StreamAssembler& assembler) {
  std::string name;
  std::string data;
  std::size_t event = 0;
  const auto flush = [&]() -> Result<void> {
    const std::string payload = std::exchange(data, {});
    const std::string kind = std::exchange(name, {});
    if (trimmed(payload).empty()) return {};
    if (trimmed(payload) == "[DONE]") {
      assembler.end_mark();
      return {};
    }
    ++event;
    if (auto done = m_document.parse(payload); !done) {
      assembler.warn("bad_event", fmt::format("event {}: {}", event, done.error().message));
      return {};
    }
    return assembler.feed(kind, m_document);
  };
  std::size_t at = 0;
  while (at < text.size()) {
    const std::string_view line = next_line(text, at);
    const std::size_t colon = line.find(':');
    const std::string_view field = line.substr(0, colon);
    std::string_view rest =
        colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
    if (rest.starts_with(' ')) rest.remove_prefix(1);
    // Logs drop the empty lines between events: one that is whole ends before the next.
    const bool whole = !data.empty() && (field == "data" || field == "event") &&
                       (trimmed(data) == "[DONE]" || m_document.parse(data));
    if (line.empty() || whole) {
      if (auto done = flush(); !done) return done;
    }
    if (field == "event") name = std::string(rest);
    if (field == "data") data += (data.empty() ? "" : "\n") + std::string(rest);
  }
  return flush();
}

Result<void> ResponseReader::binary_events(std::string_view bytes) {
  const BinaryEvents read = read_binary_events(bytes);
  StreamAssembler assembler(m_name,
                            [this](Response&& response) { return give(std::move(response), {}); });
  for (const std::string& event : read.events) {
    if (auto done = m_document.parse(event); !done) {
      assembler.warn("bad_event", done.error().message);
      continue;
    }
    if (auto done = assembler.feed("", m_document); !done) return done;
  }
  if (!read.problem.empty()) assembler.warn("stream_cut", read.problem);
  return assembler.finish(display());
}

// ---- several values ----

// Lines that are events of one answer (Ollama, Bedrock), or a response each.
Result<void> ResponseReader::lines(std::string_view text) {
  std::size_t at = 0;
  if (m_document.parse(trimmed(next_line(text, at))) && is_stream_piece(m_document.root())) {
    return line_stream(text);
  }
  std::size_t line_number = 0;
  std::size_t good = 0;
  bool discovery = false;
  std::optional<Error> first_error;
  at = 0;
  while (at < text.size()) {
    const std::string_view line = trimmed(next_line(text, at));
    ++line_number;
    const bool of_probe = is_probe_discovery(line);
    discovery = discovery || of_probe;
    if (line.empty() || of_probe) continue;
    std::optional<Error> problem;
    if (auto done = single_line(line, line_number, problem); !done) return done;
    good += problem ? 0 : 1;
    if (problem && !first_error) first_error = std::move(problem);
  }
  if (good == 0 && first_error) return tl::unexpected(*first_error);
  if (good == 0 && discovery) return discovery_only(m_name);
  return {};
}

Result<void> ResponseReader::discovery_only(const std::string& source) {
  return fail(
      ErrorKind::malformed,
      fmt::format("{}: holds only what a probe asked about its server (stage discovery), no "
                  "answer to a prompt",
                  escape_for_display(source)));
}

Result<void> ResponseReader::single_line(std::string_view line, std::size_t number,
                                         std::optional<Error>& problem) {
  const std::string source = fmt::format("{}:{}", m_name, number);
  m_refused = false;
  auto done = m_document.parse(line);
  if (done) done = value(m_document.root(), source, 0);
  if (done || m_refused) return done;
  const std::string reason = fmt::format("line {}: {}", number, done.error().message);
  problem = Error{.kind = ErrorKind::malformed,
                  .message = fmt::format("{}: {}", display(), reason),
                  .detail = {}};
  return give_broken(source, reason, custom_id_of_line(line));
}

Result<void> ResponseReader::line_stream(std::string_view text) {
  StreamAssembler assembler(m_name,
                            [this](Response&& response) { return give(std::move(response), {}); });
  std::size_t at = 0;
  std::size_t line_number = 0;
  while (at < text.size()) {
    const std::string_view line = trimmed(next_line(text, at));
    ++line_number;
    if (line.empty()) continue;
    if (auto done = m_document.parse(line); !done) {
      assembler.warn("bad_event", fmt::format("line {}: {}", line_number, done.error().message));
      continue;
    }
    if (auto done = assembler.feed("", m_document); !done) return done;
  }
  return assembler.finish(display());
}

// Values one after the other over any lines, with commas between them or none; a list that was
// cut short is read so too.
Result<void> ResponseReader::sequence(std::string_view text) {
  std::size_t used = 0;
  if (m_document.parse_first(text, used) && is_stream_piece(m_document.root())) {
    return sequence_stream(text);
  }
  std::size_t position = 0;
  std::size_t good = 0;
  std::optional<Error> first_error;
  for (std::size_t at = skip_separators(text, 0); at < text.size() && text[at] != ']';
       at = skip_separators(text, at)) {
    const std::string source = fmt::format("{}[{}]", m_name, position++);
    auto done = m_document.parse_first(text.substr(at), used);
    const bool parsed = static_cast<bool>(done);
    const bool cut = !parsed && at + byte_of(done.error(), text.size() - at) >= text.size();
    if (parsed) done = value(m_document.root(), source, 0);
    good += done ? 1 : 0;
    if (!done) {
      if (m_refused) return done;
      if (!first_error) first_error = done.error();
      auto given = give_broken(
          source, cut ? fmt::format("the file ends inside this response, it was cut off ({})",
                                    done.error().message)
                      : done.error().message);
      if (!given) return given;
    }
    at = parsed ? at + used : std::min(text.find("\n{", at + 1), text.size());
  }
  if (good == 0 && first_error) return unreadable(text, *first_error);
  return {};
}

Result<void> ResponseReader::sequence_stream(std::string_view text) {
  StreamAssembler assembler(m_name,
                            [this](Response&& response) { return give(std::move(response), {}); });
  std::size_t used = 0;
  for (std::size_t at = skip_separators(text, 0); at < text.size() && text[at] != ']';
       at = skip_separators(text, at + used)) {
    if (auto done = m_document.parse_first(text.substr(at), used); !done) {
      assembler.warn("bad_event", done.error().message);
      break;
    }
    if (auto done = assembler.feed("", m_document); !done) return done;
  }
  return assembler.finish(display());
}

Result<void> ResponseReader::read_inside(std::string_view text, std::string_view name,
                                         const ResponseTaker& take, int depth) {
  JsonDocument document;
  return ResponseReader(name, take, document, depth).read(text);
}

Result<void> read_responses(std::string_view text, std::string_view name,
                            const ResponseTaker& take) {
  JsonDocument document;
  return ResponseReader(name, take, document).read(text);
}

Result<void> read_response_line(std::string_view line, std::string_view name, std::int64_t number,
                                JsonDocument& document, const ResponseTaker& take) {
  std::optional<Error> problem;
  return ResponseReader(name, take, document)
      .single_line(line, static_cast<std::size_t>(number), problem);
}

bool is_line_of_stream(JsonValue value) { return is_stream_piece(value); }

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
