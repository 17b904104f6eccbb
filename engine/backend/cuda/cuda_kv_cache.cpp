// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace driftscope {

Result<std::unique_ptr<CudaKvCache>> CudaKvCache::create(std::shared_ptr<CudaSession> session,
                                                         const KvShape& shape,
                                                         std::int64_t tokens) {
  std::unique_ptr<CudaKvCache> cache(new CudaKvCache(std::move(session), shape));
  if (auto done = cache->reserve(std::max<std::int64_t>(1, tokens)); !done) {
    return tl::unexpected(done.error());
  }
  return cache;
}

CudaKvCache::Layout CudaKvCache::layout(std::int64_t tokens) const {
  const auto aligned = [](std::size_t bytes) { return (bytes + 15) / 16 * 16; };
  const auto layers = static_cast<std::size_t>(m_shape.layers);
  const auto heads = static_cast<std::size_t>(tokens * m_shape.kv_heads);
  Layout result{};
  result.tokens = tokens;
  result.layer_bytes =
      heads * static_cast<std::size_t>(m_shape.head_dim) * dtype_size(m_shape.dtype);
  result.layer_scales = m_shape.dtype == KvDtype::int8 ? heads * sizeof(float) : 0;
  result.values_at = aligned(layers * result.layer_bytes);
  result.key_scales_at = 2 * result.values_at;
  result.value_scales_at = result.key_scales_at + aligned(layers * result.layer_scales);
  result.bytes = result.value_scales_at + layers * result.layer_scales;
  return result;
}

Result<void> CudaKvCache::reserve(std::int64_t tokens) {
  if (tokens <= m_capacity) return {};
  return m_shape.page == 0 ? grow_block(std::max(tokens, 2 * m_capacity)) : add_pages(tokens);
}

Result<void> CudaKvCache::grow_block(std::int64_t tokens) {
  const Layout larger = layout(tokens);
  auto block = m_session->allocate(fmt::format("the KV cache of {} tokens", tokens), larger.bytes);
  if (!block) return tl::unexpected(block.error());
  if (m_length > 0) copy_rows(m_blocks[0], layout(m_capacity), *block, larger, m_length);
  // Kernels in flight may still use the old memory.
  m_session->call(m_session->table().synchronize);
  if (auto status = m_session->status(); !status) return status;
  m_blocks.clear();
  m_blocks.push_back(*std::move(block));
  m_capacity = tokens;
  return {};
}

Result<void> CudaKvCache::add_pages(std::int64_t tokens) {
  const std::size_t bytes = layout(m_shape.page).bytes;
  while (static_cast<std::int64_t>(m_blocks.size()) * m_shape.page < tokens) {
    auto page =
        m_session->allocate(fmt::format("a page of a KV cache of {} tokens", tokens), bytes);
    if (!page) return tl::unexpected(page.error());
    m_blocks.push_back(*std::move(page));
  }
  std::vector<void*> table;
  for (const DeviceMemory& block : m_blocks) table.push_back(block.data());
  // Grows by half or more, and not while it is read.
  const std::size_t table_bytes = table.size() * sizeof(void*);
  if (m_table.bytes() < table_bytes) {
    auto memory = m_session->allocate("the table of a KV cache's pages", 2 * table_bytes);
    if (!memory) return tl::unexpected(memory.error());
    m_session->call(m_session->table().synchronize);
    m_table = *std::move(memory);
  }
  m_session->call(m_session->table().upload, m_table.data(), static_cast<const void*>(table.data()),
                  table_bytes);
  m_capacity = static_cast<std::int64_t>(m_blocks.size()) * m_shape.page;
  return m_session->status();
}

void CudaKvCache::copy_rows(const DeviceMemory& from, const Layout& from_layout,
                            const DeviceMemory& to, const Layout& to_layout,
                            std::int64_t rows) const {
  struct Part {
    std::size_t from, to, from_layer, to_layer;
  };
  const std::array parts{Part{0, 0, from_layout.layer_bytes, to_layout.layer_bytes},
                         Part{from_layout.values_at, to_layout.values_at, from_layout.layer_bytes,
                              to_layout.layer_bytes},
                         Part{from_layout.key_scales_at, to_layout.key_scales_at,
                              from_layout.layer_scales, to_layout.layer_scales},
                         Part{from_layout.value_scales_at, to_layout.value_scales_at,
                              from_layout.layer_scales, to_layout.layer_scales}};
  for (const Part& part : parts) {
    const std::size_t row_bytes = part.from_layer / static_cast<std::size_t>(from_layout.tokens);
    if (row_bytes == 0) continue;
    for (std::size_t layer = 0; layer < static_cast<std::size_t>(m_shape.layers); ++layer) {
      m_session->call(
          m_session->table().copy,
          static_cast<void*>(to.as<char>() + part.to + layer * part.to_layer),
          static_cast<const void*>(from.as<char>() + part.from + layer * part.from_layer),
          row_bytes * static_cast<std::size_t>(rows));
    }
  }
}

void CudaKvCache::truncate(std::int64_t length) {
  assert(length >= 0 && length <= m_length);
  m_length = length;
}

Result<std::unique_ptr<KvCache>> CudaKvCache::clone() const {
  auto copy = create(m_session, m_shape, m_capacity);
  if (!copy) return tl::unexpected(copy.error());
  const Layout block = layout(m_shape.page == 0 ? m_capacity : m_shape.page);
  for (std::size_t i = 0; i < m_blocks.size(); ++i) {
    const std::int64_t begin = static_cast<std::int64_t>(i) * block.tokens;
    const std::int64_t rows = std::min(block.tokens, m_length - begin);
    if (rows <= 0) break;
    copy_rows(m_blocks[i], block, (*copy)->m_blocks[i], block, rows);
  }
  (*copy)->m_length = m_length;
  if (auto status = m_session->status(); !status) return tl::unexpected(status.error());
  return *std::move(copy);
}

DeviceSequence CudaKvCache::sequence(std::int64_t keys) const {
  const bool paged = m_shape.page > 0;
  const Layout block = layout(paged ? m_shape.page : m_capacity);
  return {.block = m_blocks[0].as<char>(),
          .blocks = paged ? m_table.as<char*>() : nullptr,
          .block_tokens = block.tokens,
          .values_at = static_cast<std::int64_t>(block.values_at),
          .key_scales_at = static_cast<std::int64_t>(block.key_scales_at),
          .value_scales_at = static_cast<std::int64_t>(block.value_scales_at),
          .keys = keys};
}

}  // namespace driftscope
