// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/tap_recorder.h"

#include <algorithm>
#include <cassert>

namespace driftscope {

TapRecorder::TapRecorder(const ModelDescription& model) : m_model(model) {}

void TapRecorder::begin(TapLevel level, std::span<const std::int64_t> rows) {
  if (level != m_level) {
    m_level = level;
    m_slots.clear();
    m_row_width = 0;
    for (const TapSpec& spec : tap_specs(m_model, level)) {
      const auto operations = tap_operations();
      const auto found = std::find_if(operations.begin(), operations.end(),
                                      [&](const auto& o) { return o.name == spec.operation; });
      m_slots.push_back({.layer = spec.layer,
                         .operation = found->operation,
                         .width = spec.width,
                         .offset = m_row_width});
      m_row_width += spec.width;
    }
  }
  m_next = 0;
  m_rows.assign(rows.begin(), rows.end());
  m_values.resize(m_rows.size() * static_cast<std::size_t>(m_row_width));
}

const TapRecorder::Slot* TapRecorder::find(Operation operation, std::int64_t layer) {
  if (m_next == m_slots.size()) return nullptr;
  const Slot& slot = m_slots[m_next];
  if (slot.operation != operation || slot.layer != layer) return nullptr;
  ++m_next;
  return &slot;
}

void TapRecorder::record(Operation operation, std::int64_t layer, const float* values,
                         std::int64_t stride) {
  record_dense(operation, layer, values, stride, m_rows);
}

void TapRecorder::record_dense(Operation operation, std::int64_t layer, const float* values,
                               std::int64_t stride, std::span<const std::int64_t> dense_rows) {
  if (m_rows.empty()) return;
  assert(dense_rows.size() == m_rows.size());
  const Slot* slot = find(operation, layer);
  if (slot == nullptr) return;
  float* target = m_values.data() + slot->offset;
  for (const std::int64_t row : dense_rows) {
    std::copy_n(values + row * stride, slot->width, target);
    target += m_row_width;
  }
}

std::span<const TensorTap> TapRecorder::row(std::int64_t index) {
  assert(index >= 0 && index < static_cast<std::int64_t>(m_rows.size()));
  m_taps.clear();
  const float* values = m_values.data() + index * m_row_width;
  for (const Slot& slot : m_slots) {
    m_taps.push_back({.layer = slot.layer,
                      .operation = name_of(slot.operation),
                      .values = {values + slot.offset, static_cast<std::size_t>(slot.width)}});
  }
  return m_taps;
}

}  // namespace driftscope
