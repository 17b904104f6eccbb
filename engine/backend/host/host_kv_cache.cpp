// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/host_kv_cache.h"

#include <algorithm>
#include <cassert>

namespace driftscope {

HostKvCache::HostKvCache(std::int64_t layers, std::int64_t row_elements, Dtype dtype,
                         std::int64_t expected_tokens)
    : m_row_elements(row_elements), m_dtype(dtype), m_layers(static_cast<std::size_t>(layers)) {
  reserve(expected_tokens);
}

std::size_t HostKvCache::bytes_of(std::int64_t tokens) const {
  return static_cast<std::size_t>(tokens * m_row_elements) * dtype_size(m_dtype);
}

void HostKvCache::reserve(std::int64_t tokens) {
  if (tokens <= m_capacity) return;
  const std::int64_t capacity = std::max(tokens, 2 * m_capacity);
  for (Layer& layer : m_layers) {
    layer.keys.resize(bytes_of(capacity));
    layer.values.resize(bytes_of(capacity));
  }
  m_capacity = capacity;
}

void HostKvCache::truncate(std::int64_t length) {
  assert(length >= 0 && length <= m_length);
  m_length = length;
}

Result<std::unique_ptr<KvCache>> HostKvCache::clone() const {
  auto copy = std::make_unique<HostKvCache>(static_cast<std::int64_t>(m_layers.size()),
                                            m_row_elements, m_dtype, m_capacity);
  const auto filled = static_cast<std::ptrdiff_t>(bytes_of(m_length));
  for (std::size_t i = 0; i < m_layers.size(); ++i) {
    std::copy_n(m_layers[i].keys.begin(), filled, copy->m_layers[i].keys.begin());
    std::copy_n(m_layers[i].values.begin(), filled, copy->m_layers[i].values.begin());
  }
  copy->m_length = m_length;
  return copy;
}

void HostKvCache::store(std::int64_t layer, const float* k, const float* v, std::int64_t rows) {
  assert(m_length + rows <= m_capacity);
  Layer& target = m_layers[static_cast<std::size_t>(layer)];
  const std::size_t offset = bytes_of(m_length);
  const auto count = static_cast<std::size_t>(rows * m_row_elements);
  narrow(m_dtype, k, target.keys.data() + offset, count);
  narrow(m_dtype, v, target.values.data() + offset, count);
}

const void* HostKvCache::keys(std::int64_t layer) const {
  return m_layers[static_cast<std::size_t>(layer)].keys.data();
}

const void* HostKvCache::values(std::int64_t layer) const {
  return m_layers[static_cast<std::size_t>(layer)].values.data();
}

}  // namespace driftscope
