// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/step_notes.h"

#include <fmt/format.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

#include "analysis/capture/crc32c.h"

namespace driftscope {
namespace {

using hdf5::checked;
using hdf5::Place;
using hdf5::Rows;
using hdf5::SafeFile;
using hdf5::Table;

constexpr std::int64_t kSliceRows = 1024;
constexpr std::int64_t kCandidates = static_cast<std::int64_t>(kDrawCandidates);

// A dataset and the bytes of StepCellsOfNotes that it holds.
struct Column {
  const char* name;
  hid_t type;
  std::int64_t width;  // 0: one number a step
  std::size_t offset;
  std::size_t size;
  const char* long_name;
};

std::vector<Column> columns_of(NoteColumns columns) {
  using Cells = StepCellsOfNotes;
  std::vector<Column> all{{"rows_in_flight", H5T_STD_I64LE, 0, offsetof(Cells, rows_in_flight), 8,
                           "rows of the call that computed the logits"}};
  if (columns == NoteColumns::rows) return all;
  all.push_back({"draw_uniform", H5T_IEEE_F64LE, 0, offsetof(Cells, uniform), 8,
                 "uniform number of the draw"});
  all.push_back({"draw_lower", H5T_IEEE_F64LE, 0, offsetof(Cells, lower), 8,
                 "cumulative probability before the choice"});
  all.push_back({"draw_upper", H5T_IEEE_F64LE, 0, offsetof(Cells, upper), 8,
                 "cumulative probability with the choice"});
  if (columns == NoteColumns::uniforms) return all;
  all.push_back({"candidate_scores", H5T_IEEE_F64LE, kCandidates, offsetof(Cells, scores), 64,
                 "logit / temperature less the highest"});
  all.push_back(
      {"candidate_noise", H5T_IEEE_F64LE, kCandidates, offsetof(Cells, noise), 64, "Gumbel noise"});
  all.push_back({"candidate_ids", H5T_STD_I32LE, kCandidates, offsetof(Cells, ids), 32,
                 "token ids, best first"});
  return all;
}

std::size_t covered_bytes(NoteColumns columns) {
  switch (columns) {
    case NoteColumns::rows:
      return 8;
    case NoteColumns::uniforms:
      return 32;
    case NoteColumns::races:
      break;
  }
  return sizeof(StepCellsOfNotes);
}

hdf5::TableShape shape_of(const Column& column) {
  const std::int64_t rows = column.width == 0 ? 1024 : 128;
  return {.type = column.type, .width = column.width, .rows_per_chunk = rows, .deflate = 0};
}
constexpr const char* kCheckName = "crc32c";
hdf5::TableShape check_shape() {
  return {.type = H5T_STD_U32LE, .width = 0, .rows_per_chunk = 1024, .deflate = 0};
}

StepCellsOfNotes cells_of(const StepRecord& record) {
  StepCellsOfNotes cells{.rows_in_flight = record.rows_in_flight};
  cells.ids.fill(-1);
  cells.scores.fill(Draw::kNone);
  cells.noise.fill(Draw::kNone);
  if (record.draw == nullptr) return cells;
  const Draw& draw = *record.draw;
  cells.uniform = draw.uniform;
  cells.lower = draw.lower;
  cells.upper = draw.upper;
  for (std::size_t i = 0; i < std::min(draw.candidates.size(), kDrawCandidates); ++i) {
    cells.ids[i] = draw.candidates[i].id.value;
    cells.scores[i] = draw.candidates[i].score;
    cells.noise[i] = draw.candidates[i].noise;
  }
  return cells;
}

StepNote note_of(const StepCellsOfNotes& cells) {
  StepNote note{.rows_in_flight = cells.rows_in_flight, .draw = {}};
  Draw draw{.uniform = cells.uniform, .lower = cells.lower, .upper = cells.upper, .candidates = {}};
  for (std::size_t i = 0; i < kDrawCandidates && cells.ids[i] >= 0; ++i) {
    draw.candidates.push_back(
        {.id = TokenId{cells.ids[i]}, .score = cells.scores[i], .noise = cells.noise[i]});
  }
  if (!std::isnan(draw.uniform) || !draw.candidates.empty()) note.draw = std::move(draw);
  return note;
}

}  // namespace

void NotesWriter::create(const Place& place, hid_t lane_group, NoteColumns columns) {
  const hdf5::Group group = hdf5::make_group(place, lane_group, "notes");
  const auto create_column = [&](const char* name, const hdf5::TableShape& shape) {
    Table::create(place, group.id(), name, shape);
    const hdf5::Dataset dataset(
        checked(H5Dopen2(group.id(), name, H5P_DEFAULT), place, "H5Dopen2", name));
    const hdf5::Dataset scale(
        checked(H5Dopen2(lane_group, "step", H5P_DEFAULT), place, "H5Dopen2", "step"));
    checked(H5DSattach_scale(dataset.id(), scale.id(), 0), place, "H5DSattach_scale", name);
    return hdf5::Dataset(checked(H5Dopen2(group.id(), name, H5P_DEFAULT), place, "H5Dopen2", name));
  };
  for (const Column& column : columns_of(columns)) {
    const hdf5::Dataset dataset = create_column(column.name, shape_of(column));
    hdf5::write_text_attribute(place, dataset.id(), "units", "1");
    hdf5::write_text_attribute(place, dataset.id(), "long_name", column.long_name);
  }
  static_cast<void>(create_column(kCheckName, check_shape()));
}

NotesWriter::NotesWriter(const Place& place, hid_t lane_group, NoteColumns columns)
    : m_columns(columns) {
  for (const Column& column : columns_of(columns)) {
    m_tables.push_back(
        Table::open(place, lane_group, std::string("notes/") + column.name, shape_of(column)));
  }
  m_tables.push_back(
      Table::open(place, lane_group, std::string("notes/") + kCheckName, check_shape()));
}

void NotesWriter::append(const StepRecord& record) { m_pending.push_back(cells_of(record)); }

void NotesWriter::write_pending() {
  if (m_pending.empty()) return;
  const auto count = static_cast<std::int64_t>(m_pending.size());
  std::vector<std::byte> bytes;
  const std::vector<Column> columns = columns_of(m_columns);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    bytes.resize(columns[c].size * m_pending.size());
    for (std::size_t i = 0; i < m_pending.size(); ++i) {
      const auto cells = std::as_bytes(std::span(&m_pending[i], 1));
      std::memcpy(bytes.data() + i * columns[c].size, cells.data() + columns[c].offset,
                  columns[c].size);
    }
    m_tables[c].append(bytes.data(), count);
  }
  std::vector<std::uint32_t> checks;
  for (const StepCellsOfNotes& cells : m_pending) {
    checks.push_back(crc32c(&cells, covered_bytes(m_columns)));
  }
  m_tables.back().append(checks.data(), count);
  m_pending.clear();
}

