// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/responses/response_pair.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

template <class Steps>
bool all_have_ids(const Steps& steps) {
  return !steps.any([](const ResponseStep& step) { return !step.token.id.has_value(); });
}

template <class Steps>
bool any_lossy(const Steps& steps) {
  return steps.any([](const ResponseStep& step) { return step.token.lossy; });
}

template <class Steps>
bool have_bytes(const Steps& steps) {
  return !steps.any([](const ResponseStep& step) {
    return step.token.bytes.empty() && !step.token.bytes_given && !step.text_of_group;
  });
}

// A piece of a character, whose bytes a server loses that prints each token as text.
bool is_piece(const TokenText& token) {
  return token.lossy || find_invalid_utf8(token.bytes) < token.bytes.size();
}

template <class Steps>
std::size_t pieces_from(const Steps& steps, std::size_t at) {
  std::size_t count = 0;
  while (at + count < steps.size() && is_piece(steps[at + count].token)) ++count;
  return count;
}

}  // namespace

bool ResponsePair::texts_known() const {
  const auto known = [](const ResponseChannel& channel) {
    return channel.has_text || !channel.steps.empty();
  };
  return known(m_channel_a) && known(m_channel_b);
}

void ResponsePair::align() {
  if (m_steps_a.empty() || m_steps_b.empty()) {
    m_out.alignment = texts_known() ? ResponseAlignment::text : ResponseAlignment::none;
    return;
  }
  if (all_have_ids(m_steps_a) && all_have_ids(m_steps_b) && same_vocabulary()) {
    m_out.alignment = ResponseAlignment::token_ids;
  } else if (any_lossy(m_steps_a) || any_lossy(m_steps_b)) {
    m_out.alignment = ResponseAlignment::positions;
  } else if (!have_bytes(m_steps_a) || !have_bytes(m_steps_b)) {
    m_out.alignment = texts_known() ? ResponseAlignment::text : ResponseAlignment::none;
    return;
  } else {
    m_out.alignment =
        other_boundaries() ? ResponseAlignment::byte_offsets : ResponseAlignment::token_bytes;
  }
  count_equal();
}

bool ResponsePair::same_vocabulary() const {
  const std::size_t count = std::min(m_steps_a.size(), m_steps_b.size());
  for (std::size_t i = 0; i < count; ++i) {
    const TokenText& a = m_steps_a[i].token;
    const TokenText& b = m_steps_b[i].token;
    if (*a.id != *b.id) return a.bytes != b.bytes || a.bytes.empty();
    if (!a.bytes.empty() && !b.bytes.empty() && a.bytes != b.bytes && !a.lossy && !b.lossy) {
      return false;
    }
  }
  return true;
}

bool ResponsePair::other_boundaries() const {
  std::int64_t byte = 0;
  const std::size_t count = std::min(m_steps_a.size(), m_steps_b.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto size_a = static_cast<std::int64_t>(m_steps_a[i].token.bytes.size());
    const auto size_b = static_cast<std::int64_t>(m_steps_b[i].token.bytes.size());
    if (byte + std::max(size_a, size_b) > m_out.equal_bytes) return false;
    if (size_a != size_b) return true;
    byte += size_a;
  }
  return false;
}

void ResponsePair::count_equal() {
  const std::size_t count = std::min(m_steps_a.size(), m_steps_b.size());
  std::size_t equal = 0;
  while (equal < count && equal_at(equal, equal)) ++equal;
  m_out.equal_tokens = static_cast<std::int64_t>(equal);
  for (std::size_t i = 0; i < equal; ++i) m_pairs.emplace_back(i, i);
  if (m_out.alignment == ResponseAlignment::byte_offsets) pair_by_offset();
  if (m_out.alignment == ResponseAlignment::positions) pair_by_position();
}

bool ResponsePair::equal_at(std::size_t i, std::size_t j) const {
  const TokenText& a = m_steps_a[i].token;
  const TokenText& b = m_steps_b[j].token;
  switch (m_out.alignment) {
    case ResponseAlignment::token_ids:
      return *a.id == *b.id;
    case ResponseAlignment::positions:
      return a.lossy || b.lossy || a.bytes == b.bytes;
    default:
      return a.bytes == b.bytes;
  }
}

std::pair<std::size_t, std::size_t> ResponsePair::other_pieces(std::size_t i, std::size_t j) const {
  constexpr std::size_t kMostBetween = 16;
  const std::size_t pieces_a = pieces_from(m_steps_a, i);
  const std::size_t pieces_b = pieces_from(m_steps_b, j);
  const auto meet = [&](std::size_t at_a, std::size_t at_b) {
    if (at_a >= m_steps_a.size() || at_b >= m_steps_b.size())
      return at_a == m_steps_a.size() && at_b == m_steps_b.size();
    const TokenText& a = m_steps_a[at_a].token;
    const TokenText& b = m_steps_b[at_b].token;
    return !a.lossy && !b.lossy && a.bytes == b.bytes;
  };
  // The side with more pieces splits what the other has in one.
  const bool a_splits = pieces_a > pieces_b;
  const std::size_t fixed = a_splits ? pieces_a : pieces_b;
  const std::size_t least = std::max<std::size_t>(1, a_splits ? pieces_b : pieces_a);
  for (std::size_t other = least; other < least + kMostBetween; ++other) {
    const std::size_t of_a = a_splits ? fixed : other;
    const std::size_t of_b = a_splits ? other : fixed;
    if (meet(i + of_a, j + of_b)) return {of_a, of_b};
  }
  return {0, 0};
}

void ResponsePair::pair_by_position() {
  m_pairs.clear();
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < m_steps_a.size() && j < m_steps_b.size()) {
    const TokenText& a = m_steps_a[i].token;
    const TokenText& b = m_steps_b[j].token;
    if (!a.lossy && !b.lossy) {
      if (a.bytes != b.bytes) break;
      m_pairs.emplace_back(i++, j++);
      continue;
    }
    const std::size_t pieces = pieces_from(m_steps_a, i);
    if (pieces == pieces_from(m_steps_b, j)) {
      for (std::size_t k = 0; k < pieces; ++k) m_pairs.emplace_back(i++, j++);
      continue;
    }
    const auto [of_a, of_b] = other_pieces(i, j);
    if (of_a == 0) break;
    i += of_a;
    j += of_b;
  }
  m_out.equal_tokens = static_cast<std::int64_t>(m_pairs.size());
}

void ResponsePair::pair_by_offset() {
  m_pairs.clear();
  std::size_t i = 0;
  std::size_t j = 0;
  std::int64_t at_a = 0;
  std::int64_t at_b = 0;
  while (i < m_steps_a.size() && j < m_steps_b.size() && std::max(at_a, at_b) < m_out.equal_bytes) {
    if (at_a == at_b && m_steps_a[i].token.bytes == m_steps_b[j].token.bytes) {
      m_pairs.emplace_back(i, j);
    }
    if (at_a <= at_b) {
      at_a += static_cast<std::int64_t>(m_steps_a[i++].token.bytes.size());
    } else {
      at_b += static_cast<std::int64_t>(m_steps_b[j++].token.bytes.size());
    }
  }
  m_out.equal_tokens = static_cast<std::int64_t>(m_pairs.size());
}

}  // namespace driftscope
