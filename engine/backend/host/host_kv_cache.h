// SPDX-License-Identifier: Apache-2.0
// Keys and values of one sequence in main memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/backend/backend.h"
#include "kernels/attention/attention.h"
#include "kernels/plan/kv_dtype.h"

namespace driftscope {

struct KvShape {
  std::int64_t layers = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  KvDtype dtype = KvDtype::f32;
  std::int64_t page = 0;  // tokens per block of a paged cache; 0: one block that grows
};

// Per layer, keys and values [tokens, kv_heads, head_dim] of `dtype` and, for int8, their scales
// [tokens, kv_heads]: in one block, or in blocks of `page` tokens found through a table.
class HostKvCache final : public KvCache {
 public:
  HostKvCache(const KvShape& shape, std::int64_t expected_tokens);

  [[nodiscard]] std::int64_t length() const override { return m_length; }
  void truncate(std::int64_t length) override;
  [[nodiscard]] Result<std::unique_ptr<KvCache>> clone() const override;

  // Makes room for `tokens` tokens in all. Amortised constant time per token.
  void reserve(std::int64_t tokens);
  // Stores rows length() … length() + rows - 1 of one layer; k, v: [rows, kv_heads, head_dim], f32.
  void store(std::int64_t layer, const float* k, const float* v, std::int64_t rows);
  // The rows stored in every layer now belong to the sequence.
  void advance(std::int64_t rows) { m_length += rows; }

  // Where `sequence` finds its keys and values; valid until the next reserve().
  void point(std::int64_t layer, AttentionSequence& sequence) const;

 private:
  struct Block {
    std::vector<std::byte> codes;
    std::vector<float> scales;  // int8 only
  };
  // Keys or values of one layer.
  struct Side {
    std::vector<Block> blocks;
    std::vector<const void*> table;         // where each block's codes begin
    std::vector<const float*> scale_table;  // and its scales
  };
  struct Layer {
    Side keys;
    Side values;
  };
  void grow(Side& side, std::int64_t tokens) const;
  void resize(Block& block, std::int64_t tokens) const;
  void store_side(Side& side, const float* values, std::int64_t rows) const;

  KvShape m_shape;
  std::int64_t m_length = 0;
  std::int64_t m_capacity = 0;
  std::vector<Layer> m_layers;
};

}  // namespace driftscope
