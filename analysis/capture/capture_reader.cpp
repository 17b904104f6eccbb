// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/capture/capture.h"
#include "analysis/capture/comparison_columns.h"
#include "analysis/capture/json_text.h"
#include "analysis/capture/lane_reader.h"
#include "analysis/capture/route_rows.h"

namespace driftscope {
namespace {

using hdf5::guard;
using hdf5::throw_rule;
using Json = nlohmann::ordered_json;

std::vector<TokenId> read_ids(const hdf5::SafeFile& file, const std::string& path) {
  std::vector<TokenId> tokens;
  for (const std::int32_t id : file.read_int32(path)) tokens.push_back(TokenId{id});
  return tokens;
}

std::vector<std::string> read_pieces(const hdf5::SafeFile& file, std::int64_t vocabulary) {
  std::vector<std::string> pieces;
  if (!file.exists("/vocab")) return pieces;
  const std::vector<std::int64_t> offsets = file.read_int64("/vocab/offsets");
  const std::string bytes = file.read_bytes("/vocab/bytes");
  if (offsets.empty() || offsets.front() != 0 ||
      static_cast<std::int64_t>(offsets.size()) > vocabulary + 1 ||
      !std::is_sorted(offsets.begin(), offsets.end()) ||
      offsets.back() > static_cast<std::int64_t>(bytes.size())) {
    throw_rule(file.place(), "/vocab/offsets", "not rising from 0 within /vocab/bytes");
  }
  pieces.reserve(offsets.size() - 1);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    pieces.push_back(bytes.substr(static_cast<std::size_t>(offsets[i]),
                                  static_cast<std::size_t>(offsets[i + 1] - offsets[i])));
  }
  return pieces;
}

class Hdf5CaptureReader final : public CaptureReader {
 public:
  explicit Hdf5CaptureReader(const std::filesystem::path& path) : m_file(path) {
    read_root();
    read_header();
    read_lanes();
  }

  const CaptureHeader& header() const override { return m_header; }
  int format_version() const override { return m_format_version; }
  TraceState state() const override { return m_state; }
  const std::vector<CaptureLaneInfo>& lanes() const override { return m_infos; }
  const CaptureLaneInfo* lane(Lane lane) const override {
    const LaneReader* found = find(lane);
    return found == nullptr ? nullptr : &found->info();
  }
  Result<std::vector<TokenId>> tokens(Lane lane) const override {
    return column<TokenId>(lane, [](const auto& cells) { return TokenId{cells.token}; });
  }
  Result<std::vector<TokenId>> choices(Lane lane) const override {
    return column<TokenId>(lane, [](const auto& cells) { return TokenId{cells.choice}; });
  }
  Result<std::vector<std::int64_t>> timing_ns(Lane lane) const override {
    return column<std::int64_t>(lane, [](const auto& cells) { return cells.timing_ns; });
  }
  Result<std::vector<StepNote>> notes(Lane lane) const override {
    return guard(m_file.place(), [&] { return require(lane).notes(); });
  }
  Result<std::vector<float>> logits(Lane lane, std::int64_t step) const override {
    return guard(m_file.place(), [&] { return require(lane).logits(step); });
  }
  Result<std::vector<RankedToken>> top(Lane lane, std::int64_t step) const override {
    return guard(m_file.place(), [&] { return require(lane).top(step); });
  }
  Result<std::vector<float>> tap(Lane lane, const TapSpec& spec, std::int64_t step) const override;
  Result<StoredRoutes> routes(Lane lane, std::int64_t step) const override {
    return guard(m_file.place(), [&] { return require(lane).routes(step); });
  }
  Result<std::vector<std::string>> plans(Lane lane) const override {
    return guard(m_file.place(), [&] { return require(lane).plans(); });
  }
  Result<std::vector<StepMetrics>> stored_metrics() const override {
    return guard(m_file.place(), [&] {
      // Columns of a capture that was not closed count for nothing.
      if (m_state == TraceState::partial) return std::vector<StepMetrics>();
      return read_comparison_columns(m_file);
    });
  }
  Result<std::int64_t> verify() const override;
  Result<std::string> describe() const override;

