// SPDX-License-Identifier: Apache-2.0
// The event stream of `--events`: JSON Lines, written by the headless program, read by the window.
//   {"event":"started","version":1,…every field of ExperimentFacts…,"policy":{…}}
//   {"event":"progress","phase":"decode","done":3,"total":64}
//   {"event":"step","step":0,"token_a":5,"choice_b":5,"token_b":5|null,"flipped":false,
//    "metrics":{id:value,…},"max_abs_token":7,"top_a":[[id,logit],…],"top_b":[…],
//    "flips":[{"x":1,"y":2,"rank_a_x":0,…,"gap_a":0.5,"gap_b":-0.25},…],
//    "rows_a":1,"rows_b":8             rows in flight, where known
//    "draw_a":{"uniform":u,"lower":l,"upper":h}|{"candidates":[[id,score,noise],…]}, "draw_b":…
//                                      only where a random number decided
//    "health":{"nan_a":1,…}            only where a row holds NaN or infinities
//    "taps":[[max_abs,rms,relative_rms,max_ulp],…]   in the order of "taps" of "started"
//    "route_flips":[{"layer":7,"only_a":[5],"only_b":[3],"margin_a":0.5,"margin_b":0.25},…]
//                                      only where a router chose other experts in B
//    "pieces":{"5":" the","7":{"bytes":"c3"}}}       of the ids in this line
//   {"event":"finding","id":…,"severity":…,"text":…,"evidence":{…}}
//   {"event":"done","state":"complete","capture":"PATH","exit_code":0,"verdict":…,
//    "first_divergence":{…}|null,"first_flip":…,"control":{…}|null,
//    "lanes":[{"lane":"a","state":…,"stop":…,"tokens":[…]},…],"pieces":{…},
//    "routes":{"decisions":…,"flips":[…],…}}   as in the comparison; mixtures of experts only
//   {"event":"error","exit_code":4,"message":…,"detail":…}
// Numbers read back to the same bits; "NaN", "Infinity" and "-Infinity" are strings. A step may
// come again, whole, when the free lane's token of it has become known. Schema: event.schema.json.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "analysis/compare/comparison.h"
#include "analysis/compare/comparison_builder.h"
#include "kernels/base/result.h"

namespace driftscope {

inline constexpr std::int64_t kEventVersion = 1;

[[nodiscard]] std::string started_event(const ExperimentFacts& facts, const ComparePolicy& policy);
[[nodiscard]] std::string progress_event(std::string_view phase, std::int64_t done,
                                         std::int64_t total);
// `tap_values`: one entry per tap of the facts, in their order; empty without taps. `piece` may be
// empty.
[[nodiscard]] std::string step_event(const StepComparison& step,
                                     const std::vector<StepTapValues>& tap_values,
                                     const std::function<std::string(TokenId)>& piece,
                                     const std::vector<RouteFlip>& route_flips = {});
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
