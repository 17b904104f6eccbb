// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "engine/text/pattern.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

// Unicode White_Space, which is what \s means to Oniguruma. PCRE2's \s also has U+180E.
constexpr std::string_view kSpaces =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

class Translator {
 public:
  Translator(std::string_view expression, std::string_view name) : m_in(expression), m_name(name) {}

  Result<std::string> run() {
    while (m_at < m_in.size() && m_fault.empty()) step();
    if (m_fault.empty()) return std::move(m_out);
    return fail(ErrorKind::malformed,
                fmt::format("{}: pattern \"{}\": {} at byte {} is not supported", m_name,
                            escape_for_display(m_in.substr(0, 80)), m_fault, m_at));
  }

 private:
  void step() {
    const char c = m_in[m_at];
    if (c == '\\' && m_at + 1 < m_in.size()) {
      escape(m_in[m_at + 1]);
    } else if (m_in_class) {
      class_character(c);
    } else {
      if (c == '[')
        enter_class();
      else
        take(1);
    }
  }

  void take(std::size_t count) {
    m_out += m_in.substr(m_at, count);
    m_at += count;
  }

  void escape(char letter) {
    if (letter == 's') {
      m_out += m_in_class ? std::string(kSpaces) : fmt::format("[{}]", kSpaces);
    } else if (letter == 'S' && !m_in_class) {
      m_out += fmt::format("[^{}]", kSpaces);
    } else if (letter == 'h') {
      m_out += m_in_class ? "0-9a-fA-F" : "[0-9a-fA-F]";  // Ruby: a hexadecimal digit
    } else if (letter == 'H') {
      m_fault = "\\H";
      return;
    } else {
      m_out += '\\';
      m_out += letter;
    }
    m_at += 2;
  }

  void enter_class() {
    m_in_class = true;
    take(1);
    if (m_at < m_in.size() && m_in[m_at] == '^') take(1);
    if (m_at < m_in.size() && m_in[m_at] == ']') {  // a literal ] in first place
      m_out += "\\]";
      ++m_at;
    }
  }

  void class_character(char c) {
    if (m_in.substr(m_at).starts_with("[:")) {
      const std::size_t close = m_in.find(":]", m_at);
      if (close == std::string_view::npos) {
        m_fault = "an open [:";
        return;
      }
      take(close + 2 - m_at);
    } else if (c == '[') {
      m_fault = "a class inside a class";
    } else if (m_in.substr(m_at).starts_with("&&")) {
      m_fault = "an intersection of classes";
    } else {
      m_in_class = c != ']';
      take(1);
    }
  }

  std::string_view m_in;
  std::string_view m_name;
  std::string m_out;
  std::string m_fault;
  std::size_t m_at = 0;
  bool m_in_class = false;
};

}  // namespace

Result<std::string> translate_expression(std::string_view expression, std::string_view name) {
  return Translator(expression, name).run();
}

}  // namespace driftscope
