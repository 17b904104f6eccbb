// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/lane_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/capture/crc32c.h"
#include "analysis/capture/json_fields.h"

namespace driftscope {
namespace {

using hdf5::Rows;
using hdf5::RowsRule;
using hdf5::throw_rule;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kSliceRows = 4096;

RowsRule column_rule(hid_t type) { return {.type = type, .width = 0, .filters = false}; }
RowsRule row_rule(hid_t type, std::int64_t width) {
  return {.type = type, .width = width, .filters = true};
}

std::optional<TraceState> state_from_name(std::string_view name) {
  for (const TraceState state :
       {TraceState::complete, TraceState::partial, TraceState::interrupted}) {
    if (trace_state_name(state) == name) return state;
  }
  return std::nullopt;
}

}  // namespace

LaneReader::LaneReader(const hdf5::SafeFile& file, Lane lane, std::int64_t vocabulary)
    : m_file(file), m_path(layout::lane_path(lane)), m_vocabulary(vocabulary) {
  m_info.lane.lane = lane;
  // First the number, then the rows: a writer at work only adds rows in between.
  const std::vector<std::int64_t> claimed = file.read_int64(m_path + "/steps_complete");
  if (claimed.size() != 1 || claimed[0] < 0) {
    throw_rule(file.place(), m_path + "/steps_complete", "not a number of steps");
  }
  m_claimed_steps = claimed[0];
  if (m_claimed_steps > file.size() / static_cast<std::int64_t>(sizeof(layout::StepCells))) {
    throw_rule(file.place(), m_path + "/steps_complete",
               fmt::format("{} steps do not fit into the file", m_claimed_steps));
  }
  read_attributes();
  read_columns();
  m_notes = NotesReader::open(file, m_path);
  if (m_notes) m_info.lane.notes = m_notes->columns();
  if (file.exists(m_path + "/routes")) m_routes.emplace(file, m_path + "/routes");
  m_info.steps_complete = std::min(m_claimed_steps, rows_present());
  check_account();
}

void LaneReader::read_attributes() {
  const hdf5::Place& place = m_file.place();
  const hdf5::Group group = m_file.open_group(m_path);
  CaptureLane& lane = m_info.lane;
  lane.config_json = hdf5::read_text_attribute(place, group.id(), "config");
  lane.model_sha256 = hdf5::read_text_attribute(place, group.id(), "model_sha256");
  lane.tokenizer_sha256 = hdf5::read_text_attribute(place, group.id(), "tokenizer_sha256");
  lane.chat_template_sha256 = hdf5::read_text_attribute(place, group.id(), "chat_template_sha256");
  lane.steps = hdf5::read_int_attribute(place, group.id(), "steps_planned");
  lane.envelope_json = m_file.read_text(m_path + "/envelope");
  m_info.stop = hdf5::read_text_attribute(place, group.id(), "stop");
  const auto state = state_from_name(hdf5::read_text_attribute(place, group.id(), "state"));
  if (!state) throw_rule(place, m_path + ": attribute state", "none of the states of FORMAT.md");
  m_info.state = *state;
  m_finished_steps = hdf5::read_int_attribute(place, group.id(), "steps_complete");
}

void LaneReader::read_columns() {
  const std::string path = m_path + "/crc32c_columns";
  const auto refuse = [&] {
    throw_rule(m_file.place(), path, "not the list that FORMAT.md prescribes");
  };
  const Result<Json> columns = json_text::parse(m_file.read_text(path), path);
  if (!columns || !columns->is_array() || columns->size() < 2 ||
      static_cast<std::int64_t>(columns->size()) > layout::kMaximumTaps + 2) {
    refuse();
  }
  for (std::size_t i = 1; i < columns->size(); ++i) {
    JsonFields fields((*columns)[i], path);
    std::string name;
    std::int64_t width = 0;
    fields.bytes("name", name);
    fields.integer("width", width);
    if (!fields.problem().empty() || width < 1 || width > layout::kMaximumWidth) refuse();
    if (i == 1) {
      m_info.full_rows = name == "logits";
      m_top_k = m_info.full_rows ? 0 : width;
      if (name != "logits" && name != "logits_topk") refuse();
      if (m_info.full_rows && width != m_vocabulary) refuse();
      if (m_top_k > layout::kMaximumTopK) refuse();
      continue;
    }
    TapSpec tap;
    std::int64_t layer = 0;
    fields.integer("layer", layer);
    fields.bytes("operation", tap.operation);
    if (!fields.problem().empty() || layer < -1 || layer > layout::kMaximumLayer ||
        !layout::is_plain_name(tap.operation)) {
      refuse();
    }
    tap.layer = static_cast<int>(layer);
    tap.width = width;
    m_taps.push_back(std::move(tap));
  }
}

Rows LaneReader::open_rows(const std::string& name, const RowsRule& rule) const {
  return Rows(m_file, m_path + "/" + name, rule);
}

const Rows& LaneReader::rows(std::optional<Rows>& slot, const std::string& name,
                             const RowsRule& rule) const {
  if (!slot) slot.emplace(open_rows(name, rule));
  return *slot;
}

std::int64_t LaneReader::rows_present() const {
  const auto columns = static_cast<std::int64_t>(m_taps.size()) + layout::kCrcFirstTapColumn;
  std::int64_t least =
      rows(m_crc, "crc32c", {.type = H5T_STD_U32LE, .width = columns, .filters = false}).count();
  for (const auto& [name, type] :
       {std::pair{"step", H5T_STD_I64LE}, std::pair{"timing_ns", H5T_STD_I64LE},
        std::pair{"tokens", H5T_STD_I32LE}, std::pair{"choices", H5T_STD_I32LE}}) {
    least = std::min(least, open_rows(name, column_rule(type)).count());
  }
  if (m_notes) least = std::min(least, m_notes->count());
  if (m_routes) least = std::min(least, m_routes->count());
  if (m_info.full_rows) {
    const Rows& logits = rows(m_logits, "logits", row_rule(H5T_IEEE_F32LE, m_vocabulary));
    return std::min(least, logits.count());
  }
  const Rows& ids = rows(m_top_ids, "logits_topk/ids", row_rule(H5T_STD_I32LE, m_top_k));
  const Rows& values = rows(m_top_values, "logits_topk/values", row_rule(H5T_IEEE_F32LE, m_top_k));
  return std::min({least, ids.count(), values.count()});
}

const std::vector<layout::StepCells>& LaneReader::cells() const {
  if (m_cells) return *m_cells;
  const std::int64_t steps = m_info.steps_complete;
  std::vector<layout::StepCells> cells(static_cast<std::size_t>(steps));
  const Rows step_rows = open_rows("step", column_rule(H5T_STD_I64LE));
  const Rows timing_rows = open_rows("timing_ns", column_rule(H5T_STD_I64LE));
  const Rows token_rows = open_rows("tokens", column_rule(H5T_STD_I32LE));
  const Rows choice_rows = open_rows("choices", column_rule(H5T_STD_I32LE));
  std::array<std::int64_t, kSliceRows> step{}, timing{};
  std::array<std::int32_t, kSliceRows> token{}, choice{};
  std::array<std::uint32_t, kSliceRows> crc{};
  for (std::int64_t first = 0; first < steps; first += kSliceRows) {
    const std::int64_t count = std::min(kSliceRows, steps - first);
    step_rows.read(first, count, step.data());
    timing_rows.read(first, count, timing.data());
    token_rows.read(first, count, token.data());
    choice_rows.read(first, count, choice.data());
    m_crc->read_column(first, count, layout::kCrcStepColumn, crc.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const layout::StepCells cell{
          .step = step[i], .timing_ns = timing[i], .token = token[i], .choice = choice[i]};
      const std::int64_t row = first + static_cast<std::int64_t>(i);
      if (cell.step != row || crc32c(&cell, sizeof cell) != crc[i]) {
        throw_rule(m_file.place(), m_path + "/tokens",
                   fmt::format("step {} fails its check value; the file is damaged", row));
      }
      cells[static_cast<std::size_t>(row)] = cell;
    }
  }
  m_cells = std::move(cells);
  return *m_cells;
}

std::vector<StepNote> LaneReader::notes() const {
  if (!m_notes) return {};
  return m_notes->read(m_info.steps_complete);
}

void LaneReader::check_account() const {
  // The attribute is written once, when the lane ends.
  if (m_info.state != TraceState::partial && m_finished_steps != m_claimed_steps) {
    throw_rule(
        m_file.place(), m_path,
        fmt::format("steps_complete says {} as an attribute and {} as a dataset; the file is "
                    "damaged",
                    m_finished_steps, m_claimed_steps));
  }
}

void LaneReader::check_step(std::int64_t step) const {
  if (step >= 0 && step < m_info.steps_complete) return;
  throw hdf5::Hdf5Failure{
      Error{.kind = ErrorKind::usage,
            .message = fmt::format("{}: lane {} has {} steps, no step {}; steps count from 0",
                                   m_file.place().file, lane_name(m_info.lane.lane),
                                   m_info.steps_complete, step),
            .detail = {}}};
}

void LaneReader::check_value(std::uint32_t computed, std::int64_t column, std::int64_t step,
                             const std::string& name) const {
  std::uint32_t stored = 0;
  m_crc->read_column(step, 1, column, &stored);
  if (stored == computed) return;
  throw_rule(m_file.place(), m_path + "/" + name,
             fmt::format("step {} fails its check value; the file is damaged", step));
}

std::vector<float> LaneReader::logits(std::int64_t step) const {
  check_step(step);
  if (!m_info.full_rows) {
    throw hdf5::Hdf5Failure{Error{
        .kind = ErrorKind::inconclusive,
        .message = fmt::format("{}: lane {} kept the top {} logits only; run again with full rows",
                               m_file.place().file, lane_name(m_info.lane.lane), m_top_k),
        .detail = {}}};
  }
  std::vector<float> row(static_cast<std::size_t>(m_vocabulary));
  m_logits->read(step, 1, row.data());
  check_value(crc32c_of(std::span<const float>(row)), layout::kCrcLogitsColumn, step, "logits");
  return row;
}

std::vector<RankedToken> LaneReader::top(std::int64_t step) const {
  constexpr std::int64_t kTopOfFullRow = 64;
  if (m_info.full_rows) return top_tokens(logits(step), kTopOfFullRow);
  check_step(step);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(m_top_k));
  std::vector<float> values(ids.size());
  m_top_ids->read(step, 1, ids.data());
  m_top_values->read(step, 1, values.data());
  const std::uint32_t of_ids = crc32c_of(std::span<const std::int32_t>(ids));
  check_value(crc32c_of(std::span<const float>(values), of_ids), layout::kCrcLogitsColumn, step,
              "logits_topk");
  std::vector<RankedToken> best;
  for (std::size_t i = 0; i < ids.size() && ids[i] >= 0; ++i) {
    best.push_back({.token = TokenId{ids[i]}, .logit = values[i]});
  }
  return best;
}

