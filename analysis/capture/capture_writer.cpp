// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <csignal>
#include <numeric>

#include "analysis/capture/capture.h"
#include "analysis/capture/comparison_columns.h"
#include "analysis/capture/lane_writer.h"
#include "analysis/capture/part_file.h"

namespace driftscope {
namespace {

using hdf5::checked;
using hdf5::guard;
using hdf5::Place;

hdf5::File create_file(const Place& place) {
  const hdf5::PropertyList creation(
      checked(H5Pcreate(H5P_FILE_CREATE), place, "H5Pcreate", "file"));
  checked(H5Pset_attr_phase_change(creation.id(), 64, 48), place, "H5Pset_attr_phase_change", "/");
  const hdf5::PropertyList access(checked(H5Pcreate(H5P_FILE_ACCESS), place, "H5Pcreate", "file"));
  checked(H5Pset_libver_bounds(access.id(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), place,
          "H5Pset_libver_bounds", "file");
  return hdf5::File(
      checked(H5Fcreate(place.file.c_str(), H5F_ACC_TRUNC, creation.id(), access.id()), place,
              "H5Fcreate", "file"));
}

void write_ids(const Place& place, hid_t group, const char* name,
               const std::vector<TokenId>& tokens) {
  std::vector<std::int32_t> ids(tokens.size());
  std::transform(tokens.begin(), tokens.end(), ids.begin(), [](TokenId id) { return id.value; });
  hdf5::write_vector(place, group, name, H5T_STD_I32LE, ids.data(),
                     static_cast<std::int64_t>(ids.size()));
}

void write_prompt(const Place& place, hid_t file, const CaptureHeader& header) {
  hdf5::Group group = hdf5::make_group(place, file, "/prompt");
  write_ids(place, group.id(), "ids", header.prompt_a);
  if (header.prompt_b != header.prompt_a) write_ids(place, group.id(), "ids_b", header.prompt_b);
  hdf5::write_text(place, group.id(), "text", header.prompt_text);
  group.close(place, "H5Gclose", "/prompt");
}

void write_vocabulary(const Place& place, hid_t file, const std::vector<std::string>& pieces) {
  if (pieces.empty()) return;
  std::vector<std::int64_t> offsets{0};
  std::string bytes;
  for (const std::string& piece : pieces) {
    bytes += piece;
    offsets.push_back(static_cast<std::int64_t>(bytes.size()));
  }
  hdf5::Group group = hdf5::make_group(place, file, "/vocab");
  hdf5::write_vector(place, group.id(), "offsets", H5T_STD_I64LE, offsets.data(),
                     static_cast<std::int64_t>(offsets.size()));
  hdf5::write_vector(place, group.id(), "bytes", H5T_STD_U8LE, bytes.data(),
                     static_cast<std::int64_t>(bytes.size()));
  group.close(place, "H5Gclose", "/vocab");
}

void write_token_scale(const Place& place, hid_t file, std::int64_t vocabulary) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(vocabulary));
  std::iota(ids.begin(), ids.end(), 0);
  hdf5::write_vector(place, file, "/token", H5T_STD_I32LE, ids.data(), vocabulary);
  const hdf5::Dataset scale(
      checked(H5Dopen2(file, "/token", H5P_DEFAULT), place, "H5Dopen2", "/token"));
  checked(H5DSset_scale(scale.id(), "token"), place, "H5DSset_scale", "/token");
}

void write_root(const Place& place, hid_t file, const CaptureHeader& header) {
  const hdf5::Group root(checked(H5Gopen2(file, "/", H5P_DEFAULT), place, "H5Gopen2", "/"));
  hdf5::write_text_attribute(place, root.id(), "format", layout::kFormatName);
  hdf5::write_int_attribute(place, root.id(), "format_version", kCaptureFormatVersion);
  hdf5::write_text_attribute(place, root.id(), "created", header.created);
  hdf5::write_text_attribute(place, root.id(), "state", trace_state_name(TraceState::partial),
                             layout::kStateLength);
  hdf5::write_text_attribute(place, root.id(), "default", "comparison");
  hdf5::write_text(place, root.id(), "envelope", header.envelope_json);
}

Result<void> check_request(const std::filesystem::path& path, const CaptureHeader& header,
                           const CaptureOptions& options) {
  const auto refuse = [&path](std::string_view rule) {
    return fail(ErrorKind::output, fmt::format("{}: {}", path.string(), rule));
  };
  if (header.vocabulary < 1 || header.vocabulary > layout::kMaximumVocabulary) {
    return refuse(fmt::format("a vocabulary of {} cannot be stored; captures hold 1 to {}",
                              header.vocabulary, layout::kMaximumVocabulary));
  }
  if (options.keep == KeepMode::topk &&
      (options.top_k < 1 || options.top_k > layout::kMaximumTopK)) {
    return refuse(fmt::format("top K of {} cannot be kept; choose 1 to {}", options.top_k,
                              layout::kMaximumTopK));
  }
  if (options.deflate < 0 || options.deflate > 9) {
    return refuse(
        fmt::format("compression level {} does not exist; choose 0 to 9", options.deflate));
  }
  if (static_cast<std::int64_t>(header.taps.size()) > layout::kMaximumTaps) {
    return refuse(fmt::format("{} taps are too many; captures hold {}", header.taps.size(),
                              layout::kMaximumTaps));
  }
  for (const TapSpec& tap : header.taps) {
    if (layout::is_plain_name(tap.operation) && tap.width >= 1 &&
        tap.width <= layout::kMaximumWidth && tap.layer >= -1 &&
        tap.layer <= layout::kMaximumLayer) {
      continue;
    }
    return refuse(fmt::format("tap \"{}\" of layer {} with width {} cannot be stored",
                              tap.operation, tap.layer, tap.width));
  }
  for (const CaptureLane& lane : header.lanes) {
    if (static_cast<std::int64_t>(lane.config_json.size()) > layout::kMaximumAttribute) {
      return refuse(fmt::format("the configuration of lane {} has {} bytes; captures hold {}",
                                lane_name(lane.lane), lane.config_json.size(),
                                layout::kMaximumAttribute));
    }
  }
  return {};
}

class Hdf5CaptureWriter final : public CaptureWriter {
 public:
  Hdf5CaptureWriter(PartFile part, Place place, CaptureOptions options)
      : m_part(std::move(part)), m_place(std::move(place)), m_options(options) {}
  // Without finish() the file stays PATH.part, partial, with every step that was accepted.
  ~Hdf5CaptureWriter() override;

