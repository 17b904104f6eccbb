// SPDX-License-Identifier: Apache-2.0
// What the rows of a call are, as tables in device memory, so that a captured graph finds the next
// call's rows at the same addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/cuda_session.h"
#include "kernels/attention/attention_device.h"

namespace driftscope {

class CudaBatchTables {
 public:
  // Reserves room in the caches for the batch's rows and fills the tables. Errors: engine (does
  // not fit). `generation` counts the moves of the tables.
  [[nodiscard]] Result<void> lay_out(CudaSession& session, const Batch& batch,
                                     const RunConfig& config, int& generation);

  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(m_ids.size()); }
  [[nodiscard]] std::int64_t output_rows() const {
    return static_cast<std::int64_t>(m_outputs.size());
  }
  [[nodiscard]] std::int64_t tap_rows() const { return static_cast<std::int64_t>(m_taps.size()); }
  // The index of an output row among the rows with taps, or -1.
  [[nodiscard]] std::int64_t tap_of_output(std::int64_t output_row) const {
    return m_tap_of_output[static_cast<std::size_t>(output_row)];
  }
  [[nodiscard]] std::int64_t most_keys() const { return m_most_keys; }  // of any sequence

  [[nodiscard]] DeviceRows device_rows(std::int64_t layer) const;
  [[nodiscard]] const std::int32_t* ids() const { return m_device_ids.as<std::int32_t>(); }
  // The same on this side: rows of the batch, rising.
  [[nodiscard]] const std::vector<std::int64_t>& output_row_list() const { return m_outputs; }
  [[nodiscard]] const std::int64_t* outputs() const { return m_device_outputs.as<std::int64_t>(); }
  [[nodiscard]] const std::int64_t* taps() const { return m_device_taps.as<std::int64_t>(); }
  // The same rows as indices of the output rows.
  [[nodiscard]] const std::int64_t* tapped_outputs() const {
    return m_device_tapped_outputs.as<std::int64_t>();
  }
  [[nodiscard]] const int* merge_orders() const { return m_device_orders.as<int>(); }
  [[nodiscard]] const std::int32_t* merge_order_begin() const {
    return m_device_order_begin.as<std::int32_t>();
  }

 private:
  [[nodiscard]] Result<void> add_sequence(const BatchSequence& sequence, const Batch& batch);
  void add_merge_orders(const RunConfig& config);
  [[nodiscard]] Result<void> upload(CudaSession& session, int& generation);

  std::vector<DeviceSequence> m_sequences;
  std::vector<std::int32_t> m_ids, m_positions, m_sequence_of;  // [rows]
  std::vector<std::int64_t> m_outputs;                          // rows with logits wanted
  std::vector<std::int64_t> m_taps;                             // rows with taps wanted
  std::vector<std::int64_t> m_tapped_outputs;                   // the same as indices of m_outputs
  std::vector<std::int64_t> m_tap_of_output;                    // [output rows]
  std::vector<int> m_orders;                                    // of splits, one after the other
  std::vector<std::int32_t> m_order_begin;                      // [rows]
  std::int64_t m_most_keys = 0;

  DeviceList m_device_sequences{"the table of sequences"};
  DeviceList m_device_ids{"token ids"};
  DeviceList m_device_positions{"positions"};
  DeviceList m_device_sequence_of{"the table of rows"};
  DeviceList m_device_outputs{"the list of output rows"};
  DeviceList m_device_taps{"the list of tapped rows"};
  DeviceList m_device_tapped_outputs{"the list of tapped outputs"};
  DeviceList m_device_orders{"orders of arrival"};
  DeviceList m_device_order_begin{"the table of orders"};
};

}  // namespace driftscope
