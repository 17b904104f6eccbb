// SPDX-License-Identifier: Apache-2.0
// Copies chosen rows of chosen operations during a forward pass.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/backend/taps.h"
#include "engine/model/checkpoint.h"
#include "engine/trace/trace.h"

namespace driftscope {

class TapRecorder {
 public:
  explicit TapRecorder(const ModelDescription& model);

  // Starts a pass that records `rows` (indices of the batch's rows, rising) at `level`.
  void begin(TapLevel level, std::span<const std::int64_t> rows);
  // `values`: [batch rows, width of the operation], row stride `stride` elements.
  void record(Operation operation, std::int64_t layer, const float* values, std::int64_t stride);
  // As record(), but row i of `values` belongs to the i-th recorded row.
  void record_dense(Operation operation, std::int64_t layer, const float* values,
                    std::int64_t stride, std::span<const std::int64_t> dense_rows);
  // Taps of the index-th recorded row. Valid until the next call.
  [[nodiscard]] std::span<const TensorTap> row(std::int64_t index);

 private:
  struct Slot {
    int layer;
    Operation operation;
    std::int64_t width;
    std::int64_t offset;  // in a row of m_values
  };
  [[nodiscard]] const Slot* find(Operation operation, std::int64_t layer);

  const ModelDescription& m_model;
  TapLevel m_level = TapLevel::logits;
  std::vector<Slot> m_slots;  // in the order of emission
  std::size_t m_next = 0;     // records come in that order, so the next slot is known
  std::int64_t m_row_width = 0;
  std::vector<std::int64_t> m_rows;
  std::vector<float> m_values;  // [recorded rows, m_row_width]
  std::vector<TensorTap> m_taps;
};

}  // namespace driftscope
