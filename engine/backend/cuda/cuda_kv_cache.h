// SPDX-License-Identifier: Apache-2.0
// Keys and values of one sequence in device memory.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/cuda_session.h"
#include "kernels/attention/attention_device.h"

namespace driftscope {

// Two arrays [layers, capacity, kv_heads, head_dim] of `dtype`.
class CudaKvCache final : public KvCache {
 public:
  // Errors: engine (does not fit).
  [[nodiscard]] static Result<std::unique_ptr<CudaKvCache>> create(
      std::shared_ptr<CudaSession> session, std::int64_t layers, std::int64_t row_elements,
      Dtype dtype, std::int64_t tokens);

  [[nodiscard]] std::int64_t length() const override { return m_length; }
  void truncate(std::int64_t length) override;
  [[nodiscard]] Result<std::unique_ptr<KvCache>> clone() const override;

  // Makes room for `tokens` tokens in all. Amortised constant time per token.
  [[nodiscard]] Result<void> reserve(std::int64_t tokens);
  void advance(std::int64_t rows) { m_length += rows; }
  // `keys`: tokens once the call in hand is done.
  [[nodiscard]] DeviceSequence sequence(std::int64_t keys) const;

 private:
  CudaKvCache(std::shared_ptr<CudaSession> session, std::int64_t layers, std::int64_t row_elements,
              Dtype dtype)
      : m_session(std::move(session)),
        m_layers(layers),
        m_row_bytes(static_cast<std::size_t>(row_elements) * dtype_size(dtype)),
        m_row_elements(row_elements),
        m_dtype(dtype) {}
  void copy_rows_from(const CudaKvCache& other);
  [[nodiscard]] std::size_t layer_bytes() const {
    return static_cast<std::size_t>(m_capacity) * m_row_bytes;
  }

  std::shared_ptr<CudaSession> m_session;
  std::int64_t m_layers;
  std::size_t m_row_bytes;
  std::int64_t m_row_elements;
  Dtype m_dtype;
  std::int64_t m_length = 0;
  std::int64_t m_capacity = 0;
  DeviceMemory m_keys;
  DeviceMemory m_values;
};

}  // namespace driftscope