 private:
  void read_root();
  void read_header();
  void read_lanes();
  [[nodiscard]] const LaneReader* find(Lane lane) const;
  [[nodiscard]] const LaneReader& require(Lane lane) const;
  template <class T, class Value>
  Result<std::vector<T>> column(Lane lane, Value&& value) const {
    return guard(m_file.place(), [&] {
      const auto& cells = require(lane).cells();
      std::vector<T> values(cells.size());
      std::transform(cells.begin(), cells.end(), values.begin(), value);
      return values;
    });
  }

  hdf5::SafeFile m_file;
  CaptureHeader m_header;
  int m_format_version = 0;
  TraceState m_state = TraceState::partial;
  std::vector<std::unique_ptr<LaneReader>> m_lanes;
  std::vector<CaptureLaneInfo> m_infos;
};

void Hdf5CaptureReader::read_root() {
  const hdf5::Place& place = m_file.place();
  const hdf5::Group root = m_file.open_group("/");
  if (!hdf5::has_attribute(place, root.id(), "format") ||
      hdf5::read_text_attribute(place, root.id(), "format") != layout::kFormatName) {
    throw_rule(place, "attribute format",
               fmt::format("not \"{}\"; this HDF5 file is no capture", layout::kFormatName));
  }
  const std::int64_t version = hdf5::read_int_attribute(place, root.id(), "format_version");
  if (version < 1 || version > kCaptureFormatVersion) {
    throw_rule(place, "attribute format_version",
               fmt::format("version {} of the format; this program reads versions 1 to {}; update "
                           "driftscope",
                           version, kCaptureFormatVersion));
  }
  m_format_version = static_cast<int>(version);
  m_header.created = hdf5::read_text_attribute(place, root.id(), "created");
  const std::string state = hdf5::read_text_attribute(place, root.id(), "state");
  for (const TraceState known :
       {TraceState::complete, TraceState::partial, TraceState::interrupted}) {
    if (trace_state_name(known) == state) {
      m_state = known;
      return;
    }
  }
  throw_rule(place, "attribute state",
             fmt::format("\"{}\" is none of the states of FORMAT.md", hdf5::printable(state)));
}

void Hdf5CaptureReader::read_header() {
  m_header.envelope_json = m_file.read_text("/envelope");
  m_header.vocabulary = m_file.count("/token", H5T_STD_I32LE);
  if (m_header.vocabulary < 1 || m_header.vocabulary > layout::kMaximumVocabulary) {
    throw_rule(m_file.place(), "/token",
               fmt::format("a vocabulary of {} is outside 1 to {}", m_header.vocabulary,
                           layout::kMaximumVocabulary));
  }
  m_header.prompt_a = read_ids(m_file, "/prompt/ids");
  m_header.prompt_b =
      m_file.exists("/prompt/ids_b") ? read_ids(m_file, "/prompt/ids_b") : m_header.prompt_a;
  m_header.prompt_text = m_file.read_text("/prompt/text");
  m_header.pieces = read_pieces(m_file, m_header.vocabulary);
}

void Hdf5CaptureReader::read_lanes() {
  for (const Lane lane : kAllLanes) {
    if (!m_file.exists(layout::lane_path(lane))) continue;
    m_lanes.push_back(std::make_unique<LaneReader>(m_file, lane, m_header.vocabulary));
    m_infos.push_back(m_lanes.back()->info());
    m_header.lanes.push_back(m_infos.back().lane);
    if (m_lanes.size() == 1) {
      m_header.taps = m_lanes.front()->taps();
      m_header.routes = m_lanes.front()->route_spec();
    }
    if (m_lanes.back()->route_spec() != m_header.routes) {
      throw_rule(m_file.place(), layout::lane_path(lane), "has other routes than the first lane");
    }
    if (m_lanes.back()->taps() != m_header.taps) {
      throw_rule(m_file.place(), layout::lane_path(lane), "has other taps than the first lane");
    }
  }
}

const LaneReader* Hdf5CaptureReader::find(Lane lane) const {
  for (const auto& reader : m_lanes) {
    if (reader->info().lane.lane == lane) return reader.get();
  }
  return nullptr;
}

const LaneReader& Hdf5CaptureReader::require(Lane lane) const {
  const LaneReader* found = find(lane);
  if (found == nullptr) {
    throw hdf5::Hdf5Failure{
        Error{.kind = ErrorKind::inconclusive,
              .message = fmt::format("{}: no lane {} in this capture; run again with it",
                                     m_file.place().file, lane_name(lane)),
              .detail = {}}};
  }
  return *found;
}

Result<std::vector<float>> Hdf5CaptureReader::tap(Lane lane, const TapSpec& spec,
                                                  std::int64_t step) const {
  return guard(m_file.place(), [&] {
    const LaneReader& reader = require(lane);
    const auto& taps = reader.taps();
    const auto found = std::find(taps.begin(), taps.end(), spec);
    if (found == taps.end()) {
      throw hdf5::Hdf5Failure{Error{
          .kind = ErrorKind::inconclusive,
          .message = fmt::format("{}: no tap {} of layer {} in this capture; run again with --taps",
                                 m_file.place().file, spec.operation, spec.layer),
          .detail = {}}};
    }
    return reader.tap(static_cast<std::size_t>(found - taps.begin()), step);
  });
}

Result<std::int64_t> Hdf5CaptureReader::verify() const {
  return guard(m_file.place(), [&] {
    std::int64_t rows = 0;
    for (const auto& lane : m_lanes) rows += lane->verify();
    static_cast<void>(m_file.read_int32("/token"));
    if (m_state != TraceState::partial) verify_comparison_columns(m_file);
    return rows;
  });
}

// Text from a file may hold anything.
Json texts(const std::vector<std::string>& lines) {
  Json array = Json::array();
  for (const std::string& line : lines) array.push_back(json_text::from_bytes(line));
  return array;
}

Result<std::string> Hdf5CaptureReader::describe() const {
  return guard(m_file.place(), [&] {
    Json lanes = Json::array();
    for (const auto& lane : m_lanes) {
      const CaptureLaneInfo& info = lane->info();
      lanes.push_back({{"lane", lane_name(info.lane.lane)},
                       {"state", trace_state_name(info.state)},
                       {"stop", json_text::from_bytes(info.stop)},
                       {"steps_planned", info.lane.steps},
                       {"steps_complete", info.steps_complete},
                       {"kept", info.full_rows ? "full" : "topk"},
                       {"top_k", info.full_rows ? Json(nullptr) : Json(lane->top_k())},
                       {"logits_bytes", lane->storage_bytes()},
                       {"model_sha256", json_text::from_bytes(info.lane.model_sha256)},
                       {"tokenizer_sha256", json_text::from_bytes(info.lane.tokenizer_sha256)},
                       {"plans", texts(lane->plans())},
                       {"config", json_text::embedded(info.lane.config_json)},
                       {"envelope", json_text::embedded(info.lane.envelope_json)}});
    }
    Json taps = Json::array();
    for (const TapSpec& tap : m_header.taps) {
      taps.push_back({{"layer", tap.layer}, {"operation", tap.operation}, {"width", tap.width}});
    }
    Json document{{"format", layout::kFormatName},
                  {"format_version", m_format_version},
                  {"created", json_text::from_bytes(m_header.created)},
                  {"state", trace_state_name(m_state)},
                  {"file_bytes", m_file.size()},
                  {"vocabulary", m_header.vocabulary},
                  {"pieces", !m_header.pieces.empty()},
                  {"prompt_tokens_a", m_header.prompt_a.size()},
                  {"prompt_tokens_b", m_header.prompt_b.size()},
                  {"prompt_text", json_text::from_bytes(m_header.prompt_text)},
                  {"envelope", json_text::embedded(m_header.envelope_json)},
                  {"taps", std::move(taps)},
                  {"lanes", std::move(lanes)}};
    if (!m_header.routes.layers.empty()) document["routes"] = route_spec_to_json(m_header.routes);
    return json_text::dump(document);
  });
}

}  // namespace

Result<std::unique_ptr<CaptureReader>> CaptureReader::open(const std::filesystem::path& path) {
  const hdf5::Place place{.kind = ErrorKind::malformed, .file = path.string()};
  return guard(place, [&]() -> std::unique_ptr<CaptureReader> {
    return std::make_unique<Hdf5CaptureReader>(path);
  });
}

}  // namespace driftscope
