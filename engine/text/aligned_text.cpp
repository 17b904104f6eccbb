// SPDX-License-Identifier: Apache-2.0
#include "engine/text/aligned_text.h"

#include <algorithm>

namespace driftscope {

AlignedText AlignedText::view_of(std::string_view text, std::size_t offset) {
  AlignedText result;
  result.m_is_view = true;
  result.m_view = text;
  result.m_offset = static_cast<std::uint32_t>(offset);
  return result;
}

ByteSpan AlignedText::own_span(std::size_t begin, std::size_t end) const {
  ByteSpan result;
  bool found = false;
  for (std::size_t i = begin; i < end; ++i) {
    const ByteSpan span = m_spans[i];
    if (span.begin == span.end) continue;
    result.begin = found ? std::min(result.begin, span.begin) : span.begin;
    result.end = found ? std::max(result.end, span.end) : span.end;
    found = true;
  }
  // Only inserted text: an empty span at its place.
  return found || begin >= end ? result : m_spans[begin];
}

void AlignedText::reserve(std::size_t bytes) {
  m_own.reserve(bytes);
  m_spans.reserve(bytes);
}

void AlignedText::append_copy(const AlignedText& source, std::size_t begin, std::size_t end) {
  m_own.append(source.text().substr(begin, end - begin));
  if (!source.m_is_view) {
    m_spans.insert(m_spans.end(), source.m_spans.begin() + static_cast<std::ptrdiff_t>(begin),
                   source.m_spans.begin() + static_cast<std::ptrdiff_t>(end));
    return;
  }
  const std::size_t first = m_spans.size();
  m_spans.resize(first + (end - begin));
  for (std::size_t i = begin; i < end; ++i) m_spans[first + i - begin] = source.span_of_byte(i);
}

void AlignedText::append(std::string_view text, ByteSpan origin) {
  m_own.append(text);
  m_spans.insert(m_spans.end(), text.size(), origin);
}

}  // namespace driftscope
