// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/json_pass.h"

#include <array>
#include <cstring>

#include "analysis/import/json_escapes.h"
#include "analysis/import/json_scan.h"
#include "kernels/base/utf8.h"

namespace driftscope {

using namespace json_escapes;

namespace {

constexpr int kMostDepth = 16;
constexpr std::size_t kMostKeys = 8;

class Pass {
 public:
  Pass(std::string_view text, std::size_t at) : m_text(text), m_at(at) {}

  std::optional<PassedList> run() {
    PassedList passed;
    if (!list(0, passed.elements) || passed.elements == 0) return std::nullopt;
    passed.end = m_at;
    return passed;
  }

 private:
  [[nodiscard]] bool here(char wanted) const {
    return m_at < m_text.size() && m_text[m_at] == wanted;
  }
  [[nodiscard]] bool digit_here() const {
    return m_at < m_text.size() && static_cast<unsigned char>(m_text[m_at] - '0') < 10;
  }
  void space() {
    while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\n' ||
                                    m_text[m_at] == '\r' || m_text[m_at] == '\t')) {
      ++m_at;
    }
  }
  bool digits() {
    if (!digit_here()) return false;
    while (digit_here()) ++m_at;
    return true;
  }

  bool value(int depth) {
    if (m_at >= m_text.size() || depth > kMostDepth) return false;
    switch (m_text[m_at]) {
      case '"':
        return text();
      case '{':
        return object(depth);
      case '[': {
        std::uint32_t count = 0;
        return list(depth, count);
      }
      case 'n':
        return word("null");
      case 't':
        return word("true");
      case 'f':
        return word("false");
      default:
        return number();
    }
  }

  bool word(std::string_view spelling) {
    if (!starts(m_text, m_at, spelling)) return false;
    m_at += spelling.size();
    return true;
  }

  bool number() {
    if (here('-')) ++m_at;
    if (!digits()) return false;
    if (here('.')) {
      ++m_at;
      if (!digits()) return false;
    }
    if (here('e') || here('E')) {
      ++m_at;
      if (here('+') || here('-')) ++m_at;
      if (!digits()) return false;
    }
    return true;
  }

  bool text() {
    ++m_at;
    while (true) {
      m_at = plain_end(m_text, m_at);
      if (m_at >= m_text.size()) return false;
      const char c = m_text[m_at];
      if (c == '"') break;
      if (c == '\\') {
        if (!escape()) return false;
        continue;
      }
      if (static_cast<unsigned char>(c) < 0x20) return false;
      const Utf8Step step = decode_utf8(m_text, m_at);
      if (step.state != Utf8State::valid) return false;
      m_at += step.length;
    }
    ++m_at;
    return true;
  }

  bool escape() {
    if (m_at + 1 >= m_text.size()) return false;
    const char kind = m_text[m_at + 1];
    if (kind == 'u') {
      const auto code = hex4(m_text, m_at + 2);
      if (!code || is_high(*code) || is_low(*code)) return false;
      m_at += 6;
      return true;
    }
    if (std::memchr("\"\\/bfnrt", kind, 8) == nullptr) return false;
    m_at += 2;
    return true;
  }

  bool list(int depth, std::uint32_t& count) {
    ++m_at;
    space();
    if (here(']')) {
      ++m_at;
      return true;
    }
    while (value(depth + 1)) {
      ++count;
      if (!here(',') && !here(']')) space();
      if (here(']')) {
        ++m_at;
        return true;
      }
      if (!here(',')) return false;
      ++m_at;
      space();
    }
    return false;
  }

  bool object(int depth) {
    std::array<std::string_view, kMostKeys> keys;
    std::size_t count = 0;
    ++m_at;
    space();
    if (here('}')) {
      ++m_at;
      return true;
    }
    while (here('"')) {
      const std::size_t begin = m_at;
      if (count == kMostKeys || !text()) return false;
      const std::string_view key = m_text.substr(begin, m_at - begin);
      for (std::size_t i = 0; i < count; ++i) {
        if (keys[i] == key) return false;
      }
      keys[count++] = key;
      space();
      if (!here(':')) return false;
      ++m_at;
      space();
      if (!value(depth + 1)) return false;
      if (!here(',') && !here('}')) space();
      if (here('}')) {
        ++m_at;
        return true;
      }
      if (!here(',')) return false;
      ++m_at;
      space();
    }
    return false;
  }

  std::string_view m_text;
  std::size_t m_at;
};

}  // namespace

std::optional<PassedList> pass_list(std::string_view text, std::size_t begin) {
  return Pass(text, begin).run();
}

}  // namespace driftscope
