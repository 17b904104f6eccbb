// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/response_lines.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/import/json_document.h"
#include "analysis/import/logprob_reading.h"
#include "analysis/import/response_file.h"
#include "analysis/import/response_headers.h"

namespace driftscope {
namespace {

constexpr std::size_t kStretch = std::size_t{64} << 20U;  // between two calls of `passed`

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Walks over the members of an object without reading what is in them.
class MemberScan {
 public:
  explicit MemberScan(std::string_view text) : m_text(text) {}

  std::string custom_id() {
    if (!take('{')) return {};
    std::string_view id;
    bool answered = false;
    while (!(answered && !id.empty())) {
      const std::string_view key = quoted();
      if (key.empty() || !take(':')) break;
      answered = answered || key == "\"response\"" || key == "\"error\"" || key == "\"result\"";
      if (answered && !id.empty()) break;
      skip_space();
      const std::size_t begin = m_at;
      if (!skip_value()) break;
      if (key == "\"custom_id\"" && id.empty()) id = m_text.substr(begin, m_at - begin);
      if (!take(',')) break;
    }
    if (!answered || !id.starts_with('"')) return {};
    JsonDocument document;
    return document.parse(id) ? document.root().text() : std::string();
  }

 private:
  void skip_space() {
    while (m_at < m_text.size() && is_space(m_text[m_at])) ++m_at;
  }
  bool take(char wanted) {
    skip_space();
    if (m_at >= m_text.size() || m_text[m_at] != wanted) return false;
    ++m_at;
    return true;
  }
  // A text with its quotes; empty where there is none.
  std::string_view quoted() {
    skip_space();
    const std::size_t begin = m_at;
    if (m_at >= m_text.size() || m_text[m_at] != '"') return {};
    for (++m_at; m_at < m_text.size(); ++m_at) {
      if (m_text[m_at] == '\\') {
        ++m_at;
      } else if (m_text[m_at] == '"') {
        ++m_at;
        return m_text.substr(begin, m_at - begin);
      }
    }
    return {};
  }
  bool skip_value() {
    std::size_t depth = 0;
    do {
      m_at = m_text.find_first_of("\"{}[],", m_at);
      if (m_at == std::string_view::npos) return false;
      const char c = m_text[m_at];
      if (c == '"') {
        if (quoted().empty()) return false;
        if (depth == 0) return true;
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}' || c == ']')) return true;  // behind a word
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++m_at;
    } while (depth > 0);
    return true;
  }

