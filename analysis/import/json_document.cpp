// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/json_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "analysis/import/json_escapes.h"
#include "analysis/import/json_parser.h"
#include "kernels/base/utf8.h"

namespace driftscope {

using namespace json_escapes;

namespace {

constexpr std::uint32_t kReplacement = 0xFFFD;
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

// Digits of a number that double arithmetic reads exactly: a whole number below 2^53, times or over
// a power of ten that is exact in double, is rounded once (Clinger 1990). Empty: too long for that.
std::optional<double> short_decimal(std::string_view digits) {
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  constexpr std::uint64_t kExact = std::uint64_t{1} << 53U;
  const char* at = digits.data();
  const char* const end = at + digits.size();
  const bool negative = at != end && *at == '-';
  if (negative) ++at;
  if (end - at > 18) return std::nullopt;  // the digits fit 64 bits
  std::uint64_t whole = 0;
  int exponent = 0;
  for (; at != end && *at >= '0' && *at <= '9'; ++at) {
    whole = 10 * whole + static_cast<std::uint64_t>(*at - '0');
  }
  if (at != end && *at == '.') {
    const char* const point = ++at;
    for (; at != end && *at >= '0' && *at <= '9'; ++at) {
      whole = 10 * whole + static_cast<std::uint64_t>(*at - '0');
    }
    exponent = -static_cast<int>(at - point);
  }
  if (at != end) {  // e or E
    int power = 0;
    const char* const sign = ++at;
    if (at != end && *at == '+') ++at;
    if (std::from_chars(at, end, power).ptr != end || sign == end || power < -400 || power > 400) {
      return std::nullopt;
    }
    exponent += power;
  }
  if (whole > kExact || exponent < -22 || exponent > 22) return std::nullopt;
  const auto value = static_cast<double>(whole);
  const double scaled = exponent < 0 ? value / kPowers[-exponent] : value * kPowers[exponent];
  return negative ? -scaled : scaled;
}

// One spelling for each text: escapes only where JSON needs them.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out += '"';
}

}  // namespace

Result<void> JsonDocument::parse(std::string_view text) {
  std::size_t used = 0;
  if (auto done = parse_first(text, used); !done) return done;
  if (used == text.size()) return {};
  m_nodes.clear();
  return fail(ErrorKind::malformed, fmt::format("byte {}: something follows the value", used));
}

Result<void> JsonDocument::parse_first(std::string_view text, std::size_t& used) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  m_nodes.clear();
  m_oddities.clear();
  m_arrays_left_out = 0;
  m_text = text.substr(0, kMost);
  auto end = JsonParser::run(*this, m_text);
  if (!end) {
    m_nodes.clear();
    return tl::unexpected(std::move(end.error()));
  }
  used = *end;
  return {};
}

JsonValue JsonValue::operator[](std::string_view key) const {
  if (!is_object()) return {};
  const auto& nodes = m_document->m_nodes;
  std::uint32_t at = m_index + 1;
  for (std::uint32_t i = 0; i < nodes[m_index].size; ++i) {
    const auto& node = nodes[at];
    const std::string_view name = m_document->raw(node);
    if (node.escaped ? resolve_escapes(name) == key : name == key) return {m_document, at + 1};
    at = m_document->behind(at + 1);
  }
  return {};
}

bool JsonValue::has(std::string_view key) const { return static_cast<bool>((*this)[key]); }

std::size_t JsonValue::size() const {
  if (!is_array() && !is_object()) return 0;
  const auto& node = m_document->m_nodes[m_index];
  if (node.left_out) return 0;
  return node.digits ? node.end : node.size;
}

std::size_t JsonValue::left_out() const {
  if (!is_array()) return 0;
  const auto& node = m_document->m_nodes[m_index];
  return node.left_out ? node.end : 0;
}

JsonValue JsonValue::at(std::size_t index) const {
  if (!is_array() || index >= size()) return {};
  auto it = begin();
  for (std::size_t i = 0; i < index; ++i) ++it;
  return *it;
}

