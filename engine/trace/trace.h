// SPDX-License-Identifier: Apache-2.0
// What a run emits. Standard library and Result only.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"
#include "kernels/base/types.h"

namespace driftscope {

// Lanes of one experiment. `b` follows its own tokens, `b_forced` is fed A's, `control` is A again.
// `reference` is A's checkpoint in f64, `reference_b` B's where that is another; both are fed A's
// tokens.
enum class Lane : std::uint8_t { a, b, b_forced, control, reference, reference_b };
inline constexpr std::array kAllLanes{Lane::a,       Lane::b,         Lane::b_forced,
                                      Lane::control, Lane::reference, Lane::reference_b};
[[nodiscard]] constexpr std::string_view lane_name(Lane lane) {
  switch (lane) {
    case Lane::a:
      return "a";
    case Lane::b:
      return "b";
    case Lane::b_forced:
      return "b_forced";
    case Lane::control:
      return "control";
    case Lane::reference:
      return "reference";
    case Lane::reference_b:
      return "reference_b";
  }
  return "?";
}
[[nodiscard]] constexpr std::optional<Lane> lane_from_name(std::string_view name) {
  for (const Lane lane : kAllLanes) {
    if (lane_name(lane) == name) return lane;
  }
  return std::nullopt;
}

enum class TapLevel : std::uint8_t {
  logits,  // logits rows only
  layers,  // and the embedding (embd), each layer's output (l_out) and the last norm (result_norm)
  all,     // and every operation
};

// One tensor row seen during a step: the row of the token whose logits the step reports.
// layer -1: before the first layer ("embd"); the number of layers: after the last ("result_norm").
struct TensorTap {
  int layer = 0;
  std::string_view operation;  // a name in tap_operations(); static storage
  std::span<const float> values;
};

// A token that took part in a race of Gumbel noise.
struct DrawCandidate {
  TokenId id{};
  double score = 0.0;  // penalised logit / temperature, less the highest such value
  double noise = 0.0;
  friend bool operator==(const DrawCandidate&, const DrawCandidate&) = default;
};
// The random numbers that decided a choice.
struct Draw {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  // Inverse of the cumulative distribution: the uniform number, and the choice's interval of the
  // distribution (tokens in rising id, sums divided by their total): lower <= uniform < upper, but
  // for the rounding of the division. NaN in a race.
  double uniform = kNone;
  double lower = kNone;
  double upper = kNone;
  // A race: those with the highest score + noise, best first (the choice), at most
  // kDrawCandidates. Empty otherwise.
  std::vector<DrawCandidate> candidates;
};
inline constexpr std::size_t kDrawCandidates = 8;
// Where the routers of a mixture of experts stand; the same for every step. No layers: none.
struct RouteSpec {
  std::vector<std::int32_t> layers;  // that have a router, rising
  std::int64_t experts = 0;          // to choose from, in each of them
  std::int64_t chosen = 0;           // of them, per row
  [[nodiscard]] std::size_t decisions() const { return layers.size(); }  // per row
  // Elements of the spans of RouteRow.
  [[nodiscard]] std::size_t ids() const { return layers.size() * static_cast<std::size_t>(chosen); }
  friend bool operator==(const RouteSpec&, const RouteSpec&) = default;
};

// What every router chose for one row, in the order of RouteSpec::layers.
struct RouteRow {
  std::span<const std::int32_t> experts;  // [layers, chosen], largest weight first
  std::span<const float> weights;         // [layers, chosen]
  // [layers]: logit of the last chosen expert minus the largest logit of the others; NaN where all
  // experts are chosen.
  std::span<const float> margins;
  [[nodiscard]] bool empty() const { return experts.empty(); }
};

// A RouteRow that holds its values.
struct StoredRoutes {
  StoredRoutes() = default;
  explicit StoredRoutes(const RouteRow& row)
      : experts(row.experts.begin(), row.experts.end()),
        weights(row.weights.begin(), row.weights.end()),
        margins(row.margins.begin(), row.margins.end()) {}
  [[nodiscard]] RouteRow row() const { return {experts, weights, margins}; }

  std::vector<std::int32_t> experts;
  std::vector<float> weights;
  std::vector<float> margins;
};

// One step of one lane. Spans are valid during accept() only.
struct StepRecord {
  Lane lane = Lane::a;
  std::int64_t step = 0;          // from 0; a lane's steps arrive in order without gaps
  TokenId choice{};               // what this lane would emit: greedy or sampled from its logits
  TokenId emitted{};              // what was fed onward (b_forced: A's token; else the choice)
  std::span<const float> logits;  // [vocabulary]
  std::span<const TensorTap> taps;
  std::int64_t timing_ns = 0;
  std::int64_t rows_in_flight = 0;  // M of the call that computed the row; 0: not known
  const Draw* draw = nullptr;       // null: no random number had a part in the choice
  RouteRow routes = {};             // of the row of `logits`; empty in dense models
};

// Receives rows while a run goes on. Calls come from one thread, in the order of the run.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  [[nodiscard]] virtual Result<void> accept(const StepRecord& record) = 0;
};

// Where each tap stands, for sizing files up front.
struct TapSpec {
  int layer = 0;
  std::string operation;
  std::int64_t width = 0;
  friend bool operator==(const TapSpec&, const TapSpec&) = default;
};

// Whether a lane came to its end.
enum class TraceState : std::uint8_t { complete, partial, interrupted };
[[nodiscard]] constexpr std::string_view trace_state_name(TraceState state) {
  switch (state) {
    case TraceState::complete:
      return "complete";
    case TraceState::partial:
      return "partial";
    case TraceState::interrupted:
      return "interrupted";
  }
  return "?";
}

}  // namespace driftscope
