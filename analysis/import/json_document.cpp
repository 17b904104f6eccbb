// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/json_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

constexpr std::size_t kMostOddities = 100;
constexpr std::size_t kMostDuplicateKeyChecks = 64;  // members of an object that are compared

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts(std::string_view text, std::size_t at, std::string_view word) {
  return text.compare(at, word.size(), word) == 0;
}

std::optional<std::uint32_t> hex4(std::string_view text, std::size_t at) {
  if (at + 4 > text.size()) return std::nullopt;
  std::uint32_t value = 0;
  const auto result = std::from_chars(text.data() + at, text.data() + at + 4, value, 16);
  if (result.ec != std::errc{} || result.ptr != text.data() + at + 4) return std::nullopt;
  return value;
}

constexpr std::uint32_t kReplacement = 0xFFFD;
bool is_high(std::uint32_t code) { return code >= 0xD800 && code < 0xDC00; }
bool is_low(std::uint32_t code) { return code >= 0xDC00 && code < 0xE000; }

std::string resolve_escapes(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out += raw[i];
      continue;
    }
    switch (raw[++i]) {
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'u': {
        std::uint32_t code = *hex4(raw, i + 1);
        i += 4;
        if (is_high(code) && starts(raw, i + 1, "\\u")) {
          const auto low = hex4(raw, i + 3);
          if (low && is_low(*low)) {
            code = 0x10000U + ((code - 0xD800U) << 10U) + (*low - 0xDC00U);
            i += 6;
          }
        }
        append_utf8(out, char32_t{is_high(code) || is_low(code) ? kReplacement : code});
        break;
      }
      default:
        out += raw[i];
    }
  }
  return out;
}

}  // namespace

// Lives during parse() only. Recursion is bounded by kMaxDepth.
class JsonParser {
 public:
  JsonParser(JsonDocument& target, std::string_view text) : m_target(target), m_text(text) {}

  Result<std::size_t> run() {
    if (starts(m_text, 0, "\xEF\xBB\xBF")) m_at = 3;
    skip_space();
    if (!value(0)) return fail(ErrorKind::malformed, fmt::format("byte {}: {}", m_at, m_problem));
    skip_space();
    return m_at;
  }

 private:
  using Node = JsonDocument::Node;
  [[nodiscard]] bool refuse(std::string_view problem) {
    m_problem = problem;
    return false;
  }
  void note(std::string_view what, std::size_t offset) {
    if (m_target.m_oddities.size() < kMostOddities) m_target.m_oddities.push_back({what, offset});
  }
  void skip_space() {
    while (m_at < m_text.size() && is_space(m_text[m_at])) ++m_at;
  }
  [[nodiscard]] char peek() const { return m_at < m_text.size() ? m_text[m_at] : '\0'; }
  std::uint32_t add(JsonKind kind) {
    m_target.m_nodes.push_back({.raw = {}, .end = next() + 1, .kind = kind});
    return next() - 1;
  }
  [[nodiscard]] std::uint32_t next() const {
    return static_cast<std::uint32_t>(m_target.m_nodes.size());
  }

  bool value(int depth) {
    if (m_at >= m_text.size()) return refuse("the text ends where a value should be");
    if (next() >= std::numeric_limits<std::uint32_t>::max() - 2) return refuse("too many values");
    switch (m_text[m_at]) {
      case '{':
        return depth < JsonDocument::kMaxDepth ? object(depth) : refuse("nested too deeply");
      case '[':
        return depth < JsonDocument::kMaxDepth ? array(depth) : refuse("nested too deeply");
      case '"':
        return text();
      default:
        return word();
    }
  }

  bool word() {
    struct Word {
      std::string_view spelling;
      JsonKind kind;
      std::string_view oddity;
    };
    static constexpr std::array<Word, 10> kWords{{
        {"null", JsonKind::null, ""},
        {"true", JsonKind::boolean, ""},
        {"false", JsonKind::boolean, ""},
        {"NaN", JsonKind::number, "literal NaN"},
        {"nan", JsonKind::number, "literal NaN"},
        {"-Infinity", JsonKind::number, "literal -Infinity"},
        {"Infinity", JsonKind::number, "literal Infinity"},
        {"-inf", JsonKind::number, "literal -Infinity"},
        {"inf", JsonKind::number, "literal Infinity"},
        {"-NaN", JsonKind::number, "literal NaN"},
    }};
    const char first = m_text[m_at];
    if (is_digit(first) || (first == '-' && m_at + 1 < m_text.size() && is_digit(m_text[m_at + 1])))
      return number();
    for (const Word& row : kWords) {
      if (!starts(m_text, m_at, row.spelling)) continue;
      if (!row.oddity.empty()) note(row.oddity, m_at);
      const std::uint32_t index = add(row.kind);
      m_target.m_nodes[index].raw = m_text.substr(m_at, row.spelling.size());
      m_target.m_nodes[index].boolean = first == 't';
      m_at += row.spelling.size();
      return true;
    }
    return refuse("not a value");
  }

