// SPDX-License-Identifier: Apache-2.0
// One request among others in flight: runs the calls of the timetable (schedule.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/config/run_config.h"
#include "engine/exec/batch_call.h"
#include "engine/exec/request.h"
#include "engine/exec/sampler.h"
#include "engine/exec/schedule.h"
#include "engine/exec/step_output.h"
#include "engine/trace/trace.h"

namespace driftscope {

// Receives rows of the target in rising position; `row` is the position.
using RowFunction = std::function<Result<void>(std::int64_t row, const StepOutput& output)>;

// The target among its neighbours. Neighbours decode greedily; where the requests share one stream
// of random numbers (seed_scope shared_worker) and the temperature is above 0 they sample like the
// target. With prefix_cache warm the target's largest prefix that is a multiple of 16 tokens and
// shorter than its prompt is computed beforehand in a call of its own (by an earlier request).
//
// Speculation: a decode call of a request holds its last token and k drafts (drafter.h). A draft is
// accepted if it is the token that follows by the row before it; for the target that is the token
// that decode() is given next, so what is emitted never depends on the drafts but through the rows
// in flight. Rows behind the first rejected draft are thrown away and taken out of the cache.
class BatchEngine {
 public:
  [[nodiscard]] static Result<std::unique_ptr<BatchEngine>> create(
      std::shared_ptr<Backend> backend, const RunConfig& config,
      std::vector<std::vector<TokenId>> neighbour_prompts, TapLevel taps,
      std::int64_t expected_tokens);

  // Starts anew: the calls of turn 0, and those before it. Gives the row of the last prompt token.
  [[nodiscard]] Result<StepOutput> prefill(std::span<const TokenId> prompt,
                                           const std::stop_token& stop);
  // The row after one more token of the target: from the next call, or from a draft that this token
  // proves right.
  [[nodiscard]] Result<StepOutput> decode(TokenId token, const std::stop_token& stop);
  // One pass over the whole sequence and the neighbours' prompts, from empty caches, prefill_chunk
  // rows a call; arrival, leaving, padding and drafts have no part in it. `on_row` gets the last
  // `rows` positions. A call's time stands at its first row.
  [[nodiscard]] Result<void> score(std::span<const TokenId> sequence, std::int64_t rows,
                                   const std::stop_token& stop, const RowFunction& on_row);

  // The last position only, kept like the row of a step, with the time of the whole pass. The
  // stream of random numbers goes on from pass to pass.
  [[nodiscard]] Result<StepOutput> score_last(std::span<const TokenId> sequence,
                                              const std::stop_token& stop);

  // The same state once more, sharing the backend: its calls must not overlap with this one's.
  [[nodiscard]] Result<std::unique_ptr<BatchEngine>> fork() const;
  [[nodiscard]] const Backend& backend() const { return *m_backend; }

 private:
  BatchEngine(std::shared_ptr<Backend> backend, const RunConfig& config, TapLevel taps);
  void begin();
  void move_neighbours();
  [[nodiscard]] bool neighbours_prefill() const;
  [[nodiscard]] Result<void> warm_prefix(const std::stop_token& stop);
  [[nodiscard]] std::vector<Request*> in_flight();
  // Forward passes of `purpose` until the target's prompt is in.
  [[nodiscard]] Result<void> put_prompt_in(CallPurpose purpose, const std::stop_token& stop,
                                           const RowFunction& on_row);
  [[nodiscard]] Result<void> run_call(CallPurpose purpose, const std::stop_token& stop,
                                      const RowFunction& on_row);
  [[nodiscard]] Result<void> lay_out_call();
  [[nodiscard]] Result<void> read_outputs(const RowFunction& on_row);
  [[nodiscard]] Result<void> read_entry(const CallEntry& entry, std::int64_t first_row,
                                        const RowFunction& on_row);
  [[nodiscard]] Result<std::span<const float>> row_logits(std::int64_t row);
  [[nodiscard]] TokenId neighbour_choice(const Request& neighbour, std::span<const float> logits,
                                         std::uint64_t draw);
  [[nodiscard]] RowFunction keep_rows();
  [[nodiscard]] StepOutput serve_row(std::int64_t timing_ns);

  std::shared_ptr<Backend> m_backend;
  RunConfig m_config;
  Schedule m_schedule;
  TapLevel m_tap_level = TapLevel::logits;
  std::optional<Sampler> m_neighbour_sampler;
  Request m_target;
  std::vector<Request> m_neighbours;
  std::int64_t m_turn = 0;
  std::uint64_t m_draws = 0;  // numbers taken from the shared stream

  std::vector<KeptRow> m_rows;    // of the target, of its last call
  std::vector<TokenId> m_drafts;  // m_rows[i + 1] follows m_drafts[i]
  std::size_t m_served = 0;       // of m_rows

  // Reused from call to call.
  BatchCall m_call;
  std::vector<BatchSequence> m_sequences;
  std::vector<std::unique_ptr<KvCache>> m_padding_caches;
  std::span<const float> m_block;  // logits of rows m_block_first …
  std::int64_t m_block_first = 0;
  std::int64_t m_clock_ns = 0;  // where the time of the next row begins
};

}  // namespace driftscope
