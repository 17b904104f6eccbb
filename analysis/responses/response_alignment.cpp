// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/responses/response_pair.h"

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
