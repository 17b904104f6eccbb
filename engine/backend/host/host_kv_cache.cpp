// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/host_kv_cache.h"

#include <algorithm>
#include <cassert>

#include "kernels/quant/kv_codec.h"

namespace driftscope {

HostKvCache::HostKvCache(const KvShape& shape, std::int64_t expected_tokens)
    : m_shape(shape), m_layers(static_cast<std::size_t>(shape.layers)) {
  reserve(std::max<std::int64_t>(1, expected_tokens));
}

void HostKvCache::resize(Block& block, std::int64_t tokens) const {
  const auto heads = static_cast<std::size_t>(tokens * m_shape.kv_heads);
  block.codes.resize(heads * static_cast<std::size_t>(m_shape.head_dim) *
                     dtype_size(m_shape.dtype));
  if (m_shape.dtype == KvDtype::int8) block.scales.resize(heads);
}

void HostKvCache::grow(Side& side, std::int64_t tokens) const {
  if (m_shape.page == 0) {
    side.blocks.resize(1);
    resize(side.blocks[0], tokens);
  } else {
    while (static_cast<std::int64_t>(side.blocks.size()) * m_shape.page < tokens) {
      resize(side.blocks.emplace_back(), m_shape.page);
    }
  }
  side.table.clear();
  side.scale_table.clear();
  for (const Block& block : side.blocks) {
    side.table.push_back(block.codes.data());
    side.scale_table.push_back(block.scales.data());
  }
}

void HostKvCache::reserve(std::int64_t tokens) {
  if (tokens <= m_capacity) return;
  // Pages are added as they are needed; one block is copied when it grows, so it doubles.
  m_capacity = m_shape.page == 0 ? std::max(tokens, 2 * m_capacity)
                                 : (tokens + m_shape.page - 1) / m_shape.page * m_shape.page;
  for (Layer& layer : m_layers) {
    grow(layer.keys, m_capacity);
    grow(layer.values, m_capacity);
  }
}

void HostKvCache::truncate(std::int64_t length) {
  assert(length >= 0 && length <= m_length);
  m_length = length;
}

Result<std::unique_ptr<KvCache>> HostKvCache::clone() const {
  auto copy = std::make_unique<HostKvCache>(m_shape, m_capacity);
  const auto copy_side = [](const Side& from, Side& to) {
    for (std::size_t i = 0; i < from.blocks.size(); ++i) {
      std::ranges::copy(from.blocks[i].codes, to.blocks[i].codes.begin());
      std::ranges::copy(from.blocks[i].scales, to.blocks[i].scales.begin());
    }
  };
  for (std::size_t i = 0; i < m_layers.size(); ++i) {
    copy_side(m_layers[i].keys, copy->m_layers[i].keys);
    copy_side(m_layers[i].values, copy->m_layers[i].values);
  }
  copy->m_length = m_length;
  return copy;
}

void HostKvCache::store_side(Side& side, const float* values, std::int64_t rows) const {
  const std::int64_t page = m_shape.page == 0 ? m_capacity : m_shape.page;
  const std::int64_t row_elements = m_shape.kv_heads * m_shape.head_dim;
  std::int64_t at = m_length;
  while (rows > 0) {
    Block& block = side.blocks[static_cast<std::size_t>(at / page)];
    const std::int64_t row = at % page;
    const std::int64_t count = std::min(rows, page - row);
    float* scales = block.scales.empty() ? nullptr : block.scales.data() + row * m_shape.kv_heads;
    std::byte* codes = block.codes.data() +
                       static_cast<std::size_t>(row * row_elements) * dtype_size(m_shape.dtype);
    kv_store(m_shape.dtype, values, count * m_shape.kv_heads, m_shape.head_dim, codes, scales);
    values += count * row_elements;
    at += count;
    rows -= count;
  }
}

void HostKvCache::store(std::int64_t layer, const float* k, const float* v, std::int64_t rows) {
  assert(m_length + rows <= m_capacity);
  Layer& target = m_layers[static_cast<std::size_t>(layer)];
  store_side(target.keys, k, rows);
  store_side(target.values, v, rows);
}

void HostKvCache::point(std::int64_t layer, AttentionSequence& sequence) const {
  const Layer& from = m_layers[static_cast<std::size_t>(layer)];
  sequence.block_tokens = m_shape.page;
  if (m_shape.page == 0) {
    sequence.k = from.keys.table[0];
    sequence.v = from.values.table[0];
    sequence.k_scales = from.keys.scale_table[0];
    sequence.v_scales = from.values.scale_table[0];
    return;
  }
  sequence.k_blocks = from.keys.table.data();
  sequence.v_blocks = from.values.table.data();
  sequence.k_scale_blocks = from.keys.scale_table.data();
  sequence.v_scale_blocks = from.values.scale_table.data();
}

}  // namespace driftscope
