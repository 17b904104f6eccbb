// SPDX-License-Identifier: Apache-2.0
// The group `notes` of a lane: rows in flight, and the random numbers behind each choice.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/capture/capture.h"
#include "analysis/capture/hdf5_read.h"
#include "analysis/capture/hdf5_write.h"

namespace driftscope {

// One step as its check value covers it, little-endian: the first 8 bytes for NoteColumns::rows,
// 32 for uniforms, all for races.
struct StepCellsOfNotes {
  std::int64_t rows_in_flight = 0;  // 0: not known
  double uniform = Draw::kNone;     // NaN: none was used
  double lower = Draw::kNone;
  double upper = Draw::kNone;
  std::array<double, kDrawCandidates> scores{};
  std::array<double, kDrawCandidates> noise{};
  std::array<std::int32_t, kDrawCandidates> ids{};  // -1: past the end
};
static_assert(sizeof(StepCellsOfNotes) == 192);

// Both throw hdf5::Hdf5Failure.
class NotesWriter {
 public:
  // Before SWMR starts.
  static void create(const hdf5::Place& place, hid_t lane_group, NoteColumns columns);
  NotesWriter() = default;
  // Opens them for appending.
  NotesWriter(const hdf5::Place& place, hid_t lane_group, NoteColumns columns);
  void append(const StepRecord& record);
  // The steps appended since the last call.
  void write_pending();
  void close();

 private:
  NoteColumns m_columns = NoteColumns::rows;
  std::vector<StepCellsOfNotes> m_pending;
  std::vector<hdf5::Table> m_tables;  // in the order of the columns
};

class NotesReader {
 public:
  // Nothing where the lane has no notes (captures made before there were any).
  [[nodiscard]] static std::optional<NotesReader> open(const hdf5::SafeFile& file,
                                                       const std::string& lane_path);
  [[nodiscard]] NoteColumns columns() const { return m_columns; }
  // Steps that every column has.
  [[nodiscard]] std::int64_t count() const;
  // Of the first `steps` steps, each checked against its check value.
  [[nodiscard]] std::vector<StepNote> read(std::int64_t steps) const;

 private:
  NotesReader(const hdf5::SafeFile& file, std::string path, NoteColumns columns);
  void read_slice(std::int64_t first, std::int64_t count,
                  std::vector<StepCellsOfNotes>& cells) const;

  const hdf5::SafeFile* m_file;
  std::string m_path;
  NoteColumns m_columns;
  std::vector<hdf5::Rows> m_rows;  // in the order of the columns
};

}  // namespace driftscope
