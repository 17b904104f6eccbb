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

}  // namespace

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
  auto end = JsonParser::run(*this, text);
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
