// SPDX-License-Identifier: Apache-2.0
// Keys and values of one sequence in main memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/backend/backend.h"
#include "kernels/plan/dtype.h"

namespace driftscope {

// Per layer two arrays [capacity, kv_heads, head_dim] of `dtype`, of which the first length() rows
// are filled.
class HostKvCache final : public KvCache {
 public:
  HostKvCache(std::int64_t layers, std::int64_t row_elements, Dtype dtype,
              std::int64_t expected_tokens);

  [[nodiscard]] std::int64_t length() const override { return m_length; }
  void truncate(std::int64_t length) override;
  [[nodiscard]] Result<std::unique_ptr<KvCache>> clone() const override;

  // Makes room for `tokens` tokens in all. Amortised constant time per token.
  void reserve(std::int64_t tokens);
  // Stores rows length() … length() + rows - 1 of one layer; k, v: [rows, row_elements], f32.
  void store(std::int64_t layer, const float* k, const float* v, std::int64_t rows);
  // The rows stored in every layer now belong to the sequence.
  void advance(std::int64_t rows) { m_length += rows; }

  [[nodiscard]] const void* keys(std::int64_t layer) const;
  [[nodiscard]] const void* values(std::int64_t layer) const;

 private:
  struct Layer {
    std::vector<std::byte> keys;
    std::vector<std::byte> values;
  };
  [[nodiscard]] std::size_t bytes_of(std::int64_t tokens) const;

  std::int64_t m_row_elements = 0;
  Dtype m_dtype = Dtype::f32;
  std::int64_t m_length = 0;
  std::int64_t m_capacity = 0;
  std::vector<Layer> m_layers;
};

}  // namespace driftscope
