// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/literal.h"
#include "engine/text/jinja/token.h"
#include "engine/text/jinja/value.h"
#include "kernels/base/utf8.h"

namespace driftscope::jinja {
namespace {

// Longest first.
constexpr std::array<std::string_view, 27> kSymbols{
    "//", "**", "==", "!=", "<=", ">=", "+", "-", "/", "*", "%", "~", "[", "]",
    "(",  ")",  "{",  "}",  "<",  ">",  "=", ".", ":", "|", ",", ";", "!"};

// \r\n and \r become \n; one line break at the end is left out.
std::string with_plain_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      text += '\n';
    } else {
      text += source[i];
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : m_source(std::move(source)) {}

  std::vector<Token> run() {
    while (m_at < m_source.size()) data();
    add(TokenKind::end);
    return std::move(m_tokens);
  }

 private:
  [[noreturn]] void stop(std::string message) const {
    throw Failure{.message = std::move(message), .line = m_line};
  }
  [[nodiscard]] std::string_view rest() const { return std::string_view(m_source).substr(m_at); }
  [[nodiscard]] bool looking_at(std::string_view text) const { return rest().starts_with(text); }

  void add(TokenKind kind, std::string text = {}) {
    m_tokens.push_back({.kind = kind, .text = std::move(text), .line = m_line});
  }

  void advance(std::size_t bytes) {
    const std::string_view passed = rest().substr(0, bytes);
    m_line += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    m_at += passed.size();
    if (!passed.empty()) m_line_starting = passed.back() == '\n';
  }

  void skip_space() {
    const std::string_view left = rest();
    advance(left.size() - strip(left, std::nullopt, Ends::left).size());
  }

  // The sign right after the two characters of a tag's begin: '-', '+' or 0.
  [[nodiscard]] char sign_at(std::size_t position) const {
    const char c = position < m_source.size() ? m_source[position] : '\0';
    return c == '-' || c == '+' ? c : '\0';
  }

  void add_data(std::string_view text, char sign, bool strips_line) {
    std::string_view kept = text;
    if (sign == '-') {
      kept = strip(text, std::nullopt, Ends::right);
    } else if (sign != '+' && strips_line) {
      const std::size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
      if ((line > 0 || m_line_starting) &&
          strip(text.substr(line), std::nullopt, Ends::both).empty()) {
        kept = text.substr(0, line);
      }
    }
    if (!kept.empty()) add(TokenKind::data, std::string(kept));
  }

  void data() {
    std::size_t begin = m_at;
    while (true) {
      begin = m_source.find('{', begin);
      if (begin == std::string::npos || begin + 1 >= m_source.size()) {
        add_data(rest(), '+', false);
        advance(rest().size());
        return;
      }
      const char next = m_source[begin + 1];
      if (next == '{' || next == '%' || next == '#') break;
      ++begin;
    }
    const char kind = m_source[begin + 1];
    const char sign = sign_at(begin + 2);
    add_data(rest().substr(0, begin - m_at), sign, kind != '{');
    advance(begin - m_at);
    if (kind == '%' && raw()) return;
    advance(sign == '\0' ? 2 : 3);
    if (kind == '#') return comment();
    tag(kind == '{');
  }

  // Ends a tag: "-%}", "+%}" or "%}" with the line break after it.
  bool end_of(std::string_view close, bool trims, bool keeps) {
    if (looking_at(fmt::format("-{}", close))) {
      advance(1 + close.size());
      skip_space();
      return true;
    }
    if (keeps && looking_at(fmt::format("+{}", close))) {
      advance(1 + close.size());
      return true;
    }
    if (!looking_at(close)) return false;
    advance(close.size());
    if (trims && looking_at("\n")) advance(1);
    return true;
  }

  void comment() {
    std::size_t end = m_source.find("#}", m_at);
    if (end == std::string::npos) stop("a comment {# is not closed; close it with #}");
    if (end > m_at && sign_at(end - 1) != '\0') --end;
    advance(end - m_at);
    end_of("#}", true, true);
  }

  // {% raw %} … {% endraw %}: at its begin; false where it is another tag.
  bool raw() {
    const std::size_t begin = m_at;
    const int line = m_line;
    const bool line_starting = m_line_starting;
    advance(sign_at(m_at + 2) == '\0' ? 2 : 3);
    skip_space();
    if (looking_at("raw")) {
      advance(3);
      skip_space();
      if (end_of("%}", false, false)) {
        raw_body();
        return true;
      }
    }
    m_at = begin;
    m_line = line;
    m_line_starting = line_starting;
    return false;
  }

  void raw_body() {
    for (std::size_t end = m_source.find("{%", m_at); end != std::string::npos;
         end = m_source.find("{%", end + 2)) {
      const char sign = sign_at(end + 2);
      std::string_view after = std::string_view(m_source).substr(end + (sign == '\0' ? 2 : 3));
      after = strip(after, std::nullopt, Ends::left);
      if (!after.starts_with("endraw")) continue;
      after = strip(after.substr(6), std::nullopt, Ends::left);
      if (!after.starts_with("%}") && !after.starts_with("-%}") && !after.starts_with("+%}")) {
        continue;
      }
      add_data(rest().substr(0, end - m_at), sign, true);
      advance(m_source.size() - after.size() - m_at);
      end_of("%}", true, true);
      return;
    }
    stop("{% raw %} is not closed; close it with {% endraw %}");
  }

  void tag(bool variable) {
    add(variable ? TokenKind::variable_begin : TokenKind::block_begin);
    m_open.clear();
    while (true) {
      if (m_open.empty() && end_of(variable ? "}}" : "%}", !variable, !variable)) break;
      if (m_at >= m_source.size()) {
        stop(variable ? "{{ is not closed; close it with }}"
                      : "{% is not closed; close it with %}");
      }
      token();
    }
    add(variable ? TokenKind::variable_end : TokenKind::block_end);
  }

  void token() {
    const std::string_view left = rest();
    const Utf8Step step = decode_utf8(left, 0);
    if (is_space(step.code_point)) return advance(step.length);
    if (step.code_point >= '0' && step.code_point <= '9') return number();
    if (step.code_point == '_' || is_alphabetic(step.code_point)) return name();
    if (step.code_point == '\'' || step.code_point == '"') return text();
    symbol();
  }

  void name() {
    const std::string_view left = rest();
    std::size_t end = 0;
    while (end < left.size()) {
      const Utf8Step step = decode_utf8(left, end);
      const char32_t c = step.code_point;
      if (c != '_' && !is_alphabetic(c) && !is_numeric(c)) break;
      end += step.length;
    }
    add(TokenKind::name, std::string(left.substr(0, end)));
    advance(end);
  }

  void number() {
    const bool after_dot = m_at > 0 && m_source[m_at - 1] == '.';
    const NumberLiteral literal = read_number(rest(), !after_dot);
    if (literal.too_large) stop("an integer of more than 63 bits; they are not supported");
    add(literal.is_real ? TokenKind::real : TokenKind::integer);
    m_tokens.back().integer = literal.integer;
    m_tokens.back().real = literal.real;
    advance(literal.length);
  }

  void text() {
    const char quote = m_source[m_at];
    std::size_t end = m_at + 1;
    while (end < m_source.size() && m_source[end] != quote) {
      end += m_source[end] == '\\' ? std::size_t{2} : std::size_t{1};
    }
    if (end >= m_source.size()) stop("a text is not closed; close it with its quote");
    std::string problem;
    std::string unescaped =
        unescape(std::string_view(m_source).substr(m_at + 1, end - m_at - 1), problem);
    if (!problem.empty()) stop(problem);
    add(TokenKind::text, std::move(unescaped));
    advance(end + 1 - m_at);
  }

  void symbol() {
    const std::string_view left = rest();
    const auto* found =
        std::find_if(kSymbols.begin(), kSymbols.end(),
                     [&](std::string_view symbol) { return left.starts_with(symbol); });
    if (found == kSymbols.end() || *found == "!") {
      const Utf8Step step = decode_utf8(left, 0);
      stop(fmt::format("unexpected character {}", repr_of(Value::of(left.substr(0, step.length)))));
    }
    const char c = found->front();
    if (c == '(' || c == '[' || c == '{') {
      m_open += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (m_open.empty()) stop(fmt::format("unexpected \"{}\"", c));
      if (m_open.back() != c) {
        stop(fmt::format("unexpected \"{}\"; \"{}\" comes first", c, m_open.back()));
      }
      m_open.pop_back();
    }
    add(TokenKind::symbol, std::string(*found));
    advance(found->size());
  }

  std::string m_source;
  std::size_t m_at = 0;
  int m_line = 1;
  bool m_line_starting = true;
  std::string m_open;  // closing brackets that are still to come
  std::vector<Token> m_tokens;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(with_plain_newlines(source)).run();
}

}  // namespace driftscope::jinja
