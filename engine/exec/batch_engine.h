// SPDX-License-Identifier: Apache-2.0
// One request among others in flight: how its rows are grouped into forward calls.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/config/run_config.h"
#include "engine/trace/trace.h"

namespace driftscope {

// A row of the target sequence. Spans are valid until the engine's next call.
struct StepOutput {
  std::span<const float> logits;  // [vocabulary]
  std::span<const TensorTap> taps;
  std::int64_t timing_ns = 0;  // of the forward calls, logits included
  RouteRow routes = {};
};

// Receives rows of the target in rising position; `row` is the position.
using RowFunction = std::function<Result<void>(std::int64_t row, const StepOutput& output)>;

// The batch: the target at place batch_position (clamped to [0, neighbours]) among the neighbours
// in their order. Prompts go in together, all rows of a call in batch order, prefill_chunk rows a
// call (0: one call); decoding starts when all prompts are in. In a decode step every sequence has
// one row, so M is 1 + neighbours throughout: neighbours decode greedily, never stop, and one that
// has filled the context goes back to the last token of its prompt. With prefix_cache warm the
// target's largest prefix that is a multiple of 16 tokens and shorter than its prompt is computed
// beforehand in a call of its own (by an earlier request).
class BatchEngine {
 public:
  [[nodiscard]] static Result<std::unique_ptr<BatchEngine>> create(
      std::shared_ptr<Backend> backend, const RunConfig& config,
      std::vector<std::vector<TokenId>> neighbour_prompts, TapLevel taps,
      std::int64_t expected_tokens);

  // Starts: the prompts of the target and of all neighbours. Gives the row of the last prompt
  // token.
  [[nodiscard]] Result<StepOutput> prefill(std::span<const TokenId> prompt,
                                           const std::stop_token& stop);
  // Feeds one token to the target and each neighbour.
  [[nodiscard]] Result<StepOutput> decode(TokenId token, const std::stop_token& stop);
  // One pass over the whole sequence and the neighbours' prompts, from empty caches;
  // `on_row` gets the last `rows` positions. A call's time stands at its first row.
  [[nodiscard]] Result<void> score(std::span<const TokenId> sequence, std::int64_t rows,
                                   const std::stop_token& stop, const RowFunction& on_row);

  // The last position only, kept like the row of a step, with the time of the whole pass.
  [[nodiscard]] Result<StepOutput> score_last(std::span<const TokenId> sequence,
                                              const std::stop_token& stop);

  // The same state once more, sharing the backend: its calls must not overlap with this one's.
  [[nodiscard]] Result<std::unique_ptr<BatchEngine>> fork() const;
  [[nodiscard]] const Backend& backend() const { return *m_backend; }

 private:
  struct Neighbour {
    std::vector<TokenId> prompt;
    std::unique_ptr<KvCache> cache;
    TokenId next{};
  };
  // What is still to be put in of one sequence.
  struct Pending {
    KvCache* cache = nullptr;
    std::span<const TokenId> tokens;
    std::int64_t output_rows = 0;    // of the last tokens
    Neighbour* neighbour = nullptr;  // null: the target
  };

  BatchEngine(std::shared_ptr<Backend> backend, const RunConfig& config, TapLevel taps);
  [[nodiscard]] std::size_t target_place() const;
  void clear_caches();
  [[nodiscard]] Result<std::size_t> warm_prefix(std::span<const TokenId> prompt,
                                                const std::stop_token& stop);
  // Queues the target's tokens and each neighbour's (chosen by `tokens_of`) in batch order.
  template <class TokensOf>
  void queue(std::span<const TokenId> target, std::int64_t target_rows, TokensOf tokens_of);
  void queue_prompts(std::span<const TokenId> target, std::int64_t target_rows);
  // Runs what is queued, at most `rows_per_call` rows a call (0: all in one).
  [[nodiscard]] Result<void> run_queue(Phase phase, std::int64_t rows_per_call,
                                       const std::stop_token& stop, const RowFunction& on_row);
  void fill_call(std::int64_t rows_per_call);
  [[nodiscard]] Result<void> read_outputs(const RowFunction& on_row);
  [[nodiscard]] Result<StepOutput> run_step(Phase phase, std::int64_t rows_per_call,
                                            const std::stop_token& stop);
  void keep_row(const StepOutput& output);

  std::shared_ptr<Backend> m_backend;
  RunConfig m_config;
  TapLevel m_tap_level = TapLevel::logits;
  std::unique_ptr<KvCache> m_cache;
  std::vector<Neighbour> m_neighbours;

  // Reused from call to call.
  std::vector<Pending> m_queue;
  std::size_t m_queue_head = 0;
  std::vector<BatchSequence> m_call;
  std::vector<Neighbour*> m_call_neighbours;  // [sequences of the call]; null: the target
  std::int64_t m_clock_ns = 0;                // where the time of the next row begins
  std::vector<float> m_row_logits;            // the target's row, kept
  std::vector<float> m_row_tap_values;
  std::vector<TensorTap> m_row_taps;
  StoredRoutes m_row_routes;
};

}  // namespace driftscope
