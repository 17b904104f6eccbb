// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/json_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "analysis/import/json_escapes.h"
#include "analysis/import/json_pass.h"
#include "analysis/import/json_scan.h"
#include "kernels/base/utf8.h"

namespace driftscope {

using namespace json_escapes;

namespace {

constexpr std::size_t kMostOddities = 100;
constexpr std::size_t kMostDuplicateKeyChecks = 64;  // members of an object that are compared

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

// Lives during run() only. Recursion is bounded by kMaxDepth.
class JsonParser::State {
 public:
  State(JsonDocument& target, std::string_view text) : m_target(target), m_text(text) {}

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
    m_target.m_nodes.push_back({.kind = kind});
    return next() - 1;
  }
  // A value or key whose raw text is from `begin` to here.
  Node& add_raw(JsonKind kind, std::size_t begin) {
    return m_target.m_nodes.emplace_back(Node{.begin = static_cast<std::uint32_t>(begin),
                                              .size = static_cast<std::uint32_t>(m_at - begin),
                                              .kind = kind});
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
      const std::size_t begin = m_at;
      m_at += row.spelling.size();
      add_raw(row.kind, begin).boolean = first == 't';
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
    add_raw(JsonKind::number, begin);
    return true;
  }

  bool text() {
    const std::size_t begin = ++m_at;
    bool escaped = false;
    while (true) {
      m_at = plain_end(m_text, m_at);
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
    add_raw(JsonKind::text, begin).escaped = escaped;
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

  // [1, 22, 333]: digits and nothing else become one node. False, and nothing is done, for others.
  bool list_of_digits() {
    std::size_t at = m_at + 1;
    const std::size_t begin = at;
    std::uint32_t count = 0;
    while (at < m_text.size() && is_digit(m_text[at])) {
      ++count;
      while (at < m_text.size() && is_digit(m_text[at])) ++at;
      const std::size_t end = at;
      if (at < m_text.size() && m_text[at] == ']') {
        m_at = end;
        Node& node = add_raw(JsonKind::array, begin);
        node.end = count;
        node.digits = true;
        ++m_at;
        return true;
      }
      if (at >= m_text.size() || m_text[at] != ',') return false;
      ++at;
      while (at < m_text.size() && is_space(m_text[at])) ++at;
    }
    return false;
  }

  bool array(int depth) {
    if (list_of_digits()) return true;
    const std::uint32_t index = add(JsonKind::array);
    ++m_at;
    skip_space();
    std::uint32_t count = 0;
    if (peek() == ']') return close(index, count);
    while (true) {
      skip_space();
      if (!value(depth + 1)) return false;
      ++count;
      if (separator()) continue;
      if (peek() == ']') return close(index, count);
      return refuse("an array needs , or ] here");
    }
  }

  // A comma after a child; what follows it must be another.
  bool separator() {
    skip_space();
    if (peek() != ',') return false;
    ++m_at;
    return true;
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
      const Node& key = m_target.m_nodes.back();
      const std::string_view unwanted = m_target.m_left_out_key;
      const bool leave_out = !unwanted.empty() && key.size == unwanted.size() &&
                             m_text.compare(key.begin, key.size, unwanted) == 0;
      const std::uint32_t member = next();
      skip_space();
      if (peek() != ':') return refuse("a member needs : after its name");
      ++m_at;
      skip_space();
      const std::size_t value_at = m_at;
      if (!(leave_out && pass_plain_list())) {
        if (!value(depth + 1)) return false;
        if (leave_out) forget_elements(member, value_at);
      }
      ++count;
      if (separator()) continue;
      if (peek() == '}') return close(index, count);
      return refuse("an object needs , or } here");
    }
  }

  // Most lists that are left out hold nothing odd and need no nodes at any time.
  bool pass_plain_list() {
    if (peek() != '[') return false;
    const std::size_t first = m_text.find_first_not_of(" \t\r\n", m_at + 1);
    if (first == std::string_view::npos || is_digit(m_text[first])) return false;
    const auto passed = pass_list(m_text, m_at);
    if (!passed) return false;
    const std::size_t begin = m_at;
    m_at = passed->end;
    Node& list = add_raw(JsonKind::array, begin);
    list.end = passed->elements;
    list.left_out = true;
    ++m_target.m_arrays_left_out;
    return true;
  }

  // The newest value, whose text begins at `begin`: a list of other things than digits is emptied.
  void forget_elements(std::uint32_t index, std::size_t begin) {
    Node& list = m_target.m_nodes[index];
    if (list.kind != JsonKind::array || list.digits || list.size == 0) return;
    list.end = list.size;
    list.begin = static_cast<std::uint32_t>(begin);
    list.size = static_cast<std::uint32_t>(m_at - begin);
    list.left_out = true;
    m_target.m_nodes.resize(index + 1);
    ++m_target.m_arrays_left_out;
  }

  bool close(std::uint32_t index, std::uint32_t count) {
    ++m_at;
    m_target.m_nodes[index].size = count;
    m_target.m_nodes[index].end = next();
    return true;
  }

  // The newest node is a key; are there earlier ones of the same spelling?
  void note_duplicate(std::uint32_t object, std::uint32_t count, std::size_t offset) {
    const auto& nodes = m_target.m_nodes;
    const Node& key = nodes.back();
    std::uint32_t at = object + 1;
    for (std::uint32_t i = 0; i < std::min<std::size_t>(count, kMostDuplicateKeyChecks); ++i) {
      const Node& earlier = nodes[at];
      if (earlier.size == key.size &&
          std::memcmp(m_text.data() + earlier.begin, m_text.data() + key.begin, key.size) == 0) {
        note("duplicate key", offset);
        return;
      }
      at = m_target.behind(at + 1);
    }
  }

  JsonDocument& m_target;
  std::string_view m_text;
  std::size_t m_at = 0;
  std::string_view m_problem;
};

Result<std::size_t> JsonParser::run(JsonDocument& target, std::string_view text) {
  return State(target, text).run();
}

}  // namespace driftscope
