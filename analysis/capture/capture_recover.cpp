// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>

#include "analysis/capture/capture.h"
#include "analysis/capture/padded_copy.h"

namespace driftscope {
namespace {

struct Recovered {
  std::int64_t steps = 0;
  bool whole = true;  // every step that the lane claims
};

// The kept logits as a row: NaN where nothing is known, which the writer's top K leaves out.
Result<std::vector<float>> row_of(const CaptureReader& damaged, const CaptureLaneInfo& info,
                                  std::int64_t step) {
  if (info.full_rows) return damaged.logits(info.lane.lane, step);
  auto best = damaged.top(info.lane.lane, step);
  if (!best) return tl::unexpected<Error>(best.error());
  std::vector<float> row(static_cast<std::size_t>(damaged.header().vocabulary),
                         std::numeric_limits<float>::quiet_NaN());
  for (const RankedToken& token : *best) {
    const auto index = static_cast<std::size_t>(token.token.value);
    if (index >= row.size()) return fail(ErrorKind::malformed, "token outside the vocabulary");
    row[index] = token.logit;
  }
  return row;
}

// False where the step cannot be read.
Result<bool> copy_step(const CaptureReader& damaged, const CaptureLaneInfo& info, StepRecord record,
                       CaptureWriter& writer) {
  const auto row = row_of(damaged, info, record.step);
  if (!row) return false;
  std::vector<std::vector<float>> values;
  std::vector<TensorTap> taps;
  for (const TapSpec& spec : damaged.header().taps) {
    auto tap = damaged.tap(info.lane.lane, spec, record.step);
    if (!tap) return false;
    values.push_back(std::move(*tap));
    taps.push_back({.layer = spec.layer, .operation = spec.operation, .values = values.back()});
  }
  StoredRoutes routes;
  if (!damaged.header().routes.layers.empty()) {
    auto read = damaged.routes(info.lane.lane, record.step);
    if (!read) return false;
    routes = std::move(*read);
  }
  record.routes = routes.row();
  record.logits = *row;
  record.taps = taps;
  if (auto accepted = writer.accept(record); !accepted) {
    return tl::unexpected<Error>(accepted.error());
  }
  return true;
}

Result<Recovered> copy_lane(const CaptureReader& damaged, const CaptureLaneInfo& info,
                            CaptureWriter& writer) {
  const Lane lane = info.lane.lane;
  const auto tokens = damaged.tokens(lane);
  const auto choices = damaged.choices(lane);
  const auto timing = damaged.timing_ns(lane);
  const auto notes = damaged.notes(lane);
  Recovered recovered;
  if (!tokens || !choices || !timing || !notes) return Recovered{.steps = 0, .whole = false};
  for (std::int64_t step = 0; step < info.steps_complete && recovered.whole; ++step) {
    const auto i = static_cast<std::size_t>(step);
    StepRecord record{.lane = lane,
                      .step = step,
                      .choice = (*choices)[i],
                      .emitted = (*tokens)[i],
                      .logits = {},
                      .taps = {},
                      .timing_ns = (*timing)[i]};
    if (!notes->empty()) {
      record.rows_in_flight = (*notes)[i].rows_in_flight;
      if ((*notes)[i].draw) record.draw = &*(*notes)[i].draw;
    }
    auto copied = copy_step(damaged, info, record, writer);
    if (!copied) return tl::unexpected<Error>(copied.error());
    recovered.whole = *copied;
    recovered.steps += *copied ? 1 : 0;
  }
  if (const auto plans = damaged.plans(lane)) {
    if (auto kept = writer.keep_plans(lane, *plans); !kept) {
      return tl::unexpected<Error>(kept.error());
    }
  }
  const TraceState state = recovered.whole ? info.state : TraceState::partial;
  if (auto done = writer.finish_lane(lane, state, info.stop); !done) {
    return tl::unexpected<Error>(done.error());
  }
  return recovered;
}

CaptureOptions options_for(const CaptureReader& damaged) {
  CaptureOptions options;
  for (const CaptureLaneInfo& info : damaged.lanes()) {
    if (info.full_rows) continue;
    options.keep = KeepMode::topk;
    const auto best = damaged.top(info.lane.lane, 0);
    if (best) options.top_k = std::max<std::int64_t>(1, static_cast<std::int64_t>(best->size()));
  }
  options.flush_every = 64;
  return options;
}

}  // namespace

Result<std::int64_t> recover_capture(const std::filesystem::path& damaged,
                                     const std::filesystem::path& target) {
  std::error_code ignored;
  if (std::filesystem::equivalent(damaged, target, ignored)) {
    return fail(ErrorKind::output,
                fmt::format("{}: recover writes a new file; name another target", target.string()));
  }
  // Lives as long as the reader that may read it.
  std::optional<PaddedCopy> padded;
  auto reader = CaptureReader::open(damaged);
  const auto length = stated_length(damaged);
  const bool cut = length && *length > std::filesystem::file_size(damaged, ignored);
  if (!reader && cut) {
    auto copy = PaddedCopy::make(damaged, target.string() + ".padded");
    if (!copy) return tl::unexpected<Error>(copy.error());
    padded.emplace(*std::move(copy));
    reader = CaptureReader::open(padded->path());
    if (!reader) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: its end is missing, and with it what says where the rows lie; "
                              "nothing can be recovered",
                              damaged.string()));
    }
  }
  if (!reader) return tl::unexpected<Error>(reader.error());
  auto writer = CaptureWriter::create(target, (*reader)->header(), options_for(**reader));
  if (!writer) return tl::unexpected<Error>(writer.error());
  std::int64_t steps = 0;
  bool whole = true;
  for (const CaptureLaneInfo& info : (*reader)->lanes()) {
    auto recovered = copy_lane(**reader, info, **writer);
    if (!recovered) return tl::unexpected<Error>(recovered.error());
    steps += recovered->steps;
    whole = whole && recovered->whole;
  }
  const TraceState state = whole ? (*reader)->state() : TraceState::partial;
  if (auto done = (*writer)->finish(state, nullptr); !done) {
    return tl::unexpected<Error>(done.error());
  }
  return steps;
}

}  // namespace driftscope