  std::string_view m_text;
  std::size_t m_at = 0;
};

// Whether the first lines are objects of their own that are no events of one answer's stream.
bool holds_lines(std::string_view text) {
  JsonDocument document;
  std::size_t at = 0;
  std::size_t objects = 0;
  std::size_t readable = 0;
  while (at < text.size() && objects < 3) {
    const std::string_view line = trimmed(next_line(text, at));
    if (line.empty()) continue;
    if (!line.starts_with('{')) return false;
    ++objects;
    if (!document.parse(line)) continue;
    ++readable;
    if (is_line_of_stream(document.root())) return false;
  }
  return objects >= 2 && readable >= 1;
}

// Whether something can be read in the line, of whatever format.
bool is_answer(std::string_view line, JsonDocument& document) {
  bool readable = false;
  (void)read_response_line(line, "", 0, document, [&](Response&& response) -> Result<void> {
    readable = readable || response.format != "unreadable";
    return {};
  });
  return readable;
}

// Where the lines of a text end, one after the other.
class LineEnds {
 public:
  LineEnds(std::string_view text, const TextReader& reader) : m_text(text), m_reader(reader) {
    if (m_reader) m_buffer.resize(kPiece);
  }
  // The text's end where there is no further line end.
  std::size_t next() {
    if (!m_reader) {
      m_at = std::min(m_text.find('\n', m_at), m_text.size());
      return m_at == m_text.size() ? m_at : m_at++;
    }
    while (true) {
      const std::string_view piece(m_buffer.data() + m_used, m_filled - m_used);
      const std::size_t found = piece.find('\n');
      if (found != std::string_view::npos) {
        m_used += found + 1;
        return std::min(m_at + m_used - 1, m_text.size());
      }
      m_at += m_filled;
      m_used = 0;
      m_filled = m_reader(m_buffer.data(), m_buffer.size());
      if (m_filled == 0) return m_text.size();
    }
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 18U;  // stays in the caches
  std::string_view m_text;
  const TextReader& m_reader;
  std::string m_buffer;
  std::size_t m_at = 0;  // of the buffer's first byte; without a reader, of the next line
  std::size_t m_used = 0, m_filled = 0;
};

}  // namespace

std::string custom_id_of_line(std::string_view line) { return MemberScan(line).custom_id(); }

bool is_probe_discovery(std::string_view line) {
  // As a probe writes it: the file is its own.
  return line.starts_with(R"({"stage":"discovery",)");
}

std::optional<ResponseLines> find_response_lines(
    std::string_view text, const TextReader& reader,
    const std::function<void(std::string_view)>& passed) {
  std::size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  if (!holds_lines(text.substr(at))) return std::nullopt;
  ResponseLines found;
  found.by_custom_id = true;
  JsonDocument document;
  LineEnds ends(text, reader);
  std::size_t told = 0;
  for (std::int64_t number = 1; at < text.size(); ++number) {
    const std::size_t end = ends.next();
    const std::string_view line = trimmed(text.substr(at, end - at));
    at = std::min(end + 1, text.size());
    if (line.empty() || is_probe_discovery(line)) continue;
    if (line.starts_with('[')) return std::nullopt;
    found.lines.push_back({.text = line, .number = number});
    if (found.by_custom_id) {
      std::string id = custom_id_of_line(line);
      if (id.empty() && is_answer(line, document)) found.by_custom_id = false;
      found.lines.back().custom_id = std::move(id);
    }
    if (passed && (at - told >= kStretch || at >= text.size())) {
      passed(text.substr(told, at - told));
      told = at;
    }
  }
  if (found.lines.empty()) return std::nullopt;
  return found;
}

struct LineReader::Memory {
  JsonDocument document;
  JsonDocument of_step;
};

namespace {

std::vector<Response> responses_of(const ResponseLine& line, std::string_view name,
                                   JsonDocument& document) {
  std::vector<Response> responses;
  const ResponseTaker take = [&](Response&& response) -> Result<void> {
    responses.push_back(std::move(response));
    return {};
  };
  // Only `take` could fail.
  (void)read_response_line(line.text, name, line.number, document, take);
  return responses;
}

std::size_t steps_left_out(const std::vector<Response>& responses) {
  std::size_t count = 0;
  for (const Response& response : responses) {
    for (const ResponseChoice& choice : response.choices) {
      for (const ResponseChannel* channel : {&choice.content, &choice.reasoning, &choice.refusal}) {
        for (const ResponseStep& step : channel->steps) {
          // A value that is looked up among the alternatives needs them.
          const bool known = step.logprob.state != LogprobState::missing;
          count += step.alternatives_left_out > 0 && known ? 1 : 0;
        }
      }
    }
  }
  return count;
}

// Values are as precise as a response's longest one (response_grade.cpp). Where the chosen ones are
// short, the alternatives may be longer, or may be none of the powers of two that these are.
class ChosenPrecision {
 public:
  void add(const ResponseStep& step) {
    const Logprob& value = step.logprob;
    if (value.state != LogprobState::number) return;
    m_most = std::max(m_most, value.decimals);
    m_values.push_back(value.value);
  }
  // Decides as the whole reading would only with the alternatives.
  [[nodiscard]] bool may_mislead(const std::vector<std::string_view>& left_out) const {
    constexpr int kFine = 6;  // what a longer one could change is below any drift that matters
    if (m_most < 0 || m_most > kFine) return false;
    const double scale = std::ldexp(1.0, m_most);
    const bool powers = std::all_of(m_values.begin(), m_values.end(), [&](double value) {
      return value * scale == std::round(value * scale);
    });
    return powers || std::any_of(left_out.begin(), left_out.end(),
                                 [&](std::string_view text) { return holds_longer(text); });
  }

 private:
  [[nodiscard]] bool holds_longer(std::string_view text) const {
    for (std::size_t at = text.find('.'); at != std::string_view::npos; at = text.find('.', at)) {
      const std::size_t begin = ++at;
      while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
      const bool power = at < text.size() && (text[at] == 'e' || text[at] == 'E');
      if (power || static_cast<int>(at - begin) > m_most) return true;
    }
    return false;
  }

  int m_most = -1;
  std::vector<double> m_values;
};

bool alternatives_decide(const std::vector<Response>& responses) {
  for (const Response& response : responses) {
    ChosenPrecision precision;
    std::vector<std::string_view> left_out;
    for (const ResponseChoice& choice : response.choices) {
      for (const ResponseChannel* channel : {&choice.content, &choice.reasoning, &choice.refusal}) {
        for (const ResponseStep& step : channel->steps) {
          precision.add(step);
          if (step.alternatives_left_out > 0) left_out.push_back(step.alternatives_text);
        }
      }
    }
    if (!left_out.empty() && precision.may_mislead(left_out)) return true;
  }
  return false;
}

}  // namespace

LineReader::LineReader() : m_memory(std::make_unique<Memory>()) {}
LineReader::~LineReader() = default;

std::vector<Response> LineReader::read(const ResponseLine& line, std::string_view name) {
  m_memory->document.leave_out({});
  return responses_of(line, name, m_memory->document);
}

std::vector<Response> LineReader::read_without_alternatives(const ResponseLine& line,
                                                            std::string_view name) {
  m_memory->document.leave_out("top_logprobs");
  std::vector<Response> responses = responses_of(line, name, m_memory->document);
  // A list that is no step's has another meaning; then all is read.
  const bool whole = steps_left_out(responses) != m_memory->document.arrays_left_out() ||
                     alternatives_decide(responses);
  return whole ? read(line, name) : responses;
}

void LineReader::add_alternatives(ResponseStep& step) { read_left_out(step, m_memory->of_step); }

}  // namespace driftscope
