// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_tap_recorder.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace driftscope {
namespace {

constexpr std::size_t kPieces = 4;  // of the table's 16 slots
constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;

}  // namespace

CudaTapRecorder::CudaTapRecorder(std::shared_ptr<CudaSession> session,
                                 const ModelDescription& model)
    : m_session(std::move(session)), m_model(model) {}

CudaTapRecorder::~CudaTapRecorder() {
  for (const Piece& piece : m_ring) {
    m_session->table().release_pinned(m_session->context(), piece.pinned);
  }
}

Result<void> CudaTapRecorder::begin(TapLevel level, std::int64_t rows, int& generation) {
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
  m_flushed = 0;
  m_rows = m_slots.empty() ? 0 : rows;
  m_values.resize(static_cast<std::size_t>(m_rows * m_row_width));
  if (m_rows == 0) return {};
  for (std::size_t i = m_ring.size(); i < kPieces; ++i) {
    Piece piece;
    m_session->call(m_session->table().allocate_pinned, kPieceBytes, &piece.pinned);
    if (auto status = m_session->status(); !status) return status;
    m_ring.push_back(piece);
  }
  return m_device.reserve(*m_session, m_values.size() * sizeof(float), generation);
}

void CudaTapRecorder::record(Operation operation, std::int64_t layer, const float* values,
                             std::int64_t stride, const std::int64_t* row_list) {
  if (m_rows == 0 || m_next == m_slots.size()) return;
  const Slot& slot = m_slots[m_next];
  if (slot.operation != operation || slot.layer != layer) return;
  ++m_next;
  m_session->run(m_session->table().gather,
                 DeviceGather{.x = values,
                              .rows = row_list,
                              .y = m_device.as<float>() + slot.offset * m_rows,
                              .count = m_rows,
                              .width = slot.width,
                              .x_stride = stride,
                              .y_stride = slot.width});
}

std::int64_t CudaTapRecorder::filled() const {
  return m_next == m_slots.size() ? m_row_width * m_rows : m_slots[m_next].offset * m_rows;
}

void CudaTapRecorder::drain(std::size_t number) {
  Piece& piece = m_ring[number];
  if (piece.target == nullptr) return;
  m_session->call(m_session->table().wait_copy, static_cast<int>(number));
  std::memcpy(piece.target, piece.pinned, piece.bytes);
  piece.target = nullptr;
}

void CudaTapRecorder::flush() {
  if (m_rows == 0) return;
  constexpr auto kMost = static_cast<std::int64_t>(kPieceBytes / sizeof(float));
  while (m_flushed < filled()) {
    const std::int64_t count = std::min(kMost, filled() - m_flushed);
    const std::size_t number = m_ring_next++ % m_ring.size();
    drain(number);
    Piece& piece = m_ring[number];
    piece.target = m_values.data() + m_flushed;
    piece.bytes = static_cast<std::size_t>(count) * sizeof(float);
    m_session->call(m_session->table().start_copy, static_cast<int>(number), piece.pinned,
                    static_cast<const void*>(m_device.as<float>() + m_flushed), piece.bytes);
    m_flushed += count;
  }
}

void CudaTapRecorder::finish() {
  flush();
  for (std::size_t i = 0; i < m_ring.size(); ++i) drain((m_ring_next + i) % m_ring.size());
}

std::span<const TensorTap> CudaTapRecorder::row(std::int64_t index) {
  assert(index >= 0 && index < m_rows);
  m_taps.clear();
  for (const Slot& slot : m_slots) {
    const float* values = m_values.data() + slot.offset * m_rows + index * slot.width;
    m_taps.push_back({.layer = slot.layer,
                      .operation = name_of(slot.operation),
                      .values = {values, static_cast<std::size_t>(slot.width)}});
  }
  return m_taps;
}

}  // namespace driftscope
