// SPDX-License-Identifier: Apache-2.0
// Capture files: one HDF5 file per experiment. The layout is described in FORMAT.md beside this
// file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/comparison.h"
#include "engine/config/run_config.h"
#include "engine/trace/trace.h"
#include "kernels/base/result.h"

namespace driftscope {

inline constexpr int kCaptureFormatVersion = 1;

// What is kept of each step beside its rows: the rows in flight; and the uniform number behind a
// choice, with the interval it fell into; and the candidates of a race with their noise.
enum class NoteColumns : std::uint8_t { rows, uniforms, races };
// What a configuration can give.
[[nodiscard]] NoteColumns note_columns(const RunConfig& config);

struct StepNote {
  std::int64_t rows_in_flight = 0;  // 0: not known
  std::optional<Draw> draw;         // empty: no random number had a part in the choice
};

struct CaptureLane {
  Lane lane = Lane::a;
  std::int64_t steps = 0;     // planned; the lane may end earlier
  std::string config_json;    // every knob
  std::string envelope_json;  // of this lane
  std::string model_sha256, tokenizer_sha256, chat_template_sha256;  // empty: unknown
  NoteColumns notes = NoteColumns::rows;
};

struct CaptureHeader {
  std::string created;        // ISO 8601, UTC
  std::string envelope_json;  // of the experiment: holds "command", model facts, both prompts
  std::vector<TokenId> prompt_a;
  std::vector<TokenId> prompt_b;
  std::string prompt_text;
  std::int64_t vocabulary = 0;
  std::vector<std::string> pieces;  // bytes of each token id; empty: not kept
  std::vector<CaptureLane> lanes;
  std::vector<TapSpec> taps;  // the same for every lane
  RouteSpec routes = {};      // the same for every lane; no layers: none kept
};

enum class KeepMode : std::uint8_t { full, topk };
struct CaptureOptions {
  KeepMode keep = KeepMode::full;
  std::int64_t top_k = 64;       // kept per row when keep is topk (full rows keep none)
  int deflate = 0;               // 0 … 9; shuffle is on when deflate is
  std::int64_t flush_every = 1;  // steps between flushes
};

// Writes step by step; a step that accept() returned from, and flush_every reached, survives a
// kill. The file is PATH.part until finish() renames it.
class CaptureWriter : public TraceSink {
 public:
  ~CaptureWriter() override = default;
  // Errors: output, naming the path and the reason (full disk, no permission, locked).
  [[nodiscard]] static Result<std::unique_ptr<CaptureWriter>> create(
      const std::filesystem::path& path, const CaptureHeader& header,
      const CaptureOptions& options);
  // Plans that really ran in the lane, one line each. At most once, before finish_lane().
  [[nodiscard]] virtual Result<void> keep_plans(Lane lane,
                                                const std::vector<std::string>& plans) = 0;
  virtual Result<void> finish_lane(Lane lane, TraceState state, std::string_view stop) = 0;
  // Writes /comparison and the final state, closes, renames. `comparison` may be null.
  [[nodiscard]] virtual Result<void> finish(TraceState state, const Comparison* comparison) = 0;
};

struct CaptureLaneInfo {
  CaptureLane lane;
  TraceState state = TraceState::partial;
  std::int64_t steps_complete = 0;
  std::string stop;
  bool full_rows = true;
};

// Opens at once, reads rows on demand, never trusts the file. Not thread-safe: one thread does
// HDF5.
class CaptureReader {
 public:
  virtual ~CaptureReader() = default;
  // Errors: malformed, naming file, object and rule. Opens growing, partial and `.part` files.
  [[nodiscard]] static Result<std::unique_ptr<CaptureReader>> open(
      const std::filesystem::path& path);
  [[nodiscard]] virtual const CaptureHeader& header() const = 0;
  [[nodiscard]] virtual int format_version() const = 0;
  [[nodiscard]] virtual TraceState state() const = 0;
  [[nodiscard]] virtual const std::vector<CaptureLaneInfo>& lanes() const = 0;
  [[nodiscard]] virtual const CaptureLaneInfo* lane(Lane lane) const = 0;
  [[nodiscard]] virtual Result<std::vector<TokenId>> tokens(Lane lane) const = 0;  // emitted
  [[nodiscard]] virtual Result<std::vector<TokenId>> choices(Lane lane) const = 0;
  [[nodiscard]] virtual Result<std::vector<std::int64_t>> timing_ns(Lane lane) const = 0;
  // One per complete step, or none in a capture that kept none.
  [[nodiscard]] virtual Result<std::vector<StepNote>> notes(Lane lane) const = 0;
  // The row of one step, [vocabulary]. Error (inconclusive) where only top-K was kept.
  [[nodiscard]] virtual Result<std::vector<float>> logits(Lane lane, std::int64_t step) const = 0;
  [[nodiscard]] virtual Result<std::vector<RankedToken>> top(Lane lane,
                                                             std::int64_t step) const = 0;
  [[nodiscard]] virtual Result<std::vector<float>> tap(Lane lane, const TapSpec& spec,
                                                       std::int64_t step) const = 0;
  // What the routers chose at this step. Error (inconclusive) where header().routes has no layers.
  [[nodiscard]] virtual Result<StoredRoutes> routes(Lane lane, std::int64_t step) const = 0;
  // Plans that ran in a lane that came to its end, one line each; empty in older files.
  [[nodiscard]] virtual Result<std::vector<std::string>> plans(Lane lane) const = 0;
  // The metrics of /comparison, one entry per step that was compared when the run ended; their
  // rankings are empty, metrics that the file does not know are NaN. Empty for a run that was cut
  // off.
  [[nodiscard]] virtual Result<std::vector<StepMetrics>> stored_metrics() const = 0;
  // Checks the CRC-32C of every stored row. Error (malformed) names the first bad dataset and step.
  [[nodiscard]] virtual Result<std::int64_t> verify() const = 0;
  // Attributes and sizes for `inspect`, as compact JSON.
  [[nodiscard]] virtual Result<std::string> describe() const = 0;
};

// Reads every lane into a Comparison (streamed: memory does not grow with the file). Where only the
// top K logits were kept: from the stored metrics and rankings, with a finding that says so.
[[nodiscard]] Result<ComparisonPointer> compare_capture(const CaptureReader& reader,
                                                        const ComparePolicy& policy);
// Lane a of two captures against each other.
[[nodiscard]] Result<ComparisonPointer> compare_captures(const CaptureReader& a,
                                                         const CaptureReader& b,
                                                         const ComparePolicy& policy);
// Copies what is readable into a fresh file; returns the number of steps saved per lane, summed.
[[nodiscard]] Result<std::int64_t> recover_capture(const std::filesystem::path& damaged,
                                                   const std::filesystem::path& target);

}  // namespace driftscope