  bool number() {
    const std::size_t begin = m_at;
    if (peek() == '-') ++m_at;
    while (is_digit(peek())) ++m_at;
    if (peek() == '.') {
      ++m_at;
      if (!is_digit(peek())) return refuse("a number ends with its point");
      while (is_digit(peek())) ++m_at;
    }
    if (peek() == 'e' || peek() == 'E') {
      ++m_at;
      if (peek() == '+' || peek() == '-') ++m_at;
      if (!is_digit(peek())) return refuse("a number has an empty exponent");
      while (is_digit(peek())) ++m_at;
    }
    const std::uint32_t index = add(JsonKind::number);
    m_target.m_nodes[index].raw = m_text.substr(begin, m_at - begin);
    return true;
  }

  bool text() {
    const std::size_t begin = ++m_at;
    bool escaped = false;
    while (true) {
      if (m_at >= m_text.size()) return refuse("a text has no closing quote");
      const char c = m_text[m_at];
      if (c == '"') break;
      if (c == '\\') {
        escaped = true;
        if (!escape()) return false;
        continue;
      }
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x80) {
        if (byte < 0x20) note("bare control character", m_at);
        ++m_at;
        continue;
      }
      const Utf8Step step = decode_utf8(m_text, m_at);
      if (step.state != Utf8State::valid) note("invalid UTF-8", m_at);
      m_at += step.length;
    }
    const std::uint32_t index = add(JsonKind::text);
    m_target.m_nodes[index].raw = m_text.substr(begin, m_at - begin);
    m_target.m_nodes[index].escaped = escaped;
    ++m_at;
    return true;
  }

  bool escape() {
    const std::size_t at = m_at;
    if (m_at + 1 >= m_text.size()) return refuse("a text has no closing quote");
    const char kind = m_text[m_at + 1];
    if (kind == 'u') {
      const auto code = hex4(m_text, m_at + 2);
      if (!code) return refuse("\\u needs four hexadecimal digits");
      m_at += 6;
      if (is_low(*code)) note("lone surrogate", at);
      if (!is_high(*code)) return true;
      const auto low = starts(m_text, m_at, "\\u") ? hex4(m_text, m_at + 2) : std::nullopt;
      if (low && is_low(*low)) {
        m_at += 6;
      } else {
        note("lone surrogate", at);
      }
      return true;
    }
    if (std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos) {
      return refuse("an escape that JSON does not have");
    }
    m_at += 2;
    return true;
  }

  bool array(int depth) {
    const std::uint32_t index = add(JsonKind::array);
    ++m_at;
    skip_space();
    std::uint32_t count = 0;
    if (peek() == ']') return close(index, count);
    while (true) {
      skip_space();
      if (!value(depth + 1)) return false;
      ++count;
      skip_space();
      if (peek() == ',') {
        ++m_at;
        continue;
      }
      if (peek() == ']') return close(index, count);
      return refuse("an array needs , or ] here");
    }
  }

  bool object(int depth) {
    const std::uint32_t index = add(JsonKind::object);
    ++m_at;
    skip_space();
    std::uint32_t count = 0;
    if (peek() == '}') return close(index, count);
    while (true) {
      skip_space();
      if (peek() != '"') return refuse("a member needs its name in quotes");
      const std::size_t key_at = m_at;
      if (!text()) return false;
      note_duplicate(index, count, key_at);
      skip_space();
      if (peek() != ':') return refuse("a member needs : after its name");
      ++m_at;
      skip_space();
      if (!value(depth + 1)) return false;
      ++count;
      skip_space();
      if (peek() == ',') {
        ++m_at;
        continue;
      }
      if (peek() == '}') return close(index, count);
      return refuse("an object needs , or } here");
    }
  }

  bool close(std::uint32_t index, std::uint32_t count) {
    ++m_at;
    m_target.m_nodes[index].count = count;
    m_target.m_nodes[index].end = next();
    return true;
  }

  // The newest node is a key; are there earlier ones of the same spelling?
  void note_duplicate(std::uint32_t object, std::uint32_t count, std::size_t offset) {
    const auto& nodes = m_target.m_nodes;
    const std::string_view key = nodes.back().raw;
    std::uint32_t at = object + 1;
    for (std::uint32_t i = 0; i < std::min<std::size_t>(count, kMostDuplicateKeyChecks); ++i) {
      if (nodes[at].raw == key) {
        note("duplicate key", offset);
        return;
      }
      at = nodes[at + 1].end;
    }
  }

  JsonDocument& m_target;
  std::string_view m_text;
  std::size_t m_at = 0;
  std::string_view m_problem;
};

