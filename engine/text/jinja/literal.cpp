// SPDX-License-Identifier: Apache-2.0
#include "engine/text/jinja/literal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "engine/text/jinja/characters.h"
#include "kernels/base/utf8.h"

namespace driftscope::jinja {
namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

// Digits with single underscores between them: how many bytes from `at` on.
std::size_t digits_at(std::string_view text, std::size_t at, int base) {
  std::size_t end = at;
  while (end < text.size()) {
    if (digit_value(text[end]) < base) {
      ++end;
    } else if (text[end] == '_' && end > at && end + 1 < text.size() &&
               digit_value(text[end + 1]) < base) {
      ++end;
    } else {
      break;
    }
  }
  return end - at;
}

std::string without_underscores(std::string_view text) {
  std::string plain(text);
  plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
  return plain;
}

void read_integer(std::string_view digits, int base, NumberLiteral& literal) {
  const std::string plain = without_underscores(digits);
  const auto [end, error] =
      std::from_chars(plain.data(), plain.data() + plain.size(), literal.integer, base);
  literal.too_large = error != std::errc{} || end != plain.data() + plain.size();
}

// Where a real number that begins at 0 ends; 0: it is an integer.
std::size_t real_length(std::string_view text, std::size_t whole) {
  std::size_t end = whole;
  bool is_real = false;
  if (end < text.size() && text[end] == '.') {
    const std::size_t fraction = digits_at(text, end + 1, 10);
    if (fraction > 0) {
      end += 1 + fraction;
      is_real = true;
    }
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    std::size_t digits = end + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
    const std::size_t count = digits_at(text, digits, 10);
    if (count > 0) {
      end = digits + count;
      is_real = true;
    }
  }
  return is_real ? end : 0;
}

double to_real(const std::string& plain) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  static_cast<void>(end);
  if (error == std::errc::result_out_of_range) {
    // Too large or too small: Python gives an infinity or zero.
    const auto exponent = plain.find_first_of("eE");
    const bool small = exponent != std::string::npos && plain[exponent + 1] == '-';
    return small ? 0.0 : std::numeric_limits<double>::infinity();
  }
  return value;
}

}  // namespace

NumberLiteral read_number(std::string_view text, bool may_be_real) {
  NumberLiteral literal;
  const std::size_t whole = digits_at(text, 0, 10);
  if (may_be_real) {
    if (const std::size_t length = real_length(text, whole); length > 0) {
      literal.is_real = true;
      literal.length = length;
      literal.real = to_real(without_underscores(text.substr(0, length)));
      return literal;
    }
  }
  if (text[0] == '0' && text.size() > 2) {
    const char kind = text[1];
    const int base = kind == 'x' || kind == 'X'   ? 16
                     : kind == 'o' || kind == 'O' ? 8
                     : kind == 'b' || kind == 'B' ? 2
                                                  : 0;
    const std::size_t from = text[2] == '_' ? 3 : 2;
    const std::size_t count = base == 0 ? 0 : digits_at(text, from, base);
    if (count > 0) {
      read_integer(text.substr(from, count), base, literal);
      literal.length = from + count;
      return literal;
    }
  }
  // A zero takes only zeros after it.
  std::size_t length = whole;
  if (text[0] == '0') {
    length = 1;
    while (length < whole && (text[length] == '0' || text[length] == '_')) ++length;
    while (text[length - 1] == '_') --length;
  }
  read_integer(text.substr(0, length), 10, literal);
  literal.length = length;
  return literal;
}

namespace {

// \xHH, \uHHHH, \UHHHHHHHH: `count` digits from `at` on.
bool read_code(std::string_view text, std::size_t& at, std::size_t count, std::string& target,
               std::string& problem) {
  std::uint32_t code = 0;
  const char* const begin = text.data() + std::min(at, text.size());
  const char* const end = begin + std::min(count, text.size() - std::min(at, text.size()));
  const auto [stopped, error] = std::from_chars(begin, end, code, 16);
  if (error != std::errc{} || stopped != begin + count) {
    problem = fmt::format("an escape needs {} hexadecimal digits", count);
    return false;
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
    problem = fmt::format("\\u{:04x} is no character", code);
    return false;
  }
  append_utf8(target, static_cast<char32_t>(code));
  at += count;
  return true;
}

void read_octal(std::string_view text, std::size_t& at, std::string& target) {
  std::uint32_t code = 0;
  const std::size_t end = std::min(at + 3, text.size());
  while (at < end && text[at] >= '0' && text[at] <= '7') {
    code = code * 8 + static_cast<std::uint32_t>(text[at++] - '0');
  }
  append_utf8(target, static_cast<char32_t>(code));
}

}  // namespace

std::string unescape(std::string_view text, std::string& problem) {
  constexpr std::string_view kFrom = "\\'\"abfnrtv";
  constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      result += text[i++];
      continue;
    }
    const char c = text[i + 1];
    i += 2;
    if (const std::size_t known = kFrom.find(c); known != std::string_view::npos) {
      result += kTo[known];
    } else if (c == '\n') {
      continue;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      if (!read_code(text, i, count, result, problem)) return {};
    } else if (c >= '0' && c <= '7') {
      --i;
      read_octal(text, i, result);
    } else if (c == 'N') {
      problem = "\\N{…} in a text is not supported; write \\u and its number";
      return {};
    } else {
      result += '\\';
      result += c;
    }
  }
  return result;
}

std::optional<std::int64_t> parse_integer(std::string_view text, int base) {
  text = strip(text, std::nullopt, Ends::both);
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  const auto prefixed = [&](char letter) {
    return text.size() > 2 && text[0] == '0' && (text[1] == letter || text[1] == letter - 32);
  };
  for (const auto& [letter, own] : {std::pair{'x', 16}, std::pair{'o', 8}, std::pair{'b', 2}}) {
    if (!prefixed(letter) || (base != 0 && base != own)) continue;
    base = own;
    text.remove_prefix(text[2] == '_' ? 3 : 2);
    break;
  }
  if (base == 0) base = 10;
  if (base < 2 || base > 36 || text.empty() || digits_at(text, 0, base) != text.size()) {
    return std::nullopt;
  }
  const std::string plain = (minus ? "-" : "") + without_underscores(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value, base);
  if (error != std::errc{} || end != plain.data() + plain.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  text = strip(text, std::nullopt, Ends::both);
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  const std::string small = lower(text);
  double value = 0.0;
  if (small == "inf" || small == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (small == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    // "12", "12.", ".5", "1e5", with underscores between digits.
    std::string padded = text.starts_with('.') ? "0" + std::string(text) : std::string(text);
    const std::size_t dot = padded.find('.');
    if (dot != std::string::npos &&
        (dot + 1 == padded.size() || !is_ascii_digit(padded[dot + 1]))) {
      if (text == ".") return std::nullopt;
      padded.insert(dot + 1, "0");
    }
    const std::size_t whole = digits_at(padded, 0, 10);
    if (whole == 0) return std::nullopt;
    const std::size_t real = real_length(padded, whole);
    if (std::max(real, whole) != padded.size()) return std::nullopt;
    value = to_real(without_underscores(padded));
  }
  return minus ? -value : value;
}

}  // namespace driftscope::jinja