  [[nodiscard]] Result<void> start(const CaptureHeader& header);
  [[nodiscard]] Result<void> accept(const StepRecord& record) override;
  [[nodiscard]] Result<void> keep_plans(Lane lane, const std::vector<std::string>& plans) override {
    return write([&] { lane_writer(lane).keep_plans(plans); });
  }
  Result<void> finish_lane(Lane lane, TraceState state, std::string_view stop) override;
  [[nodiscard]] Result<void> finish(TraceState state, const Comparison* comparison) override;

 private:
  // After a failure nothing more is written: what was acknowledged before stays readable.
  template <class F>
  Result<void> write(F&& action) {
    if (m_failure) return tl::unexpected<Error>(*m_failure);
    Result<void> done = guard(m_place, std::forward<F>(action));
    if (!done) m_failure = done.error();
    return done;
  }
  [[nodiscard]] LaneWriter& lane_writer(Lane lane);
  void flush(LaneWriter& lane);
  void flush_file() {
    checked(H5Fflush(m_file.id(), H5F_SCOPE_LOCAL), m_place, "H5Fflush", "file");
  }
  void create_objects(const CaptureHeader& header);
  void close();
  void abandon();

  PartFile m_part;
  Place m_place;
  CaptureOptions m_options;
  hdf5::File m_file;
  std::vector<LaneWriter> m_lanes;
  std::optional<Error> m_failure;
};

Hdf5CaptureWriter::~Hdf5CaptureWriter() {
  if (m_file.valid() && !m_failure) static_cast<void>(write([this] { close(); }));
  if (m_failure) abandon();
}

// Closing after a failed write would mark the file as closed although it is cut short, and then no
// program opens it. Left alone it is what a killed writer leaves: readable up to its last whole
// step. The ids stay open until the process ends, reachable but never used again.
void Hdf5CaptureWriter::abandon() {
  struct Abandoned {
    std::vector<LaneWriter> lanes;
    hdf5::File file;
  };
  static auto* const graveyard = new std::vector<Abandoned>;
  graveyard->push_back({std::move(m_lanes), std::move(m_file)});
}

Result<void> Hdf5CaptureWriter::start(const CaptureHeader& header) {
  Result<void> started = write([&] { create_objects(header); });
  // A file without a step is of use to nobody.
  if (!started) m_part.remove();
  return started;
}

void Hdf5CaptureWriter::create_objects(const CaptureHeader& header) {
  m_file = create_file(m_place);
  write_root(m_place, m_file.id(), header);
  write_token_scale(m_place, m_file.id(), header.vocabulary);
  write_prompt(m_place, m_file.id(), header);
  write_vocabulary(m_place, m_file.id(), header.pieces);
  hdf5::make_group(m_place, m_file.id(), "/traces").close(m_place, "H5Gclose", "/traces");
  for (const CaptureLane& lane : header.lanes) {
    LaneWriter::create(m_place, m_file.id(), header, lane, m_options);
  }
  create_comparison_columns(m_place, m_file.id());
  flush_file();
  checked(H5Fstart_swmr_write(m_file.id()), m_place, "H5Fstart_swmr_write", "file");
  for (const CaptureLane& lane : header.lanes) {
    m_lanes.emplace_back(m_place, m_file.id(), header, lane, m_options);
  }
}

LaneWriter& Hdf5CaptureWriter::lane_writer(Lane lane) {
  const auto found = std::find_if(m_lanes.begin(), m_lanes.end(),
                                  [lane](const LaneWriter& w) { return w.lane() == lane; });
  if (found == m_lanes.end()) {
    hdf5::throw_rule(m_place, layout::lane_path(lane), "the capture was made without this lane");
  }
  return *found;
}

void Hdf5CaptureWriter::flush(LaneWriter& lane) {
  if (lane.pending() == 0) return;
  lane.write_pending();
  flush_file();
  lane.acknowledge();
}

Result<void> Hdf5CaptureWriter::accept(const StepRecord& record) {
  return write([&] {
    LaneWriter& lane = lane_writer(record.lane);
    lane.append(record);
    if (lane.pending() >= m_options.flush_every) flush(lane);
  });
}

Result<void> Hdf5CaptureWriter::finish_lane(Lane lane, TraceState state, std::string_view stop) {
  return write([&] {
    LaneWriter& writer = lane_writer(lane);
    flush(writer);
    writer.finish(state, stop);
    flush_file();
  });
}

Result<void> Hdf5CaptureWriter::finish(TraceState state, const Comparison* comparison) {
  const Result<void> written = write([&] {
    for (LaneWriter& lane : m_lanes) {
      flush(lane);
      if (!lane.finished()) lane.finish(state, "");
    }
    if (comparison != nullptr) write_comparison_columns(m_place, m_file.id(), *comparison);
    flush_file();
    {
      const hdf5::Group root(
          checked(H5Gopen2(m_file.id(), "/", H5P_DEFAULT), m_place, "H5Gopen2", "/"));
      hdf5::rewrite_text_attribute(m_place, root.id(), "state", trace_state_name(state));
    }
    close();
  });
  if (!written) return written;
  return m_part.publish();
}

void Hdf5CaptureWriter::close() {
  for (LaneWriter& lane : m_lanes) {
    flush(lane);
    lane.close();
  }
  m_lanes.clear();
  m_file.close(m_place, "H5Fclose", "file");
}

}  // namespace

Result<std::unique_ptr<CaptureWriter>> CaptureWriter::create(const std::filesystem::path& path,
                                                             const CaptureHeader& header,
                                                             const CaptureOptions& options) {
  hdf5::initialise();
  // A write beyond the file size limit is then an error to report instead of a signal.
  std::signal(SIGXFSZ, SIG_IGN);
  if (Result<void> valid = check_request(path, header, options); !valid) {
    return tl::unexpected<Error>(valid.error());
  }
  Result<PartFile> part = PartFile::claim(path);
  if (!part) return tl::unexpected<Error>(part.error());
  const Place place{.kind = ErrorKind::output, .file = part->part().string()};
  auto writer = std::make_unique<Hdf5CaptureWriter>(std::move(*part), place, options);
  if (Result<void> started = writer->start(header); !started) {
    return tl::unexpected<Error>(started.error());
  }
  return writer;
}

}  // namespace driftscope
