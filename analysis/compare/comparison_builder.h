// SPDX-License-Identifier: Apache-2.0
// Turns two traces into a Comparison, row by row: live from a run, or from a capture.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analysis/compare/comparison.h"
#include "engine/config/run_config.h"
#include "engine/trace/trace.h"
#include "kernels/base/result.h"

namespace driftscope {

// What is known of an experiment besides its rows.
struct ExperimentFacts {
  std::int64_t vocabulary = 0;
  std::int64_t planned_steps = 0;
  std::vector<TokenId> prompt_a;
  std::vector<TokenId> prompt_b;
  std::string prompt_text;
  std::string model_a, model_b;                // display names
  std::string model_sha256_a, model_sha256_b;  // combined; empty if unknown
  RunConfig config_a, config_b;
  // In words, where the weights differ; empty: one checkpoint, or not looked at.
  std::string weight_difference;
  std::string envelope_a, envelope_b;  // JSON
  std::string command;
  // For a-priori rounding bounds.
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  Dtype stored_dtype = Dtype::f32;
  std::vector<TapSpec> taps;
  RouteSpec routes;                           // of both sides; no layers where they differ
  std::function<std::string(TokenId)> piece;  // may be empty
  // Lanes whose rows will come. Empty: unknown; a control lane is then compared with A's rows only
  // if it keeps within a few steps of A, and by a checksum of their bits beyond that.
  std::vector<Lane> lanes;
};

// The coarsest dtype on the path to the logits of either side: activations, KV cache, accumulators
// and the logits themselves. The unit of tie_ulps.
[[nodiscard]] Dtype coarsest_dtype(const RunConfig& a, const RunConfig& b);

// How far the two sides differ at one tap in one step.
struct StepTapValues {
  double max_abs = 0.0;
  double rms = 0.0;
  double relative_rms = 0.0;
  double max_ulp = 0.0;
};

// A TraceSink that compares. Keeps only rows that still wait for their partner; the order in which
// lanes arrive changes nothing. Errors of accept: inconclusive (rows of different lengths),
// malformed (a step that is not the lane's next one). Not thread-safe; snapshots are immutable and
// may be shared.
class ComparisonBuilder : public TraceSink {
 public:
  ComparisonBuilder(ExperimentFacts facts, ComparePolicy policy);
  ~ComparisonBuilder() override;
  [[nodiscard]] Result<void> accept(const StepRecord& record) override;
  // To be called when lanes end; stop is LaneSummary's reason as text.
  void finish_lane(Lane lane, TraceState state, std::string stop);
  // Steps of the pair (a, b_forced) compared so far.
  [[nodiscard]] std::int64_t compared_steps() const;
  [[nodiscard]] std::shared_ptr<const StepComparison> step(std::int64_t index) const;
  // The taps of a compared step, in the order of the facts; empty without taps.
  [[nodiscard]] std::vector<StepTapValues> tap_values(std::int64_t index) const;
  // The routes of a compared step that flipped, by layer.
  [[nodiscard]] std::vector<RouteFlip> route_flips(std::int64_t index) const;
  // Rows kept because the row of another lane at the same step has not come yet.
  [[nodiscard]] std::size_t rows_waiting() const;
  // A snapshot with statistics, causes, findings, tiers and verdict over what is there.
  [[nodiscard]] ComparisonPointer snapshot(TraceState state) const;

 private:
  struct State;
  std::unique_ptr<State> m_state;
};

// Statistics, causes, findings, tiers and verdict from what `comparison` already holds: state,
// policy, steps, lanes, taps, routes, control and pieces. The fields that repeat the facts
// (prompts, names, knobs, command …) are filled as well. Steps get their drift_excess as updated
// copies: those given are never written to. Used by the builder and by readers that got the steps
// another way (events).
void conclude(Comparison& comparison, const ExperimentFacts& facts);

}  // namespace driftscope
