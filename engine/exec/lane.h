// SPDX-License-Identifier: Apache-2.0
// One lane while it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "engine/exec/backend_factory.h"
#include "engine/exec/batch_engine.h"
#include "engine/exec/lockstep.h"
#include "engine/exec/sampler.h"

namespace driftscope {

// Errors: usage (no prompt, an id outside the vocabulary, a prompt longer than the context, a wrong
// number of neighbours). `side` names the lane's input in messages: "a", "b".
[[nodiscard]] Result<void> check_lane_input(const LaneInput& input, std::string_view side);

// A token and the random numbers that decided it (null: none), valid until the next choice of the
// lane that made it.
struct Choice {
  TokenId token{};
  const Draw* draw = nullptr;
};

// A request and what it has emitted so far.
class LaneRun {
 public:
  // `input` outlives the lane.
  LaneRun(Lane lane, const LaneInput& input);
  LaneRun(LaneRun&&) = default;
  LaneRun& operator=(LaneRun&&) = default;

  // Loads the model and makes the caches.
  [[nodiscard]] Result<void> open(BackendFactory& factory, TapLevel taps, std::int64_t steps);
  // Goes on from `other`'s caches: a copy, or (adopt) the caches themselves.
  [[nodiscard]] Result<void> fork_from(const LaneRun& other);
  void adopt(LaneRun& other);

  // The row after everything emitted so far.
  [[nodiscard]] Result<StepOutput> forward(const std::stop_token& stop);
  // What this lane would emit after that row. With seed_scope request the number of the draw is
  // that of the step; with shared_worker the row's own in the stream of all requests in flight.
  [[nodiscard]] Choice choose(const StepOutput& output);
  // Delivers the record of this step and appends `emitted`.
  [[nodiscard]] Result<void> deliver(TraceSink& sink, const StepOutput& output,
                                     const Choice& choice, TokenId emitted);
  // Ends a free lane if its last token or its length says so.
  void check_end(std::int64_t steps, const DecodeText& decode_text);
  // No room for the last token: the lane ends.
  [[nodiscard]] bool context_is_full() const;
  void end(StopReason reason);

  [[nodiscard]] bool ended() const { return m_ended; }
  [[nodiscard]] std::int64_t steps_done() const {
    return static_cast<std::int64_t>(m_emitted.size());
  }
  [[nodiscard]] const std::vector<TokenId>& emitted() const { return m_emitted; }
  [[nodiscard]] const LaneInput& input() const { return *m_input; }
  [[nodiscard]] BatchEngine& engine() { return *m_engine; }
  [[nodiscard]] StopReason reason() const { return m_summary.stop; }
  [[nodiscard]] LaneSummary summary() const;

 private:
  [[nodiscard]] bool is_stop_token(TokenId token) const;
  [[nodiscard]] bool has_stop_string(const DecodeText& decode_text) const;
  [[nodiscard]] Result<StepOutput> recompute(const std::stop_token& stop);

  const LaneInput* m_input = nullptr;
  std::unique_ptr<BatchEngine> m_engine;
  std::shared_ptr<Backend> m_backend;
  Sampler m_sampler;
  std::vector<TokenId> m_emitted;
  std::vector<TokenId> m_sequence;  // prompt and emitted, for recomputing
  LaneSummary m_summary;
  bool m_ended = false;
};

}  // namespace driftscope
