// SPDX-License-Identifier: Apache-2.0
// One lane of a capture: opens its datasets when they are first needed, and checks every row that
// it hands out against its CRC-32C.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/capture/capture.h"
#include "analysis/capture/capture_layout.h"
#include "analysis/capture/hdf5_read.h"
#include "analysis/capture/route_rows.h"
#include "analysis/capture/step_notes.h"

namespace driftscope {

// Throws hdf5::Hdf5Failure.
class LaneReader {
 public:
  LaneReader(const hdf5::SafeFile& file, Lane lane, std::int64_t vocabulary);

  [[nodiscard]] const CaptureLaneInfo& info() const { return m_info; }
  [[nodiscard]] const std::vector<TapSpec>& taps() const { return m_taps; }
  [[nodiscard]] std::int64_t top_k() const { return m_top_k; }  // 0: full rows
  // Token, choice and time of every complete step; read once.
  [[nodiscard]] const std::vector<layout::StepCells>& cells() const;
  // Of every complete step; empty where the capture has none.
  [[nodiscard]] std::vector<StepNote> notes() const;
  [[nodiscard]] std::vector<float> logits(std::int64_t step) const;
  [[nodiscard]] std::vector<RankedToken> top(std::int64_t step) const;
  [[nodiscard]] std::vector<float> tap(std::size_t index, std::int64_t step) const;
  [[nodiscard]] RouteSpec route_spec() const { return m_routes ? m_routes->spec() : RouteSpec{}; }
  [[nodiscard]] StoredRoutes routes(std::int64_t step) const;
  // Empty where the lane did not come to its end, and in files made before they were kept.
  [[nodiscard]] std::vector<std::string> plans() const;
  // Checks all rows; returns how many.
  [[nodiscard]] std::int64_t verify() const;
  [[nodiscard]] std::int64_t storage_bytes() const;  // of the rows of logits

 private:
  void read_columns();
  void read_attributes();
  [[nodiscard]] std::int64_t rows_present() const;
  [[nodiscard]] hdf5::Rows open_rows(const std::string& name, const hdf5::RowsRule& rule) const;
  [[nodiscard]] const hdf5::Rows& rows(std::optional<hdf5::Rows>& slot, const std::string& name,
                                       const hdf5::RowsRule& rule) const;
  // A lane that came to its end has its number of steps twice; they must agree.
  void check_account() const;
  void check_step(std::int64_t step) const;
  void check_value(std::uint32_t computed, std::int64_t column, std::int64_t step,
                   const std::string& name) const;

  const hdf5::SafeFile& m_file;
  std::string m_path;
  CaptureLaneInfo m_info;
  std::int64_t m_vocabulary = 0;
  std::int64_t m_top_k = 0;
  std::int64_t m_claimed_steps = 0;   // what the dataset steps_complete says
  std::int64_t m_finished_steps = 0;  // what the attribute of that name says
  std::vector<TapSpec> m_taps;
  std::optional<NotesReader> m_notes;
  std::optional<RouteReader> m_routes;
  mutable std::optional<std::vector<layout::StepCells>> m_cells;
  mutable std::optional<hdf5::Rows> m_crc, m_logits, m_top_ids, m_top_values;
  mutable std::map<std::size_t, hdf5::Rows> m_tap_rows;
};

}  // namespace driftscope
