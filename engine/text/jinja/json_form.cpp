// SPDX-License-Identifier: Apache-2.0
// The filter tojson, as transformers defines it: json.dumps without escaping for HTML.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/machine.h"
#include "engine/text/jinja/operators.h"

namespace driftscope::jinja {
namespace {

using Kind = Value::Kind;

class JsonWriter {
 public:
  JsonWriter(Machine& machine, const JsonForm& form)
      : m_machine(machine),
        m_form(form),
        m_item(form.item_separator.value_or(form.indent ? "," : ", ")),
        m_key(form.key_separator.value_or(": ")) {}

  void write(const Value& value, int level) {
    m_machine.charge();
    if (m_text.size() > kMaxTextBytes) m_machine.charge_text(m_text.size());
    switch (value.kind()) {
      case Kind::none:
        m_text += "null";
        return;
      case Kind::boolean:
        m_text += value.boolean() ? "true" : "false";
        return;
      case Kind::integer:
        m_text += fmt::format("{}", value.integer());
        return;
      case Kind::real:
        m_text += number(value.real());
        return;
      case Kind::text:
        quoted(value.text());
        return;
      case Kind::sequence:
        if (value.sequence().form == Sequence::Form::list ||
            value.sequence().form == Sequence::Form::tuple) {
          return list(value.sequence().items, level);
        }
        break;
      case Kind::mapping:
        return mapping(value.mapping(), level);
      case Kind::undefined:
        raise("tojson: " + value.why_undefined());
      case Kind::space:
      case Kind::callable:
      case Kind::loop:
        break;
    }
    raise(fmt::format("tojson: a {} has no JSON form", type_name(value)));
  }
  [[nodiscard]] std::string take() { return std::move(m_text); }

 private:
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return real_text(value);
  }

  void quoted(const std::string& text) {
    m_text += '"';
    for (const char32_t c : characters_of(text)) character(c);
    m_text += '"';
  }

  void character(char32_t c) {
    constexpr std::u32string_view kFrom = U"\"\\\n\r\t\f\b";
    constexpr std::string_view kTo = "\"\\nrtfb";
    const auto code = static_cast<std::uint32_t>(c);
    if (const std::size_t known = kFrom.find(c); known != std::u32string_view::npos) {
      m_text += '\\';
      m_text += kTo[known];
    } else if (code < 0x20 || (m_form.ensure_ascii && code > 0x7E && code < 0x10000)) {
      m_text += fmt::format("\\u{:04x}", code);
    } else if (m_form.ensure_ascii && code >= 0x10000) {
      m_text += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10U),
                            0xDC00 + ((code - 0x10000) & 0x3FFU));
    } else {
      m_text += utf8_of({&c, 1});
    }
  }

  void line(int level) {
    if (!m_form.indent) return;
    m_text += '\n';
    for (int i = 0; i < level; ++i) m_text += *m_form.indent;
  }

  void list(const List& items, int level) {
    m_text += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) m_text += m_item;
      line(level + 1);
      write(items[i], level + 1);
    }
    if (!items.empty()) line(level);
    m_text += ']';
  }

  static std::string key_text(const Value& key) {
    switch (key.kind()) {
      case Kind::text:
        return key.text();
      case Kind::none:
        return "null";
      case Kind::boolean:
        return key.boolean() ? "true" : "false";
      case Kind::integer:
        return fmt::format("{}", key.integer());
      case Kind::real:
        return number(key.real());
      default:
        raise(fmt::format("tojson: a {} cannot be a key", type_name(key)));
    }
  }

  void mapping(const Mapping& mapping, int level) {
    std::vector<std::pair<Value, Value>> sorted;
    if (m_form.sort_keys) {
      m_machine.charge(mapping.entries.size());
      sorted = mapping.entries;
      std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
        return order(m_machine, a.first, b.first) == -1;
      });
    }
    const auto& entries = m_form.sort_keys ? sorted : mapping.entries;
    m_text += '{';
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) m_text += m_item;
      line(level + 1);
      quoted(key_text(entries[i].first));
      m_text += m_key;
      write(entries[i].second, level + 1);
    }
    if (!entries.empty()) line(level);
    m_text += '}';
  }

  Machine& m_machine;
  const JsonForm& m_form;
  std::string m_item;
  std::string m_key;
  std::string m_text;
};

}  // namespace

std::string json_text(Machine& machine, const Value& value, const JsonForm& form) {
  JsonWriter writer(machine, form);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace driftscope::jinja