std::string_view JsonValue::raw() const {
  if (m_document == nullptr) return {};
  if (m_element != 0) {
    const std::string_view rest = m_document->m_text.substr(m_element);
    return rest.substr(0, rest.find_first_not_of("0123456789"));
  }
  const auto& node = m_document->m_nodes[m_index];
  const bool held = node.kind >= JsonKind::array && !node.left_out;
  return held ? std::string_view{} : m_document->raw(node);
}

std::string JsonValue::text() const {
  if (!is_text()) return {};
  const auto& node = m_document->m_nodes[m_index];
  const std::string_view raw = m_document->raw(node);
  return node.escaped ? resolve_escapes(raw) : std::string(raw);
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
  if (const auto exact = short_decimal(digits); exact) return exact;
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

std::optional<std::string> JsonValue::bytes() const {
  if (!is_array()) return std::nullopt;
  std::string out;
  const auto& node = m_document->m_nodes[m_index];
  if (!node.digits) {
    for (auto it = begin(); it != end(); ++it) {
      const auto value = (*it).integer();
      if (!value || *value < 0 || *value > 255) return std::nullopt;
      out += static_cast<char>(*value);
    }
    return out;
  }
  const std::string_view raw = m_document->raw(node);
  for (std::size_t i = 0; i < raw.size();) {
    std::uint32_t value = 0;
    for (; i < raw.size() && raw[i] >= '0' && raw[i] <= '9'; ++i) {
      value = 10 * value + static_cast<std::uint32_t>(raw[i] - '0');
      if (value > 255) return std::nullopt;
    }
    out += static_cast<char>(value);
    while (i < raw.size() && (raw[i] < '0' || raw[i] > '9')) ++i;
  }
  return out;
}

std::string JsonValue::canonical() const {
  if ((!is_array() && !is_object()) || left_out() > 0) {
    return is_text() ? quoted(text()) : std::string(m_document ? raw() : "null");
  }
  std::vector<std::string> parts;
  for (auto it = begin(); it != end(); ++it) {
    parts.push_back(is_object() ? quoted(it.key()) + ":" + (*it).canonical() : (*it).canonical());
  }
  if (is_object()) std::sort(parts.begin(), parts.end());
  return fmt::format("{}{}{}", is_object() ? '{' : '[', fmt::join(parts, ","),
                     is_object() ? '}' : ']');
}

JsonValue::Iterator JsonValue::begin() const {
  const bool keyed = is_object();
  if (size() == 0) return end();
  const auto& node = m_document->m_nodes[m_index];
  if (node.digits) return {m_document, m_index, node.begin, false};
  return {m_document, m_index + (keyed ? 2 : 1), 0, keyed};
}

JsonValue::Iterator JsonValue::end() const {
  const bool keyed = is_object();
  if (!keyed && !is_array()) return {m_document, 0, 0, false};
  const auto& node = m_document->m_nodes[m_index];
  if (node.left_out) return {m_document, m_index, 0, false};
  if (node.digits) return {m_document, m_index, node.begin + node.size, false};
  return {m_document, keyed ? node.end + 1 : node.end, 0, keyed};
}

JsonValue::Iterator& JsonValue::Iterator::operator++() {
  if (m_element == 0) {
    m_index = m_document->behind(m_index) + (m_keyed ? 1 : 0);
    return *this;
  }
  const auto& list = m_document->m_nodes[m_index];
  const std::string_view text = m_document->m_text.substr(0, list.begin + list.size);
  std::size_t at = text.find_first_not_of("0123456789", m_element);
  at = text.find_first_of("0123456789", at);
  m_element = list.begin + list.size;
  if (at != std::string_view::npos) m_element = static_cast<std::uint32_t>(at);
  return *this;
}

std::string JsonValue::Iterator::key() const {
  if (!m_keyed) return {};
  const auto& node = m_document->m_nodes[m_index - 1];
  const std::string_view raw = m_document->raw(node);
  return node.escaped ? resolve_escapes(raw) : std::string(raw);
}

}  // namespace driftscope
