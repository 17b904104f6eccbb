// SPDX-License-Identifier: Apache-2.0
// "…{}…".format(values).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/literal.h"
#include "engine/text/jinja/machine.h"
#include "engine/text/jinja/operators.h"
#include "kernels/base/utf8.h"

namespace driftscope::jinja {
namespace {

using Kind = Value::Kind;

struct Specification {
  std::string fill = " ";
  char align = '\0';
  char sign = '-';
  bool alternative = false;
  bool zero = false;
  std::int64_t width = 0;
  char group = '\0';
  std::int64_t precision = -1;
  char type = '\0';
};

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

std::int64_t digits(std::string_view& text) {
  std::int64_t value = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    value = value * 10 + (text[0] - '0');
    if (value > 1000000) raise("a width of format is too large");
    text.remove_prefix(1);
  }
  return value;
}

Specification read_specification(std::string_view text) {
  Specification made;
  const std::string_view whole = text;
  const std::size_t first = text.empty() ? 0 : decode_utf8(text, 0).length;
  if (text.size() > first && is_align(text[first])) {
    made.fill = std::string(text.substr(0, first));
    made.align = text[first];
    text.remove_prefix(first + 1);
  } else if (!text.empty() && is_align(text[0])) {
    made.align = text[0];
    text.remove_prefix(1);
  }
  const auto take = [&](char c) {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
  };
  if (!text.empty() && (text[0] == '+' || text[0] == '-' || text[0] == ' ')) {
    made.sign = text[0];
    text.remove_prefix(1);
  }
  made.alternative = take('#');
  if (take('0')) {
    made.zero = true;
    if (made.align == '\0') {
      made.fill = "0";
      made.align = '=';
    }
  }
  made.width = digits(text);
  if (take(',')) made.group = ',';
  if (made.group == '\0' && take('_')) made.group = '_';
  if (take('.')) {
    if (text.empty() || text[0] < '0' || text[0] > '9') raise("a precision of format is missing");
    made.precision = digits(text);
  }
  if (!text.empty()) {
    made.type = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty()) raise(fmt::format("\"{}\" is no format of a value", whole));
  return made;
}

std::string padded(const Specification& made, const std::string& sign, const std::string& body,
                   char usual) {
  const char align = made.align == '\0' ? usual : made.align;
  const auto size = static_cast<std::int64_t>(count_characters(sign) + count_characters(body));
  const std::int64_t missing = std::max<std::int64_t>(made.width - size, 0);
  const std::int64_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  std::string text;
  for (std::int64_t i = 0; i < left; ++i) text += made.fill;
  text += sign;
  if (align == '=') {
    for (std::int64_t i = 0; i < missing; ++i) text += made.fill;
  }
  text += body;
  if (align == '<' || align == '^') {
    for (std::int64_t i = left; i < missing; ++i) text += made.fill;
  }
  return text;
}

// Separators between groups of three digits before the point.
std::string grouped(const std::string& number, char separator) {
  if (separator == '\0') return number;
  const std::size_t whole = std::min(number.find_first_not_of("0123456789"), number.size());
  std::string text;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) text += separator;
    text += number[i];
  }
  return text + number.substr(whole);
}

std::string sign_of(const Specification& made, bool negative_number) {
  return negative_number ? "-" : made.sign == '-' ? "" : std::string(1, made.sign);
}

std::string real_body(const Specification& made, double number) {
  const double magnitude = std::abs(number);
  const bool percent = made.type == '%';
  if (made.type == '\0' && made.precision < 0) return real_text(magnitude);
  if (made.precision > 1000) raise("a precision of format is too large");
  const int precision = static_cast<int>(made.precision < 0 ? 6 : made.precision);
  const char type = percent ? 'f' : made.type == '\0' || made.type == 'n' ? 'g' : made.type;
  const std::string form = fmt::format("{{:{}.{{}}{}}}", made.alternative ? "#" : "", type);
  std::string body =
      fmt::format(fmt::runtime(form), percent ? magnitude * 100.0 : magnitude, precision);
  if (made.type == '\0' && body.find_first_of(".en") == std::string::npos) body += ".0";
  return percent ? body + "%" : body;
}

std::string format_real(const Specification& made, double number) {
  constexpr std::string_view kTypes("\0eEfFgGn%", 9);
  if (kTypes.find(made.type) == std::string_view::npos) {
    raise(fmt::format("\"{}\" is no format of a float", made.type));
  }
  return padded(made, sign_of(made, std::signbit(number) && !std::isnan(number)),
                grouped(real_body(made, number), made.group), '>');
}

std::string format_integer(const Specification& made, std::int64_t number) {
  const std::uint64_t magnitude =
      number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  if (made.type != '\0' && std::string_view("eEfFgG%").find(made.type) != std::string_view::npos) {
    return format_real(made, static_cast<double>(number));
  }
  if (made.precision >= 0) raise("an integer has no precision");
  std::string prefix = sign_of(made, number < 0);
  std::string body;
  switch (made.type) {
    case '\0':
    case 'd':
    case 'n':
      body = grouped(fmt::format("{}", magnitude), made.group);
      break;
    case 'x':
      body = fmt::format("{:x}", magnitude);
      break;
    case 'X':
      body = fmt::format("{:X}", magnitude);
      break;
    case 'o':
      body = fmt::format("{:o}", magnitude);
      break;
    case 'b':
      body = fmt::format("{:b}", magnitude);
      break;
    default:
      raise(fmt::format("\"{}\" is no format of an integer", made.type));
  }
  if (made.alternative && std::string_view("xXob").find(made.type) != std::string_view::npos) {
    prefix += '0';
    prefix += made.type;
  }
  return padded(made, prefix, body, '>');
}