std::vector<float> LaneReader::tap(std::size_t index, std::int64_t step) const {
  check_step(step);
  const TapSpec& spec = m_taps[index];
  const std::string name = layout::tap_path(spec.layer, spec.operation);
  auto slot = m_tap_rows.find(index);
  if (slot == m_tap_rows.end()) {
    slot = m_tap_rows.emplace(index, open_rows(name, row_rule(H5T_IEEE_F32LE, spec.width))).first;
  }
  if (step >= slot->second.count()) {
    throw_rule(m_file.place(), m_path + "/" + name, fmt::format("has no step {}", step));
  }
  std::vector<float> row(static_cast<std::size_t>(spec.width));
  slot->second.read(step, 1, row.data());
  check_value(crc32c_of(std::span<const float>(row)),
              layout::kCrcFirstTapColumn + static_cast<std::int64_t>(index), step, name);
  return row;
}

StoredRoutes LaneReader::routes(std::int64_t step) const {
  check_step(step);
  if (!m_routes) {
    throw hdf5::Hdf5Failure{
        Error{.kind = ErrorKind::inconclusive,
              .message = fmt::format("{}: lane {} has no routes; its model has no experts",
                                     m_file.place().file, lane_name(m_info.lane.lane)),
              .detail = {}}};
  }
  return m_routes->read(step);
}

