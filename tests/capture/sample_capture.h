// SPDX-License-Identifier: Apache-2.0
// A small experiment whose every number follows from (lane, step, index): what the tests expect can
// be computed again without reading anything back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/capture/capture.h"
#include "analysis/capture/experiment_json.h"

namespace driftscope::testing {

struct SampleShape {
  std::int64_t vocabulary = 37;
  std::int64_t steps = 6;
  bool taps = true;
  bool routes = false;  // a mixture of experts: layers 0 and 2, 2 of 5 experts
  std::vector<Lane> lanes{Lane::a, Lane::b, Lane::b_forced, Lane::control};
};

// Values with NaN payloads, negative zero, subnormals and infinities among them.
[[nodiscard]] std::vector<float> sample_row(Lane lane, std::int64_t step, std::int64_t width,
                                            int salt);
// Other experts in b and b_forced at step 3, in layer 2.
[[nodiscard]] StoredRoutes sample_routes(Lane lane, std::int64_t step);
[[nodiscard]] TokenId sample_token(Lane lane, std::int64_t step);
[[nodiscard]] TokenId sample_choice(Lane lane, std::int64_t step);
[[nodiscard]] std::int64_t sample_timing_ns(Lane lane, std::int64_t step);
[[nodiscard]] std::int64_t sample_rows(Lane lane, std::int64_t step);
// None, a uniform number and a race by turns.
[[nodiscard]] std::optional<Draw> sample_draw(Lane lane, std::int64_t step);

[[nodiscard]] std::vector<std::string> sample_plans(Lane lane);

[[nodiscard]] ExperimentFacts sample_facts(const SampleShape& shape);
[[nodiscard]] CaptureHeader sample_header(const SampleShape& shape);
// Hands one step of one lane to `sink`.
[[nodiscard]] Result<void> emit_step(TraceSink& sink, const CaptureHeader& header, Lane lane,
                                     std::int64_t step);
// All steps, lanes interleaved, closed as `state`.
[[nodiscard]] Result<void> write_sample(const std::filesystem::path& path, const SampleShape& shape,
                                        const CaptureOptions& options, TraceState state);

// A folder of its own for each test, removed afterwards.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return m_path / name;
  }

 private:
  std::filesystem::path m_path;
};

}  // namespace driftscope::testing