std::string format_text(const Specification& made, const std::string& text) {
  if (made.type != '\0' && made.type != 's') {
    raise(fmt::format("\"{}\" is no format of a text", made.type));
  }
  if (made.sign != '-' || made.group != '\0' || made.alternative || made.align == '=') {
    if (!(made.align == '=' && made.zero))
      raise("a text has no sign, groups or \"=\" in its format");
  }
  std::string kept = text;
  if (made.precision >= 0) {
    const auto offsets = character_offsets(text);
    kept.resize(offsets[std::min(static_cast<std::size_t>(made.precision), offsets.size() - 1)]);
  }
  Specification own = made;
  if (own.align == '=') own.align = '<';
  return padded(own, "", kept, '<');
}

class BraceFormatter {
 public:
  BraceFormatter(Machine& machine, const Arguments& arguments)
      : m_machine(machine), m_arguments(arguments) {}

  std::string run(std::string_view format, int level) {
    if (level > 2) raise("a format holds formats too deeply");
    std::string text;
    for (std::size_t i = 0; i < format.size(); ++i) {
      const char c = format[i];
      if ((c == '{' || c == '}') && i + 1 < format.size() && format[i + 1] == c) {
        text += c;
        ++i;
      } else if (c == '{') {
        const std::size_t end = closing(format, i);
        text += field(format.substr(i + 1, end - i - 1), level);
        i = end;
      } else if (c == '}') {
        raise("a single } in a format; write }}");
      } else {
        text += c;
      }
      if (text.size() > kMaxTextBytes) raise("format makes too long a text");
    }
    return text;
  }

 private:
  static std::size_t closing(std::string_view format, std::size_t begin) {
    int open = 0;
    for (std::size_t i = begin; i < format.size(); ++i) {
      if (format[i] == '{') ++open;
      if (format[i] == '}' && --open == 0) return i;
    }
    raise("a { in a format is not closed; write {{ for the character");
  }

  // name!conversion:specification
  std::string field(std::string_view text, int level) {
    std::size_t end = 0;
    bool inside = false;
    while (end < text.size() && (inside || (text[end] != '!' && text[end] != ':'))) {
      if (text[end] == '[') inside = true;
      if (text[end] == ']') inside = false;
      ++end;
    }
    Value value = look_up(text.substr(0, end));
    std::string_view rest = text.substr(end);
    if (rest.starts_with('!')) {
      if (rest.size() < 2 || (rest[1] != 's' && rest[1] != 'r')) raise("after ! comes s or r");
      value = Value::of(rest[1] == 's' ? text_of(value) : repr_of(value));
      rest.remove_prefix(2);
      if (!rest.empty() && rest[0] != ':') raise("after !s and !r comes : or the end");
    }
    if (rest.starts_with(':')) rest.remove_prefix(1);
    return format_value(value, run(rest, level + 1));
  }

  Value look_up(std::string_view path) {
    std::size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = argument(path.substr(0, end));
    while (end < path.size()) {
      const bool brackets = path[end] == '[';
      const std::size_t begin = end + 1;
      end =
          brackets ? path.find(']', begin) : std::min(path.find_first_of(".[", begin), path.size());
      if (end == std::string_view::npos) raise("a [ in a format is not closed");
      const std::string_view name = path.substr(begin, end - begin);
      const auto index = brackets ? parse_integer(name, 10) : std::nullopt;
      value = !brackets ? attribute(m_machine, value, name)
                        : item(m_machine, value, index ? Value::of(*index) : Value::of(name));
      if (brackets) ++end;
    }
    return value;
  }

  Value argument(std::string_view name) {
    const auto index = name.empty() ? std::optional<std::int64_t>() : parse_integer(name, 10);
    if (name.empty() || index) {
      if (name.empty() ? m_numbered == 2 : m_numbered == 1) {
        raise("a format counts its values by itself or with numbers, not both");
      }
      m_numbered = name.empty() ? 1 : 2;
      const auto at = static_cast<std::size_t>(index.value_or(static_cast<std::int64_t>(m_next)));
      if (name.empty()) ++m_next;
      if (at >= m_arguments.positional.size()) raise("a format has fewer values than places");
      return m_arguments.positional[at];
    }
    for (const auto& [known, value] : m_arguments.named) {
      if (known == name) return value;
    }
    raise(fmt::format("a format has no value named \"{}\"", name));
  }

  Machine& m_machine;
  const Arguments& m_arguments;
  std::size_t m_next = 0;
  int m_numbered = 0;  // 1: by itself, 2: with numbers
};

}  // namespace

std::string format_value(const Value& value, std::string_view specification) {
  if (specification.empty()) return text_of(value);
  const Specification made = read_specification(specification);
  switch (value.kind()) {
    case Kind::text:
      return format_text(made, value.text());
    case Kind::real:
      return format_real(made, value.real());
    case Kind::integer:
    case Kind::boolean:
      return format_integer(made, value.integer());
    default:
      raise(fmt::format("a {} takes no format", type_name(value)));
  }
}

std::string brace_format(Machine& machine, std::string_view format, const Arguments& arguments) {
  machine.charge(1 + format.size() / 8);
  return BraceFormatter(machine, arguments).run(format, 0);
}

}  // namespace driftscope::jinja
