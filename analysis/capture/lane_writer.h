// SPDX-License-Identifier: Apache-2.0
// The part of a capture file that belongs to one lane, while it is written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/capture/capture.h"
#include "analysis/capture/capture_layout.h"
#include "analysis/capture/hdf5_write.h"
#include "analysis/capture/route_rows.h"
#include "analysis/capture/step_notes.h"

namespace driftscope {

// Throws hdf5::Hdf5Failure.
class LaneWriter {
 public:
  // Creates every object and attribute of the lane, before SWMR starts.
  static void create(const hdf5::Place& place, hid_t file, const CaptureHeader& header,
                     const CaptureLane& lane, const CaptureOptions& options);
  // Opens them for appending, after SWMR has started.
  LaneWriter(hdf5::Place place, hid_t file, const CaptureHeader& header, const CaptureLane& lane,
             const CaptureOptions& options);

  [[nodiscard]] Lane lane() const { return m_lane; }
  [[nodiscard]] std::int64_t steps() const { return m_steps; }
  [[nodiscard]] std::int64_t pending() const { return static_cast<std::int64_t>(m_cells.size()); }
  // Writes the rows; the small columns wait for write_pending().
  void append(const StepRecord& record);
  // The small columns of the steps since the last call. Then flush the file, then acknowledge().
  void write_pending();
  // Says in the file that all steps written so far count.
  void acknowledge();
  // One line each; once, before finish(), which makes them count.
  void keep_plans(const std::vector<std::string>& plans);
  void finish(TraceState state, std::string_view stop);
  [[nodiscard]] bool finished() const { return m_finished; }
  void close();

 private:
  std::uint32_t append_logits(const StepRecord& record);
  void append_taps(const StepRecord& record);
  [[nodiscard]] const TensorTap& find_tap(const StepRecord& record, std::size_t index) const;

  hdf5::Place m_place;
  Lane m_lane;
  std::string m_path;
  std::vector<TapSpec> m_taps;
  std::int64_t m_vocabulary = 0;
  CaptureOptions m_options;
  std::int64_t m_steps = 0;
  bool m_finished = false;
  hdf5::Group m_group;
  hdf5::Dataset m_steps_complete;
  hdf5::Table m_step_table, m_tokens, m_choices, m_timing, m_crc, m_plans;
  std::optional<hdf5::Table> m_logits, m_top_ids, m_top_values;
  std::vector<hdf5::Table> m_tap_tables;
  NotesWriter m_notes;
  std::optional<RouteWriter> m_routes;
  std::vector<layout::StepCells> m_cells;     // not yet written
  std::vector<std::uint32_t> m_check_values;  // not yet written, [pending, 2 + taps]
};

}  // namespace driftscope
