// SPDX-License-Identifier: Apache-2.0
#include "analysis/probe/redaction.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "analysis/probe/base64.h"

namespace driftscope {
namespace {

constexpr std::string_view kMark = "[key]";

// std::tolower() depends on the locale.
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

struct Spelled {
  char character;
  std::size_t length;  // bytes that spell it
};

std::optional<Spelled> number_at(std::string_view text, std::size_t begin, std::size_t digits,
                                 int base, std::string_view end = {}) {
  if (begin + digits > text.size()) return std::nullopt;
  unsigned value = 0;
  const char* first = text.data() + begin;
  const auto read = std::from_chars(first, first + digits, value, base);
  if (read.ec != std::errc{} || read.ptr != first + digits || value > 127) return std::nullopt;
  if (text.substr(begin + digits, end.size()) != end) return std::nullopt;
  return Spelled{static_cast<char>(value), begin + digits + end.size()};
}

// "&#65;" and "&#x41;".
std::optional<Spelled> html_at(std::string_view text) {
  const bool hexadecimal = text.size() > 3 && lower(text[2]) == 'x';
  const std::size_t begin = hexadecimal ? 3 : 2;
  for (std::size_t digits = 1; digits <= 4; ++digits) {
    if (auto found = number_at(text, begin, digits, hexadecimal ? 16 : 10, ";")) return found;
  }
  return std::nullopt;
}

// One character in another spelling than itself.
std::optional<Spelled> escape_at(std::string_view text) {
  if (text.size() < 2) return std::nullopt;
  if (text[0] == '%') return number_at(text, 1, 2, 16);
  if (text[0] == '&' && text[1] == '#') return html_at(text);
  if (text[0] != '\\') return std::nullopt;
  if (lower(text[1]) == 'u') return number_at(text, 2, 4, 16);
  if (lower(text[1]) == 'x') return number_at(text, 2, 2, 16);
  return Spelled{text[1], 2};  // \/ \" and whatever a careless writer puts behind one
}

// Bytes at the front of `text` that spell `secret`; 0: none do.
std::size_t spelled_at(std::string_view text, std::string_view secret) {
  std::size_t at = 0;
  for (const char wanted : secret) {
    const std::string_view rest = text.substr(std::min(at, text.size()));
    if (rest.empty()) return 0;
    const auto escape = escape_at(rest);
    if (lower(rest[0]) == lower(wanted)) {
      ++at;
    } else if (escape && lower(escape->character) == lower(wanted)) {
      at += escape->length;
    } else {
      return 0;
    }
  }
  return at;
}

void replace_spelled(std::string& text, std::string_view secret) {
  std::string out;
  std::size_t kept = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = spelled_at(std::string_view(text).substr(at), secret);
    if (length == 0) {
      ++at;
      continue;
    }
    out.append(text, kept, at - kept).append(kMark);
    kept = at += length;
  }
  if (kept > 0) text = out.append(text, kept);
}

// The characters that any text gets in base64 wherever it stands in a longer one: those that the
// bytes around it share are cut off.
std::string base64_at(std::string_view text, std::size_t offset) {
  const std::string coded = to_base64(std::string(offset, 'x') + std::string(text));
  const std::size_t begin = offset == 0 ? 0 : offset + 1;
  const std::size_t whole = (offset + text.size()) * 8 / 6;
  return coded.substr(begin, whole - begin);
}

std::string hexadecimal(std::string_view text) {
  std::string out;
  for (const char c : text) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace

void redact_text(std::string& text, const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) {
    if (secret.empty()) continue;
    // Longest first, so that no rest of one spelling is left by another.
    for (const std::string& spelling :
         {hexadecimal(secret), to_base64(secret), base64_at(secret, 0), base64_at(secret, 1),
          base64_at(secret, 2), secret}) {
      replace_spelled(text, spelling);
    }
  }
}

}  // namespace driftscope