Result<void> JsonDocument::parse(std::string_view text) {
  std::size_t used = 0;
  if (auto done = parse_first(text, used); !done) return done;
  if (used == text.size()) return {};
  m_nodes.clear();
  return fail(ErrorKind::malformed, fmt::format("byte {}: something follows the value", used));
}

Result<void> JsonDocument::parse_first(std::string_view text, std::size_t& used) {
  m_nodes.clear();
  m_oddities.clear();
  auto end = JsonParser(*this, text).run();
  if (!end) {
    m_nodes.clear();
    return tl::unexpected(std::move(end.error()));
  }
  used = *end;
  return {};
}

JsonKind JsonValue::kind() const {
  return m_document == nullptr ? JsonKind::null : m_document->m_nodes[m_index].kind;
}

JsonValue JsonValue::operator[](std::string_view key) const {
  if (!is_object()) return {};
  const auto& nodes = m_document->m_nodes;
  std::uint32_t at = m_index + 1;
  for (std::uint32_t i = 0; i < nodes[m_index].count; ++i) {
    const auto& node = nodes[at];
    if (node.escaped ? resolve_escapes(node.raw) == key : node.raw == key) {
      return {m_document, at + 1};
    }
    at = nodes[at + 1].end;
  }
  return {};
}

bool JsonValue::has(std::string_view key) const { return static_cast<bool>((*this)[key]); }

std::size_t JsonValue::size() const {
  return is_array() || is_object() ? m_document->m_nodes[m_index].count : 0;
}

JsonValue JsonValue::at(std::size_t index) const {
  if (!is_array() || index >= size()) return {};
  auto it = begin();
  for (std::size_t i = 0; i < index; ++i) ++it;
  return *it;
}

std::string_view JsonValue::raw() const {
  return m_document == nullptr ? std::string_view{} : m_document->m_nodes[m_index].raw;
}

std::string JsonValue::text() const {
  if (!is_text()) return {};
  const auto& node = m_document->m_nodes[m_index];
  return node.escaped ? resolve_escapes(node.raw) : std::string(node.raw);
}

std::string JsonValue::text_or(std::string_view fallback) const {
  return is_text() ? text() : std::string(fallback);
}

std::optional<double> JsonValue::number() const {
  if (!is_number()) return std::nullopt;
  const std::string_view digits = raw();
  const bool negative = digits.starts_with('-');
  const char first = digits[negative ? 1 : 0];
  if (first == 'N' || first == 'n') return std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (first == 'I' || first == 'i') return negative ? -kInfinity : kInfinity;
  double value = 0.0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec == std::errc{}) return value;
  // Beyond double: large, or so small that it is nothing.
  const std::size_t exponent = digits.find_first_of("eE");
  const bool tiny = exponent != std::string_view::npos && exponent + 1 < digits.size() &&
                    digits[exponent + 1] == '-';
  if (tiny) return negative ? -0.0 : 0.0;
  return negative ? -kInfinity : kInfinity;
}

std::optional<std::int64_t> JsonValue::integer() const {
  if (!is_number()) return std::nullopt;
  const std::string_view digits = raw();
  std::int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec != std::errc{} || result.ptr != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<bool> JsonValue::boolean() const {
  if (kind() != JsonKind::boolean) return std::nullopt;
  return m_document->m_nodes[m_index].boolean;
}

std::string JsonValue::canonical() const {
  if (!is_array() && !is_object()) {
    return is_text() ? fmt::format("\"{}\"", raw()) : std::string(m_document ? raw() : "null");
  }
  std::vector<std::string> parts;
  for (auto it = begin(); it != end(); ++it) {
    parts.push_back(is_object() ? fmt::format("\"{}\":{}", it.key(), (*it).canonical())
                                : (*it).canonical());
  }
  if (is_object()) std::sort(parts.begin(), parts.end());
  return fmt::format("{}{}{}", is_object() ? '{' : '[', fmt::join(parts, ","),
                     is_object() ? '}' : ']');
}

JsonValue::Iterator JsonValue::begin() const {
  const bool keyed = is_object();
  if (size() == 0) return end();
  return {m_document, m_index + (keyed ? 2 : 1), keyed};
}

JsonValue::Iterator JsonValue::end() const {
  const bool keyed = is_object();
  const bool holds = is_array() || keyed;
  const std::uint32_t after = holds ? m_document->m_nodes[m_index].end : 0;
  return {m_document, keyed ? after + 1 : after, keyed};
}

JsonValue::Iterator& JsonValue::Iterator::operator++() {
  m_index = m_document->m_nodes[m_index].end + (m_keyed ? 1 : 0);
  return *this;
}

std::string JsonValue::Iterator::key() const {
  if (!m_keyed) return {};
  const auto& node = m_document->m_nodes[m_index - 1];
  return node.escaped ? resolve_escapes(node.raw) : std::string(node.raw);
}

}  // namespace driftscope
