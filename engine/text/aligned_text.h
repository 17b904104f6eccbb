// SPDX-License-Identifier: Apache-2.0
// Text that remembers where in the user's text each of its bytes came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace driftscope {

// Bytes [begin, end) of the user's text. Inserted text has begin == end.
struct ByteSpan {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  friend bool operator==(const ByteSpan&, const ByteSpan&) = default;
};

// Texts longer than this are refused: spans are 32-bit to keep them small.
inline constexpr std::size_t kMaxTextBytes = 0x7fffffff;

// Either a view of the user's text from some offset on (no spans stored), or own text with one
// span per byte.
class AlignedText {
 public:
  AlignedText() = default;
  // A piece of the user's text that begins at byte `offset` of it. `text` must outlive this.
  static AlignedText view_of(std::string_view text, std::size_t offset);

  [[nodiscard]] std::string_view text() const { return m_is_view ? m_view : m_own; }
  [[nodiscard]] std::size_t size() const { return text().size(); }
  [[nodiscard]] ByteSpan span_of_byte(std::size_t i) const {
    if (!m_is_view) return m_spans[i];
    const auto begin = m_offset + static_cast<std::uint32_t>(i);
    return {begin, begin + 1};
  }
  // Smallest span that covers what bytes [begin, end) came from; inserted bytes do not widen it.
  [[nodiscard]] ByteSpan span(std::size_t begin, std::size_t end) const {
    if (!m_is_view) return own_span(begin, end);
    return {m_offset + static_cast<std::uint32_t>(begin),
            m_offset + static_cast<std::uint32_t>(end)};
  }

  // Building: a changed copy of another text.
  void reserve(std::size_t bytes);
  void append_copy(const AlignedText& source, std::size_t begin, std::size_t end);
  void append(std::string_view text, ByteSpan origin);

 private:
  [[nodiscard]] ByteSpan own_span(std::size_t begin, std::size_t end) const;
  bool m_is_view = false;
  std::string_view m_view;
  std::uint32_t m_offset = 0;
  std::string m_own;
  std::vector<ByteSpan> m_spans;
};

// Bytes [begin, end) of a text that lives as long as the piece does.
struct TextPiece {
  const AlignedText* source = nullptr;
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::string_view text() const { return source->text().substr(begin, end - begin); }
};

}  // namespace driftscope
