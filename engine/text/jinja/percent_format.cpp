// SPDX-License-Identifier: Apache-2.0
// "…%s…" % values.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/machine.h"
#include "engine/text/jinja/operators.h"
#include "kernels/base/utf8.h"

namespace driftscope::jinja {
namespace {

using Kind = Value::Kind;

struct Conversion {
  bool minus = false, plus = false, space = false, zero = false, alternative = false;
  std::int64_t width = 0;
  std::int64_t precision = -1;
  char type = 's';
};

class PercentFormatter {
 public:
  PercentFormatter(std::string_view format, const Value& values)
      : m_format(format), m_values(values) {
    m_is_tuple = values.is(Kind::sequence) && values.sequence().form == Sequence::Form::tuple;
  }

  std::string run() {
    while (m_at < m_format.size()) {
      const char c = m_format[m_at++];
      if (c != '%') {
        m_text += c;
        continue;
      }
      conversion();
      if (m_text.size() > kMaxTextBytes) raise("% makes too long a text");
    }
    const bool all_taken = m_is_tuple ? m_next == m_values.sequence().items.size() : m_next > 0;
    // A mapping or a list may be left over.
    const bool may_remain =
        m_by_name || m_values.is(Kind::mapping) || (m_values.is(Kind::sequence) && !m_is_tuple);
    if (!all_taken && !may_remain) raise("% has more values than the text has places");
    return std::move(m_text);
  }

 private:
  char peek() {
    if (m_at >= m_format.size()) raise("the text before % ends inside a place");
    return m_format[m_at];
  }

  const Value& next_value() {
    if (m_is_tuple) {
      const List& items = m_values.sequence().items;
      if (m_next >= items.size()) raise("% has fewer values than the text has places");
      return items[m_next++];
    }
    if (m_next++ > 0) raise("% has fewer values than the text has places");
    return m_values;
  }

  std::int64_t number() {
    if (peek() == '*') {
      ++m_at;
      const std::int64_t given = integer_of(next_value(), "* in a place of %");
      if (given > 1000000 || given < -1000000) raise("a width of % is too large");
      return given;
    }
    std::int64_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + (m_format[m_at++] - '0');
      if (value > 1000000) raise("a width of % is too large");
    }
    return value;
  }

