// SPDX-License-Identifier: Apache-2.0
// Copies chosen rows of chosen operations out of a forward pass: a kernel gathers them on the
// device, and a ring of pinned memory takes them to the host beside the kernels that follow.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/backend/cuda/cuda_session.h"
#include "engine/backend/taps.h"
#include "engine/trace/trace.h"

namespace driftscope {

class CudaTapRecorder {
 public:
  CudaTapRecorder(std::shared_ptr<CudaSession> session, const ModelDescription& model);
  ~CudaTapRecorder();
  CudaTapRecorder(const CudaTapRecorder&) = delete;
  CudaTapRecorder& operator=(const CudaTapRecorder&) = delete;

  // Starts a pass that records `rows` rows at `level`. Errors: engine (does not fit).
  [[nodiscard]] Result<void> begin(TapLevel level, std::int64_t rows, int& generation);
  // values: device memory with row stride `stride`; row_list: device memory, the rows to record.
  void record(Operation operation, std::int64_t layer, const float* values, std::int64_t stride,
              const std::int64_t* row_list);
  // Hands what was recorded so far to the ring. Not while a graph is being captured.
  void flush();
  // A graph that recorded everything has run.
  void recorded_by_graph() { m_next = m_slots.size(); }
  // Waits for the copies.
  void finish();
  // Taps of the index-th recorded row. Valid until the next call.
  [[nodiscard]] std::span<const TensorTap> row(std::int64_t index);

 private:
  struct Slot {
    int layer;
    Operation operation;
    std::int64_t width;
    std::int64_t offset;  // widths of the slots before; times rows: where its values begin
  };
  // A piece of pinned memory and where its contents go.
  struct Piece {
    void* pinned = nullptr;
    float* target = nullptr;  // null: free
    std::size_t bytes = 0;
  };
  [[nodiscard]] std::int64_t filled() const;
  void drain(std::size_t piece);

  std::shared_ptr<CudaSession> m_session;
  const ModelDescription& m_model;
  TapLevel m_level = TapLevel::logits;
  std::vector<Slot> m_slots;  // in the order of emission
  std::size_t m_next = 0;
  std::int64_t m_row_width = 0;
  std::int64_t m_rows = 0;
  std::int64_t m_flushed = 0;   // elements handed to the ring
  DeviceList m_device{"taps"};  // slot after slot, each [rows, width]
  std::vector<float> m_values;  // the same on the host
  std::vector<Piece> m_ring;
  std::size_t m_ring_next = 0;
  std::vector<TensorTap> m_taps;
};

}  // namespace driftscope
