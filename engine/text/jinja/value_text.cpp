// SPDX-License-Identifier: Apache-2.0
// str() and repr() of values, as CPython writes them.
#include <fmt/format.h>

#include <cmath>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/value.h"

namespace driftscope::jinja {
namespace {

void append_quoted(std::string& target, const std::string& text) {
  const bool use_double =
      text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
  const char32_t quote = use_double ? '"' : '\'';
  target += static_cast<char>(quote);
  for (const char32_t c : characters_of(text)) {
    if (c == quote || c == '\\') {
      target += '\\';
      target += static_cast<char>(c);
    } else if (c == '\n') {
      target += "\\n";
    } else if (c == '\r') {
      target += "\\r";
    } else if (c == '\t') {
      target += "\\t";
    } else if (is_printable(c)) {
      target += utf8_of({&c, 1});
    } else {
      const auto code = static_cast<std::uint32_t>(c);
      target += code < 0x100     ? fmt::format("\\x{:02x}", code)
                : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                                 : fmt::format("\\U{:08x}", code);
    }
  }
  target += static_cast<char>(quote);
}

// A value may hold one list many times over: what is written is bounded, not what is walked.
class Writer {
 public:
  void repr(const Value& value) {
    if (m_text.size() > kMaxTextBytes) raise("a value is too long to print; print a part of it");
    switch (value.kind()) {
      case Value::Kind::text:
        append_quoted(m_text, value.text());
        break;
      case Value::Kind::sequence:
        sequence(value.sequence());
        break;
      case Value::Kind::mapping:
        mapping(value.mapping());
        break;
      case Value::Kind::space:
        if (++m_spaces > 8) raise("a namespace holds itself and cannot be printed");
        m_text += "<Namespace ";
        mapping(value.space().attributes);
        m_text += '>';
        --m_spaces;
        break;
      case Value::Kind::undefined:
        m_text += "Undefined";
        break;
      case Value::Kind::none:
        m_text += "None";
        break;
      case Value::Kind::boolean:
        m_text += value.boolean() ? "True" : "False";
        break;
      case Value::Kind::integer:
        m_text += fmt::format("{}", value.integer());
        break;
      case Value::Kind::real:
        m_text += real_text(value.real());
        break;
      case Value::Kind::callable:
        m_text += value.callable().text();
        break;
      case Value::Kind::loop:
        m_text += fmt::format("<LoopContext {}/{}>", value.loop()->index + 1,
                              value.loop()->items.sequence().items.size());
        break;
    }
  }
  [[nodiscard]] std::string take() { return std::move(m_text); }

 private:
  void list(const List& items, std::string_view open, std::string_view close) {
    m_text += open;
    bool first = true;
    for (const Value& item : items) {
      if (!first) m_text += ", ";
      first = false;
      repr(item);
    }
    m_text += close;
  }

  void sequence(const Sequence& sequence) {
    switch (sequence.form) {
      case Sequence::Form::list:
        return list(sequence.items, "[", "]");
      case Sequence::Form::tuple:
        return list(sequence.items, "(", sequence.items.size() == 1 ? ",)" : ")");
      case Sequence::Form::keys:
        return list(sequence.items, "dict_keys([", "])");
      case Sequence::Form::values:
        return list(sequence.items, "dict_values([", "])");
      case Sequence::Form::items:
        return list(sequence.items, "dict_items([", "])");
      case Sequence::Form::range:
        m_text += sequence.step == 1 ? fmt::format("range({}, {})", sequence.start, sequence.stop)
                                     : fmt::format("range({}, {}, {})", sequence.start,
                                                   sequence.stop, sequence.step);
        return;
      case Sequence::Form::iterator:
        m_text += "<generator object>";
        return;
    }
  }

  void mapping(const Mapping& mapping) {
    m_text += '{';
    bool first = true;
    for (const auto& [key, value] : mapping.entries) {
      if (!first) m_text += ", ";
      first = false;
      repr(key);
      m_text += ": ";
      repr(value);
    }
    m_text += '}';
  }

  std::string m_text;
  int m_spaces = 0;
};

}  // namespace

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // The shortest digits; exponents below -4 and from 16 on, as CPython's repr.
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string repr_of(const Value& value) {
  Writer writer;
  writer.repr(value);
  return writer.take();
}

std::string text_of(const Value& value) {
  if (value.is_text()) return value.text();
  if (value.is_undefined()) return {};
  return repr_of(value);
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::undefined:
      return "Undefined";
    case Value::Kind::none:
      return "NoneType";
    case Value::Kind::boolean:
      return "bool";
    case Value::Kind::integer:
      return "int";
    case Value::Kind::real:
      return "float";
    case Value::Kind::text:
      return "str";
    case Value::Kind::mapping:
      return "dict";
    case Value::Kind::space:
      return "namespace";
    case Value::Kind::callable:
      return "function";
    case Value::Kind::loop:
      return "loop";
    case Value::Kind::sequence:
      break;
  }
  switch (value.sequence().form) {
    case Sequence::Form::list:
      return "list";
    case Sequence::Form::tuple:
      return "tuple";
    case Sequence::Form::range:
      return "range";
    case Sequence::Form::keys:
      return "dict_keys";
    case Sequence::Form::values:
      return "dict_values";
    case Sequence::Form::items:
      return "dict_items";
    case Sequence::Form::iterator:
      return "generator";
  }
  return "object";
}

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::undefined:
    case Value::Kind::none:
      return false;
    case Value::Kind::boolean:
      return value.boolean();
    case Value::Kind::integer:
      return value.integer() != 0;
    case Value::Kind::real:
      return value.real() != 0.0;
    case Value::Kind::text:
      return !value.text().empty();
    case Value::Kind::sequence:
      return value.sequence().form == Sequence::Form::iterator || !value.sequence().items.empty();
    case Value::Kind::mapping:
      return !value.mapping().entries.empty();
    case Value::Kind::loop:
      return !value.loop()->items.sequence().items.empty();
    case Value::Kind::space:
    case Value::Kind::callable:
      return true;
  }
  return true;
}

}  // namespace driftscope::jinja
