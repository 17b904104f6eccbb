// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/lane_writer.h"

#include <fmt/format.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "analysis/capture/crc32c.h"

namespace driftscope {
namespace {

using hdf5::checked;
using hdf5::Place;
using hdf5::Table;
using hdf5::TableShape;

constexpr std::int64_t kChunkBytes = 1 << 16;   // aim; a longer row is a chunk of its own
constexpr std::int64_t kSmallChunkRows = 1024;  // of the small columns

// Compressed chunks are written once only: rewriting one would move it.
TableShape row_shape(std::int64_t width, const CaptureOptions& options, hid_t type) {
  const std::int64_t row_bytes = std::max<std::int64_t>(width, 1) * 4;
  const std::int64_t rows =
      options.deflate > 0 ? 1 : std::clamp<std::int64_t>(kChunkBytes / row_bytes, 1, 256);
  return {.type = type, .width = width, .rows_per_chunk = rows, .deflate = options.deflate};
}
TableShape column_shape(hid_t type) {
  return {.type = type, .width = 0, .rows_per_chunk = kSmallChunkRows, .deflate = 0};
}
TableShape crc_shape(std::size_t taps) {
  const auto columns = static_cast<std::int64_t>(taps) + layout::kCrcFirstTapColumn;
  return {
      .type = H5T_STD_U32LE,
      .width = columns,
      .rows_per_chunk = std::clamp<std::int64_t>(kChunkBytes / (columns * 4), 1, kSmallChunkRows),
      .deflate = 0};
}

void attach_scale(const Place& place, hid_t parent, const std::string& path, const char* scale_path,
                  unsigned dimension) {
  const hdf5::Dataset dataset(
      checked(H5Dopen2(parent, path.c_str(), H5P_DEFAULT), place, "H5Dopen2", path));
  const hdf5::Dataset scale(
      checked(H5Dopen2(parent, scale_path, H5P_DEFAULT), place, "H5Dopen2", scale_path));
  checked(H5DSattach_scale(dataset.id(), scale.id(), dimension), place, "H5DSattach_scale", path);
}

void describe(const Place& place, hid_t parent, const std::string& path, std::string_view units,
              std::string_view long_name) {
  const hdf5::Dataset dataset(
      checked(H5Dopen2(parent, path.c_str(), H5P_DEFAULT), place, "H5Dopen2", path));
  hdf5::write_text_attribute(place, dataset.id(), "units", units);
  hdf5::write_text_attribute(place, dataset.id(), "long_name", long_name);
}

void create_columns(const Place& place, hid_t group, std::size_t taps) {
  Table::create(place, group, "step", column_shape(H5T_STD_I64LE));
  {
    const hdf5::Dataset step(
        checked(H5Dopen2(group, "step", H5P_DEFAULT), place, "H5Dopen2", "step"));
    checked(H5DSset_scale(step.id(), "step"), place, "H5DSset_scale", "step");
  }
  Table::create(place, group, "tokens", column_shape(H5T_STD_I32LE));
  Table::create(place, group, "choices", column_shape(H5T_STD_I32LE));
  Table::create(place, group, "timing_ns", column_shape(H5T_STD_I64LE));
  Table::create(place, group, "crc32c", crc_shape(taps));
  for (const char* name : {"tokens", "choices", "timing_ns", "crc32c"}) {
    attach_scale(place, group, name, "step", 0);
  }
  describe(place, group, "tokens", "1", "token id emitted");
  describe(place, group, "choices", "1", "token id that the lane would emit");
  describe(place, group, "timing_ns", "ns", "wall time of the step");
  Table::create(place, group, "plans", column_shape(H5T_STD_U8LE));
  const hdf5::Dataset plans(
      checked(H5Dopen2(group, "plans", H5P_DEFAULT), place, "H5Dopen2", "plans"));
  hdf5::write_int_attribute(place, plans.id(), std::string(layout::kCheckAttribute), 0);
  const std::int64_t none = 0;
  hdf5::write_vector(place, group, "steps_complete", H5T_STD_I64LE, &none, 1);
}

void create_rows(const Place& place, hid_t group, const CaptureHeader& header,
                 const CaptureOptions& options) {
  if (options.keep == KeepMode::full) {
    Table::create(place, group, "logits", row_shape(header.vocabulary, options, H5T_IEEE_F32LE));
    attach_scale(place, group, "logits", "step", 0);
    attach_scale(place, group, "logits", "/token", 1);
    describe(place, group, "logits", "1", "logit");
  } else {
    const auto ids = row_shape(options.top_k, options, H5T_STD_I32LE);
    const auto values = row_shape(options.top_k, options, H5T_IEEE_F32LE);
    Table::create(place, group, "logits_topk/ids", ids);
    Table::create(place, group, "logits_topk/values", values);
    for (const char* name : {"logits_topk/ids", "logits_topk/values"}) {
      attach_scale(place, group, name, "step", 0);
    }
  }
  for (const TapSpec& tap : header.taps) {
    const std::string path = layout::tap_path(tap.layer, tap.operation);
    Table::create(place, group, path, row_shape(tap.width, options, H5T_IEEE_F32LE));
    attach_scale(place, group, path, "step", 0);
  }
}

// What the columns of crc32c cover: also the order and widths of the taps.
std::string check_columns(const CaptureHeader& header, const CaptureOptions& options) {
  const bool full = options.keep == KeepMode::full;
  nlohmann::ordered_json columns = nlohmann::ordered_json::array();
  columns.push_back({{"name", "step,timing_ns,tokens,choices"}});
  columns.push_back({{"name", full ? "logits" : "logits_topk"},
                     {"width", full ? header.vocabulary : options.top_k}});
  for (const TapSpec& tap : header.taps) {
    columns.push_back({{"name", layout::tap_path(tap.layer, tap.operation)},
                       {"layer", tap.layer},
                       {"operation", tap.operation},
                       {"width", tap.width}});
  }
  return columns.dump();
}

}  // namespace

void LaneWriter::create(const Place& place, hid_t file, const CaptureHeader& header,
                        const CaptureLane& lane, const CaptureOptions& options) {
  const std::string path = layout::lane_path(lane.lane);
  hdf5::Group group = hdf5::make_group(place, file, path);
  create_columns(place, group.id(), header.taps.size());
  create_rows(place, group.id(), header, options);
  NotesWriter::create(place, group.id(), lane.notes);
  if (!header.routes.layers.empty()) RouteWriter::create(place, group.id(), header.routes);
  hdf5::write_text(place, group.id(), "crc32c_columns", check_columns(header, options));
  hdf5::write_text(place, group.id(), "envelope", lane.envelope_json);
  hdf5::write_text_attribute(place, group.id(), "config", lane.config_json);
  hdf5::write_text_attribute(place, group.id(), "model_sha256", lane.model_sha256);
  hdf5::write_text_attribute(place, group.id(), "tokenizer_sha256", lane.tokenizer_sha256);
  hdf5::write_text_attribute(place, group.id(), "chat_template_sha256", lane.chat_template_sha256);
  hdf5::write_text_attribute(place, group.id(), "state", trace_state_name(TraceState::partial),
                             layout::kStateLength);
  hdf5::write_text_attribute(place, group.id(), "stop", "", layout::kStopLength);
  hdf5::write_int_attribute(place, group.id(), "steps_planned", lane.steps);
  hdf5::write_int_attribute(place, group.id(), "steps_complete", 0);
  group.close(place, "H5Gclose", path);
}

LaneWriter::LaneWriter(Place place, hid_t file, const CaptureHeader& header,
                       const CaptureLane& lane, const CaptureOptions& options)
    : m_place(std::move(place)),
      m_lane(lane.lane),
      m_path(layout::lane_path(lane.lane)),
      m_taps(header.taps),
      m_vocabulary(header.vocabulary),
      m_options(options) {
  m_group = hdf5::Group(
      checked(H5Gopen2(file, m_path.c_str(), H5P_DEFAULT), m_place, "H5Gopen2", m_path));
  const hid_t group = m_group.id();
  m_steps_complete = hdf5::Dataset(checked(H5Dopen2(group, "steps_complete", H5P_DEFAULT), m_place,
                                           "H5Dopen2", "steps_complete"));
  m_step_table = Table::open(m_place, group, "step", column_shape(H5T_STD_I64LE));
  m_tokens = Table::open(m_place, group, "tokens", column_shape(H5T_STD_I32LE));
  m_choices = Table::open(m_place, group, "choices", column_shape(H5T_STD_I32LE));
  m_timing = Table::open(m_place, group, "timing_ns", column_shape(H5T_STD_I64LE));
  m_crc = Table::open(m_place, group, "crc32c", crc_shape(m_taps.size()));
  m_plans = Table::open(m_place, group, "plans", column_shape(H5T_STD_U8LE));
  if (options.keep == KeepMode::full) {
    m_logits =
        Table::open(m_place, group, "logits", row_shape(m_vocabulary, options, H5T_IEEE_F32LE));
  } else {
    m_top_ids = Table::open(m_place, group, "logits_topk/ids",
                            row_shape(options.top_k, options, H5T_STD_I32LE));
    m_top_values = Table::open(m_place, group, "logits_topk/values",
                               row_shape(options.top_k, options, H5T_IEEE_F32LE));
  }
  for (const TapSpec& tap : m_taps) {
    m_tap_tables.push_back(Table::open(m_place, group, layout::tap_path(tap.layer, tap.operation),
                                       row_shape(tap.width, options, H5T_IEEE_F32LE)));
  }
  m_notes = NotesWriter(m_place, group, lane.notes);
  if (!header.routes.layers.empty()) m_routes.emplace(m_place, group, header.routes);
}

void LaneWriter::append(const StepRecord& record) {
  if (record.step != m_steps || m_finished) {
    hdf5::throw_rule(m_place, m_path,
                     fmt::format("step {} came where step {} is next", record.step, m_steps));
  }
  if (static_cast<std::int64_t>(record.logits.size()) != m_vocabulary) {
    hdf5::throw_rule(m_place, m_path,
                     fmt::format("a row of {} logits came where the vocabulary is {}",
                                 record.logits.size(), m_vocabulary));
  }
  const layout::StepCells cells{.step = record.step,
                                .timing_ns = record.timing_ns,
                                .token = record.emitted.value,
                                .choice = record.choice.value};
  m_check_values.push_back(crc32c(&cells, sizeof cells));
  m_check_values.push_back(append_logits(record));
  append_taps(record);
  m_notes.append(record);
  if (m_routes) m_routes->append(record.routes);
  m_cells.push_back(cells);
  ++m_steps;
}

std::uint32_t LaneWriter::append_logits(const StepRecord& record) {
  if (m_logits) {
    m_logits->append(record.logits.data(), 1);
    return crc32c_of(record.logits);
  }
  const auto k = static_cast<std::size_t>(m_options.top_k);
  const std::vector<RankedToken> best = top_tokens(record.logits, m_options.top_k);
  std::vector<std::int32_t> ids(k, -1);
  std::vector<float> values(k, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < std::min(k, best.size()); ++i) {
    ids[i] = best[i].token.value;
    values[i] = best[i].logit;
  }
  m_top_ids->append(ids.data(), 1);
  m_top_values->append(values.data(), 1);
  const std::uint32_t of_ids = crc32c_of(std::span<const std::int32_t>(ids));
  return crc32c_of(std::span<const float>(values), of_ids);
}

const TensorTap& LaneWriter::find_tap(const StepRecord& record, std::size_t index) const {
  const TapSpec& spec = m_taps[index];
  const auto matches = [&spec](const TensorTap& tap) {
    return tap.layer == spec.layer && tap.operation == spec.operation;
  };
  if (index < record.taps.size() && matches(record.taps[index])) return record.taps[index];
  const auto found = std::find_if(record.taps.begin(), record.taps.end(), matches);
  if (found == record.taps.end()) {
    hdf5::throw_rule(
        m_place, m_path,
        fmt::format("step {} has no tap {} of layer {}", record.step, spec.operation, spec.layer));
  }
  return *found;
}

void LaneWriter::append_taps(const StepRecord& record) {
  for (std::size_t i = 0; i < m_taps.size(); ++i) {
    const TensorTap& tap = find_tap(record, i);
    if (static_cast<std::int64_t>(tap.values.size()) != m_taps[i].width) {
      hdf5::throw_rule(m_place, m_path,
                       fmt::format("tap {} of layer {} has {} values where {} are planned",
                                   tap.operation, tap.layer, tap.values.size(), m_taps[i].width));
    }
    m_tap_tables[i].append(tap.values.data(), 1);
    m_check_values.push_back(crc32c_of(tap.values));
  }
}

void LaneWriter::write_pending() {
  const std::int64_t count = pending();
  if (count == 0) return;
  std::vector<std::int64_t> wide(m_cells.size());
  std::vector<std::int32_t> narrow(m_cells.size());
  const auto put_wide = [&](Table& table, std::int64_t layout::StepCells::*member) {
    std::transform(m_cells.begin(), m_cells.end(), wide.begin(),
                   [member](const layout::StepCells& cells) { return cells.*member; });
    table.append(wide.data(), count);
  };
  const auto put_narrow = [&](Table& table, std::int32_t layout::StepCells::*member) {
    std::transform(m_cells.begin(), m_cells.end(), narrow.begin(),
                   [member](const layout::StepCells& cells) { return cells.*member; });
    table.append(narrow.data(), count);
  };
  put_wide(m_step_table, &layout::StepCells::step);
  put_wide(m_timing, &layout::StepCells::timing_ns);
  put_narrow(m_tokens, &layout::StepCells::token);
  put_narrow(m_choices, &layout::StepCells::choice);
  m_notes.write_pending();
  m_crc.append(m_check_values.data(), count);
  m_cells.clear();
  m_check_values.clear();
}

void LaneWriter::acknowledge() {
  checked(H5Dwrite(m_steps_complete.id(), H5T_STD_I64LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &m_steps),
          m_place, "H5Dwrite", "steps_complete");
  checked(H5Dflush(m_steps_complete.id()), m_place, "H5Dflush", "steps_complete");
}

void LaneWriter::keep_plans(const std::vector<std::string>& plans) {
  if (m_finished || m_plans.rows() > 0) {
    hdf5::throw_rule(m_place, m_path + "/plans", "plans came twice, or after the lane's end");
  }
  std::string text;
  for (const std::string& plan : plans) text += plan + "\n";
  if (text.empty()) return;
  m_plans.append(text.data(), static_cast<std::int64_t>(text.size()));
  const hdf5::Dataset dataset(
      checked(H5Dopen2(m_group.id(), "plans", H5P_DEFAULT), m_place, "H5Dopen2", "plans"));
  hdf5::rewrite_int_attribute(m_place, dataset.id(), std::string(layout::kCheckAttribute),
                              crc32c(text.data(), text.size()));
}

void LaneWriter::finish(TraceState state, std::string_view stop) {
  m_finished = true;
  hdf5::rewrite_int_attribute(m_place, m_group.id(), "steps_complete", m_steps);
  hdf5::rewrite_text_attribute(m_place, m_group.id(), "stop", stop);
  hdf5::rewrite_text_attribute(m_place, m_group.id(), "state", trace_state_name(state));
}

void LaneWriter::close() {
  for (Table* table : {&m_step_table, &m_tokens, &m_choices, &m_timing, &m_crc, &m_plans})
    table->close();
  for (std::optional<Table>* table : {&m_logits, &m_top_ids, &m_top_values}) {
    if (table->has_value()) (*table)->close();
  }
  for (Table& table : m_tap_tables) table.close();
  m_notes.close();
  if (m_routes) m_routes->close();
  m_steps_complete.close(m_place, "H5Dclose", "steps_complete");
  m_group.close(m_place, "H5Gclose", m_path);
}

}  // namespace driftscope
