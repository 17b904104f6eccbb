// SPDX-License-Identifier: Apache-2.0
// Keys and values of one sequence in device memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/cuda_session.h"
#include "engine/backend/host/host_kv_cache.h"
#include "kernels/attention/attention_device.h"

namespace driftscope {

// One block that grows, or pages of KvShape::page tokens that are added; a block's bytes are laid
// out as DeviceSequence says.
class CudaKvCache final : public KvCache {
 public:
  // Errors: engine (does not fit).
  [[nodiscard]] static Result<std::unique_ptr<CudaKvCache>> create(
      std::shared_ptr<CudaSession> session, const KvShape& shape, std::int64_t tokens);

  [[nodiscard]] std::int64_t length() const override { return m_length; }
  void truncate(std::int64_t length) override;
  [[nodiscard]] Result<std::unique_ptr<KvCache>> clone() const override;

  // Makes room for `tokens` tokens in all. Amortised constant time per token.
  [[nodiscard]] Result<void> reserve(std::int64_t tokens);
  void advance(std::int64_t rows) { m_length += rows; }
  // `keys`: tokens once the call in hand is done. Valid until the next reserve().
  [[nodiscard]] DeviceSequence sequence(std::int64_t keys) const;

 private:
  // Where the parts of a block of `tokens` tokens begin, in bytes; each begins at a multiple of 16.
  struct Layout {
    std::int64_t tokens;
    std::size_t layer_bytes;   // of keys, and of values
    std::size_t layer_scales;  // bytes of scales; 0 but for int8
    std::size_t values_at, key_scales_at, value_scales_at, bytes;
  };
  CudaKvCache(std::shared_ptr<CudaSession> session, const KvShape& shape)
      : m_session(std::move(session)), m_shape(shape) {}
  [[nodiscard]] Layout layout(std::int64_t tokens) const;
  [[nodiscard]] Result<void> grow_block(std::int64_t tokens);
  [[nodiscard]] Result<void> add_pages(std::int64_t tokens);
  // The first `rows` rows of every part.
  void copy_rows(const DeviceMemory& from, const Layout& from_layout, const DeviceMemory& to,
                 const Layout& to_layout, std::int64_t rows) const;

  std::shared_ptr<CudaSession> m_session;
  KvShape m_shape;
  std::int64_t m_length = 0;
  std::int64_t m_capacity = 0;
  std::vector<DeviceMemory> m_blocks;
  DeviceMemory m_table;  // of the pages' addresses
};

}  // namespace driftscope
