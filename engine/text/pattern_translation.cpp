// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "engine/text/pattern.h"
#include "engine/text/unicode_versions.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

// Unicode White_Space, which is what \s means to Oniguruma. PCRE2's \s also has U+180E.
constexpr std::string_view kSpaces =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// \w of Oniguruma: letters, marks, decimal digits and letter numbers, connectors, circled letters,
// and the superscripts and fractions of Latin-1.
constexpr std::string_view kWord =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";

class Translator {
 public:
  Translator(std::string_view expression, std::string_view name, UnicodeTables tables)
      : m_in(expression), m_name(name), m_with_added(tables == UnicodeTables::with_added) {}

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

  // A class, or its contents inside one.
  void put_class(std::string_view contents, bool negated) {
    m_out +=
        m_in_class ? std::string(contents) : fmt::format("[{}{}]", negated ? "^" : "", contents);
  }

  std::string added(std::string_view category) const {
    return m_with_added ? characters_added_to(category) : std::string();
  }

  void escape(char letter) {
    const bool negated = letter == 'S' || letter == 'W' || letter == 'D';
    if (letter == 'H' || (negated && m_in_class && letter != 'S')) {
      m_fault = fmt::format("\\{}", letter);
      return;
    }
    if (letter == 's' || (letter == 'S' && !m_in_class)) {
      put_class(kSpaces, negated);
    } else if (letter == 'w' || letter == 'W') {
      const std::string more = added("L") + added("M") + added("Nd") + added("Nl");
      put_class(std::string(kWord) + more, negated);
    } else if (letter == 'd' || letter == 'D') {
      put_class("\\p{Nd}" + added("Nd"), negated);
    } else if (letter == 'h') {
      put_class("0-9a-fA-F", false);  // Ruby: a hexadecimal digit
    } else if (letter == 'p' && m_with_added && property()) {
      return;
    } else {
      m_out += '\\';
      m_out += letter;
    }
    m_at += 2;
  }

  // \p{L} with what was added to it; false where nothing was, or it is another kind of property.
  bool property() {
    const std::size_t close = m_in.find('}', m_at);
    if (m_at + 2 >= m_in.size() || m_in[m_at + 2] != '{' || close == std::string_view::npos) {
      return false;
    }
    const std::string_view category = m_in.substr(m_at + 3, close - m_at - 3);
    const std::string more = category.empty() ? std::string() : added(category);
    if (more.empty()) return false;
    put_class(fmt::format("\\p{{{}}}{}", category, more), false);
    m_at = close + 1;
    return true;
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
      if (m_in.substr(m_at).starts_with("[:punct:]")) {  // Ruby: punctuation and symbols
        m_out += "\\p{P}\\p{S}" + added("P") + added("S");
        m_at = close + 2;
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
  bool m_with_added;
};

}  // namespace

Result<std::string> translate_expression(std::string_view expression, std::string_view name,
                                         UnicodeTables tables) {
  return Translator(expression, name, tables).run();
}

}  // namespace driftscope
