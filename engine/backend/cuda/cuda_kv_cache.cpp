// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace driftscope {

Result<std::unique_ptr<CudaKvCache>> CudaKvCache::create(std::shared_ptr<CudaSession> session,
                                                         std::int64_t layers,
                                                         std::int64_t row_elements, Dtype dtype,
                                                         std::int64_t tokens) {
  std::unique_ptr<CudaKvCache> cache(
      new CudaKvCache(std::move(session), layers, row_elements, dtype));
  if (auto done = cache->reserve(tokens); !done) return tl::unexpected(done.error());
  return cache;
}

Result<void> CudaKvCache::reserve(std::int64_t tokens) {
  if (tokens <= m_capacity) return {};
  CudaKvCache larger(m_session, m_layers, m_row_elements, m_dtype);
  larger.m_capacity = std::max(tokens, 2 * m_capacity);
  const std::size_t bytes = static_cast<std::size_t>(m_layers) * larger.layer_bytes();
  const std::string what = fmt::format("the KV cache of {} tokens", larger.m_capacity);
  auto keys = m_session->allocate(what, bytes);
  if (!keys) return tl::unexpected(keys.error());
  auto values = m_session->allocate(what, bytes);
  if (!values) return tl::unexpected(values.error());
  larger.m_keys = *std::move(keys);
  larger.m_values = *std::move(values);
  larger.copy_rows_from(*this);
  m_session->call(m_session->table().synchronize);
  m_keys = std::move(larger.m_keys);
  m_values = std::move(larger.m_values);
  m_capacity = larger.m_capacity;
  return m_session->status();
}

void CudaKvCache::copy_rows_from(const CudaKvCache& other) {
  const std::size_t filled = static_cast<std::size_t>(other.m_length) * m_row_bytes;
  if (filled == 0) return;
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(m_layers); ++layer) {
    for (const auto& [to, from] :
         {std::pair{&m_keys, &other.m_keys}, std::pair{&m_values, &other.m_values}}) {
      m_session->call(
          m_session->table().copy, static_cast<void*>(to->as<char>() + layer * layer_bytes()),
          static_cast<const void*>(from->as<char>() + layer * other.layer_bytes()), filled);
    }
  }
}

void CudaKvCache::truncate(std::int64_t length) {
  assert(length >= 0 && length <= m_length);
  m_length = length;
}

Result<std::unique_ptr<KvCache>> CudaKvCache::clone() const {
  auto copy = create(m_session, m_layers, m_row_elements, m_dtype, m_capacity);
  if (!copy) return tl::unexpected(copy.error());
  (*copy)->copy_rows_from(*this);
  (*copy)->m_length = m_length;
  if (auto status = m_session->status(); !status) return tl::unexpected(status.error());
  return *std::move(copy);
}

DeviceSequence CudaKvCache::sequence(std::int64_t keys) const {
  return {.k = m_keys.data(),
          .v = m_values.data(),
          .layer_bytes = static_cast<std::int64_t>(layer_bytes()),
          .keys = keys};
}

}  // namespace driftscope
