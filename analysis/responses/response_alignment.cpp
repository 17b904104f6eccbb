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
std::vector<const TokenText*> tokens_of(const Steps& steps) {
  std::vector<const TokenText*> tokens;
  tokens.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) tokens.push_back(&steps[i].token);
  return tokens;
}

template <class Steps>
std::vector<TokenEdge> edges_of(const Steps& steps, const ResponseChannel& channel) {
  const std::vector<const TokenText*> tokens = tokens_of(steps);
  return channel.has_text ? token_edges(tokens, channel.text) : joined_edges(tokens);
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

bool ResponsePair::pair_stretch(const Stretch& a, const Stretch& b) {
  const std::size_t count = a.end - a.begin;
  bool pieces = false;
  for (std::size_t i = a.begin; i < a.end; ++i) pieces = pieces || is_piece(m_steps_a[i].token);
  for (std::size_t j = b.begin; j < b.end; ++j) pieces = pieces || is_piece(m_steps_b[j].token);
  bool alike = count == b.end - b.begin;
  for (std::size_t k = 0; alike && k < count; ++k) {
    const TokenText& one = m_steps_a[a.begin + k].token;
    const TokenText& other = m_steps_b[b.begin + k].token;
    const TokenEdge& end_a = (*a.edges)[a.begin + k + 1];
    const TokenEdge& end_b = (*b.edges)[b.begin + k + 1];
    alike = one.lossy || other.lossy ? end_a.least <= end_b.most && end_b.least <= end_a.most
                                     : one.bytes == other.bytes;
  }
  if (!alike) return pieces;
  for (std::size_t k = 0; k < count; ++k) m_pairs.emplace_back(a.begin + k, b.begin + k);
  return true;
}

bool ResponsePair::next_meeting(Stretch& a, Stretch& b) {
  a.end = a.begin + 1;
  b.end = b.begin + 1;
  while (a.end < a.edges->size() && b.end < b.edges->size()) {
    const TokenEdge& of_a = (*a.edges)[a.end];
    const TokenEdge& of_b = (*b.edges)[b.end];
    if (!of_a.exact() || (of_b.exact() && of_a.least < of_b.least)) {
      ++a.end;
    } else if (!of_b.exact() || of_b.least < of_a.least) {
      ++b.end;
    } else {
      return true;
    }
  }
  return false;
}

void ResponsePair::pair_by_position() {
  m_pairs.clear();
  const std::vector<TokenEdge> edges_a = edges_of(m_steps_a, m_channel_a);
  const std::vector<TokenEdge> edges_b = edges_of(m_steps_b, m_channel_b);
  const auto equal = static_cast<std::size_t>(m_out.equal_bytes);
  Stretch a{.edges = &edges_a};
  Stretch b{.edges = &edges_b};
  while (next_meeting(a, b) && edges_a[a.end].most <= equal && pair_stretch(a, b)) {
    a.begin = a.end;
    b.begin = b.end;
  }
  m_out.equal_tokens = static_cast<std::int64_t>(m_pairs.size());
  // A token that begins where its counterpart does and goes on past where the texts part.
  const auto parts = [&](const Stretch& side) {
    return side.begin + 1 < side.edges->size() && (*side.edges)[side.begin + 1].least > equal;
  };
  const bool ended = (a.begin == m_steps_a.size()) != (b.begin == m_steps_b.size());
  if (ended || parts(a) || parts(b)) m_parted = Place{.a = a.begin, .b = b.begin};
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