void NotesWriter::close() {
  for (Table& table : m_tables) table.close();
}

std::optional<NotesReader> NotesReader::open(const SafeFile& file, const std::string& lane_path) {
  const std::string path = lane_path + "/notes";
  if (!file.exists(path)) return std::nullopt;
  NoteColumns columns = NoteColumns::rows;
  if (file.exists(path + "/draw_uniform")) columns = NoteColumns::uniforms;
  if (file.exists(path + "/candidate_ids")) columns = NoteColumns::races;
  return NotesReader(file, path, columns);
}

NotesReader::NotesReader(const SafeFile& file, std::string path, NoteColumns columns)
    : m_file(&file), m_path(std::move(path)), m_columns(columns) {
  for (const Column& column : columns_of(columns)) {
    m_rows.emplace_back(
        file, m_path + "/" + column.name,
        hdf5::RowsRule{.type = column.type, .width = column.width, .filters = false});
  }
  m_rows.emplace_back(file, m_path + "/" + kCheckName,
                      hdf5::RowsRule{.type = H5T_STD_U32LE, .width = 0, .filters = false});
}

std::int64_t NotesReader::count() const {
  std::int64_t least = m_rows.front().count();
  for (const Rows& rows : m_rows) least = std::min(least, rows.count());
  return least;
}

std::vector<StepNote> NotesReader::read(std::int64_t steps) const {
  std::vector<StepNote> notes;
  std::vector<StepCellsOfNotes> cells;
  std::vector<std::uint32_t> checks;
  for (std::int64_t first = 0; first < steps; first += kSliceRows) {
    const std::int64_t count = std::min(kSliceRows, steps - first);
    read_slice(first, count, cells);
    checks.resize(cells.size());
    m_rows.back().read(first, count, checks.data());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (crc32c(&cells[i], covered_bytes(m_columns)) != checks[i]) {
        hdf5::throw_rule(m_file->place(), m_path,
                         fmt::format("step {} fails its check value; the file is damaged",
                                     first + static_cast<std::int64_t>(i)));
      }
      notes.push_back(note_of(cells[i]));
    }
  }
  return notes;
}

void NotesReader::read_slice(std::int64_t first, std::int64_t count,
                             std::vector<StepCellsOfNotes>& cells) const {
  cells.assign(static_cast<std::size_t>(count), cells_of(StepRecord{}));
  std::vector<std::byte> bytes;
  const std::vector<Column> columns = columns_of(m_columns);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    bytes.resize(columns[c].size * cells.size());
    m_rows[c].read(first, count, bytes.data());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto target = std::as_writable_bytes(std::span(&cells[i], 1));
      std::memcpy(target.data() + columns[c].offset, bytes.data() + i * columns[c].size,
                  columns[c].size);
    }
  }
}

}  // namespace driftscope