  void conversion() {
    Conversion made;
    const Value* value = nullptr;
    if (peek() == '(') {
      const std::size_t end = m_format.find(')', m_at);
      if (end == std::string_view::npos) raise("% has a name without a closing bracket");
      if (!m_values.is(Kind::mapping)) raise("% with names needs a mapping");
      const auto name = m_format.substr(m_at + 1, end - m_at - 1);
      value = m_values.mapping().find(name);
      if (value == nullptr) raise(fmt::format("% has no value named \"{}\"", name));
      m_by_name = true;
      m_at = end + 1;
    }
    flags(made);
    made.width = number();
    if (made.width < 0) {
      made.minus = true;
      made.width = -made.width;
    }
    if (peek() == '.') {
      ++m_at;
      made.precision = std::max<std::int64_t>(number(), 0);
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L') ++m_at;
    made.type = m_format[m_at++];
    if (made.type == '%') {
      m_text += '%';
      return;
    }
    convert(made, value != nullptr ? *value : next_value());
  }

  void flags(Conversion& made) {
    for (;; ++m_at) {
      switch (peek()) {
        case '-':
          made.minus = true;
          break;
        case '+':
          made.plus = true;
          break;
        case ' ':
          made.space = true;
          break;
        case '0':
          made.zero = true;
          break;
        case '#':
          made.alternative = true;
          break;
        default:
          return;
      }
    }
  }

  void convert(const Conversion& made, const Value& value) {
    switch (made.type) {
      case 's':
        return pad(made, "", cut(text_of(value), made.precision), false);
      case 'r':
        return pad(made, "", cut(repr_of(value), made.precision), false);
      case 'a':
        raise("%a is not supported; use %r");
      case 'c':
        return pad(made, "", character(value), false);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return integer(made, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return real(made, value);
      default:
        raise(fmt::format("%{} is not known; known are s r c d i u x X o e E f F g G", made.type));
    }
  }

  static std::string cut(std::string text, std::int64_t precision) {
    if (precision < 0) return text;
    const auto offsets = character_offsets(text);
    const auto kept = std::min(static_cast<std::size_t>(precision), offsets.size() - 1);
    text.resize(offsets[kept]);
    return text;
  }

  static std::string character(const Value& value) {
    if (value.is_text() && count_characters(value.text()) == 1) return value.text();
    const std::int64_t code = integer_of(value, "the value of %c");
    if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      raise("%c: not the number of a character");
    }
    std::string text;
    append_utf8(text, static_cast<char32_t>(code));
    return text;
  }

  void integer(const Conversion& made, const Value& value) {
    if (value.is_undefined()) raise(value.why_undefined());
    const bool hexadecimal = made.type == 'x' || made.type == 'X';
    const bool whole = value.is(Kind::integer) || value.is(Kind::boolean);
    if (!whole && (hexadecimal || made.type == 'o' || !value.is(Kind::real) ||
                   !(std::abs(value.real()) < 0x1p63))) {
      raise(fmt::format("%{} needs a number, not a {}", made.type, type_name(value)));
    }
    const std::int64_t number = whole ? value.integer() : static_cast<std::int64_t>(value.real());
    const std::uint64_t magnitude =
        number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
    std::string digits = made.type == 'x'   ? fmt::format("{:x}", magnitude)
                         : made.type == 'X' ? fmt::format("{:X}", magnitude)
                         : made.type == 'o' ? fmt::format("{:o}", magnitude)
                                            : fmt::format("{}", magnitude);
    const auto missing = made.precision - static_cast<std::int64_t>(digits.size());
    if (missing > 0) digits.insert(0, static_cast<std::size_t>(missing), '0');
    std::string prefix = sign(made, number < 0);
    if (made.alternative && made.type == 'x') prefix += "0x";
    if (made.alternative && made.type == 'X') prefix += "0X";
    if (made.alternative && made.type == 'o') prefix += "0o";
    pad(made, prefix, digits, true);
  }

  void real(const Conversion& made, const Value& value) {
    if (value.is_undefined()) raise(value.why_undefined());
    if (!value.is_number()) {
      raise(fmt::format("%{} needs a number, not a {}", made.type, type_name(value)));
    }
    const double number = value.real();
    const auto precision = static_cast<int>(made.precision < 0 ? 6 : made.precision);
    if (precision > 1000) raise("a precision of % is too large");
    const std::string form = fmt::format("{{:{}.{{}}{}}}", made.alternative ? "#" : "", made.type);
    const std::string digits = fmt::format(fmt::runtime(form), std::abs(number), precision);
    pad(made, sign(made, std::signbit(number) && !std::isnan(number)), digits,
        std::isfinite(number));
  }

  static std::string sign(const Conversion& made, bool negative_number) {
    return negative_number ? "-" : made.plus ? "+" : made.space ? " " : "";
  }

  void pad(const Conversion& made, const std::string& prefix, const std::string& body,
           bool may_zero) {
    const auto size = static_cast<std::int64_t>(count_characters(prefix) + count_characters(body));
    const auto missing = static_cast<std::size_t>(std::max<std::int64_t>(made.width - size, 0));
    if (made.minus) {
      m_text += prefix + body + std::string(missing, ' ');
    } else if (made.zero && may_zero) {
      m_text += prefix + std::string(missing, '0') + body;
    } else {
      m_text += std::string(missing, ' ') + prefix + body;
    }
  }

  std::string_view m_format;
  const Value& m_values;
  bool m_is_tuple = false;
  bool m_by_name = false;
  std::size_t m_next = 0;
  std::size_t m_at = 0;
  std::string m_text;
};

}  // namespace

std::string percent_format(Machine& machine, std::string_view format, const Value& values) {
  machine.charge(1 + format.size() / 8);
  return PercentFormatter(format, values).run();
}

}  // namespace driftscope::jinja
