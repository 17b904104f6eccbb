// SPDX-License-Identifier: Apache-2.0
// The event stream of `--events`: JSON Lines, written by the headless program, read by the window.
//   {"event":"started", …facts…}
//   {"event":"progress","phase":"decode","done":3,"total":64}
//   {"event":"step","step":0,"lane_tokens":{…},"metrics":{id:value},"top_a":[[id,logit]…],"top_b":…,
//    "flips":[…],"taps":[…]}
//   {"event":"finding","id":…,"severity":…,"text":…,"evidence":{…}}
//   {"event":"done","state":"complete","capture":"PATH","exit_code":0,"verdict":…}
//   {"event":"error","exit_code":4,"message":…}
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "analysis/compare/comparison.h"
#include "analysis/compare/comparison_builder.h"
#include "kernels/base/result.h"

namespace driftscope {

[[nodiscard]] std::string started_event(const ExperimentFacts& facts, const ComparePolicy& policy);
[[nodiscard]] std::string progress_event(std::string_view phase, std::int64_t done,
                                         std::int64_t total);
// `tap_values` gives this step's rms and max_abs of each tap in order, empty without taps.
[[nodiscard]] std::string step_event(const StepComparison& step,
                                     const std::vector<StepTapValues>& tap_values,
                                     const std::function<std::string(TokenId)>& piece);
[[nodiscard]] std::string finding_event(const Finding& finding);
[[nodiscard]] std::string done_event(const Comparison& comparison, std::string_view capture_path,
                                     int exit_code);
[[nodiscard]] std::string error_event(const Error& error);

// Collects lines into a growing Comparison. Lines that are not events are malformed.
class EventReader {
 public:
  EventReader();
  ~EventReader();
  struct Progress {
    std::string phase;
    std::int64_t done = 0;
    std::int64_t total = 0;
  };
  struct Done {
    std::string capture_path;
    int exit_code = 0;
  };
  using Event = std::variant<std::monostate, Progress, Done, Error>;
  // What the line said besides changing the comparison.
  [[nodiscard]] Result<Event> push(std::string_view line);
  // A snapshot of what has been read so far (concluded), or null before `started`.
  [[nodiscard]] ComparisonPointer snapshot() const;

 private:
  struct State;
  std::unique_ptr<State> m_state;
};

}  // namespace driftscope