std::vector<std::string> LaneReader::plans() const {
  const std::string path = m_path + "/plans";
  if (m_info.state == TraceState::partial || !m_file.exists(path)) return {};
  const Rows rows(m_file, path, column_rule(H5T_STD_U8LE));
  if (rows.count() > std::min(layout::kMaximumText, m_file.size())) {
    throw_rule(m_file.place(), path, fmt::format("{} bytes of text are too many", rows.count()));
  }
  std::string text(static_cast<std::size_t>(rows.count()), '\0');
  rows.read(0, rows.count(), text.data());
  const hdf5::Dataset dataset = m_file.open_dataset(path);
  if (hdf5::read_int_attribute(m_file.place(), dataset.id(),
                               std::string(layout::kCheckAttribute)) !=
      crc32c(text.data(), text.size())) {
    throw_rule(m_file.place(), path, "the text does not have the CRC-32C it was stored with");
  }
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::int64_t LaneReader::verify() const {
  if (m_claimed_steps > m_info.steps_complete) {
    throw_rule(m_file.place(), m_path,
               fmt::format("{} steps are complete by its own account, {} are there",
                           m_claimed_steps, m_info.steps_complete));
  }
  static_cast<void>(plans());
  std::int64_t checked_rows = static_cast<std::int64_t>(cells().size());
  static_cast<void>(notes());
  for (std::int64_t step = 0; step < m_info.steps_complete; ++step) {
    if (m_info.full_rows) {
      static_cast<void>(logits(step));
    } else {
      static_cast<void>(top(step));
    }
    for (std::size_t i = 0; i < m_taps.size(); ++i) static_cast<void>(tap(i, step));
    if (m_routes) static_cast<void>(routes(step));
    checked_rows += 1 + static_cast<std::int64_t>(m_taps.size()) + (m_routes ? 1 : 0);
  }
  return checked_rows;
}

std::int64_t LaneReader::storage_bytes() const {
  if (m_logits) return m_logits->storage_bytes();
  return m_top_ids->storage_bytes() + m_top_values->storage_bytes();
}

}  // namespace driftscope
