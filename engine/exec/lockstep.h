// SPDX-License-Identifier: Apache-2.0
// Runs one prompt under two configurations, step by step, in lanes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/model/checkpoint.h"
#include "engine/trace/trace.h"
#include "kernels/base/result.h"
#include "kernels/base/types.h"

namespace driftscope {

// How stop strings are matched without the engine knowing a tokenizer: returns the text of
// the tokens emitted so far.
using DecodeText = std::function<std::string(const std::vector<TokenId>&)>;

struct LaneInput {
  std::shared_ptr<const ModelCheckpoint> model;
  RunConfig config = {};
  std::vector<TokenId> prompt = {};  // at least one id, each below the vocabulary
  // Prompts of the neighbours in flight, config.neighbours of them, each at least one id.
  std::vector<std::vector<TokenId>> neighbour_prompts = {};
};

struct LockstepRequest {
  LaneInput a;
  LaneInput b;
  std::int64_t steps = 64;   // at most; a lane also ends at an end-of-sequence token or stop string
  bool control = true;       // run A a second time, from scratch
  bool reference = false;    // run A's checkpoint in f64 throughout, fed A's tokens
  bool reference_b = false;  // and B's: what of the drift the weights make, and what the arithmetic
  TapLevel taps = TapLevel::logits;
  DecodeText decode_text = {};  // may be empty: stop strings are then an error
};

enum class StopReason : std::uint8_t {
  steps,
  end_of_sequence,
  stop_string,
  context_full,
  cancelled
};
[[nodiscard]] std::string_view name_of(StopReason reason);

struct LaneSummary {
  Lane lane = Lane::a;
  std::int64_t steps = 0;
  StopReason stop = StopReason::steps;
  std::int64_t prefill_ns = 0;
  std::int64_t decode_ns = 0;
  // Plans that really ran, as text, e.g. "decode q_proj m=8 n=192 k=192: lanes=32 split_k=2 …"
  std::vector<std::string> plans;
  std::string storage;  // where the weights lie, e.g. "weights copied to anonymous memory, …"
};
struct LockstepSummary {
  std::vector<LaneSummary> lanes = {};
  bool cancelled = false;
};

struct RunProgress {
  std::string phase;  // "load", "prefill", "decode", "score"
  std::int64_t done = 0;
  std::int64_t total = 0;
};
using ProgressFunction = std::function<void(const RunProgress&)>;

// Lanes a, b, b_forced and (if asked) control, reference and reference_b. Per step the order of
// records is a, reference, reference_b, b_forced, b, control. b and b_forced are one execution
// until the tokens of A and B part (their inputs and so their bits are the same by definition);
// then the state is copied and each goes on alone. The control lane is always executed on its own.
// With scoring = prefill a free lane recomputes the whole sequence at every step without a cache.
// If only B scores so, b_forced is one pass over prompt and all of A's tokens after A has ended
// (what a trainer recomputes), so its records arrive last; if A does so too, b_forced recomputes at
// every step like A, so that A against A is zero under any plan. b_forced ends with A: it has as
// many steps as A, unless B's context is full before. Errors: usage (ids out of range, prompt
// longer than the context), inconclusive (vocabularies of different size), engine, and whatever the
// sink returns. On cancellation what was delivered stays valid and `cancelled` is set.
[[nodiscard]] Result<LockstepSummary> run_lockstep(const LockstepRequest& request, TraceSink& sink,
                                                   const ProgressFunction& progress,
                                                   std::stop_token stop);

// Teacher-forced logits at every position of a given sequence: record `step` i (lane a) holds the
// row after ids[0..i], its `emitted` is ids[i + 1] where there is one, else the choice.
// config.scoring says whether step by step or in one pass.
[[nodiscard]] Result<LockstepSummary> score_sequence(const LaneInput& input, TapLevel taps,
                                                     TraceSink& sink,
                                                     const ProgressFunction& progress,
                                                     std::stop_token stop);

// The same for what was answered to a prompt: the first `prompt_length` ids are put in as a prompt,
// as a run does it, and record 0 holds the row behind them. With scoring = decode the rows are
// those of a run of the same configuration that emits the same tokens, bit for bit. Errors also:
// usage (no such prompt).
[[nodiscard]] Result<LockstepSummary> score_continuation(const LaneInput& input,
                                                         std::int64_t prompt_length, TapLevel taps,
                                                         TraceSink& sink,
                                                         const ProgressFunction& progress,
                                                         std::stop_token stop);

// Taps that a run of this model emits at this level, in the order of emission.
[[nodiscard]] std::vector<TapSpec> tap_specs(const ModelDescription& model, TapLevel level);
// The routers of this model, as in StepRecord::routes.
[[nodiscard]] RouteSpec route_spec(const ModelDescription& model);

}  // namespace driftscope
