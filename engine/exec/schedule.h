// SPDX-License-Identifier: Apache-2.0
// Which requests are in flight when: the batch part of a configuration as a timetable.
//
// The target is the request under test; neighbour i is one of config.neighbours others. A call is
// one forward pass. Its rows, in batch order (the target at place batch_position among the
// neighbours), are
//  - of each request whose prompt is in: its last token, and behind it speculative_tokens drafts;
//  - of the requests whose prompt is not in: the next prompt rows, in batch order, at most
//    prefill_chunk of them a call (0: all). Decode rows do not count towards prefill_chunk.
// So prompt chunks of some run beside decode rows of others, as continuous batching does.
//
// Turns count calls from the target's side: turn 0 is the target's prompt (one call, or several
// with prefill_chunk), turn t >= 1 its t-th decode call. Without speculation turn t gives the
// logits of step t.
//  arrival_order together  all prompts arrive before the first call
//                first     neighbour i arrives at turn i + 1; the target runs alone until then
//                last      the neighbours' prompts are put in by calls before turn 0 (those that
//                          are in decode meanwhile); then the target arrives
//  neighbour_steps n > 0   neighbour i takes part up to turn n + i and is gone from turn n + 1 + i
//                          on: they leave one per turn, and with `first` each stays for n turns
// A neighbour decodes its own continuation, never stops, and when it has filled the context goes
// back to the last token of its prompt.
//  graph_sizes             a call without prompt rows is padded up to the smallest size that holds
//                          its rows; beyond the largest size it is not padded
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/config/run_config.h"

namespace driftscope {

class Schedule {
 public:
  explicit Schedule(const RunConfig& config);
  // The target's place in the batch: batch_position clamped to [0, neighbours].
  [[nodiscard]] std::size_t target_place(std::size_t neighbours) const;
  [[nodiscard]] bool takes_part(std::size_t neighbour, std::int64_t turn) const;
  // The neighbours' prompts go in before the target arrives.
  [[nodiscard]] bool neighbours_come_first() const;
  // Prompt rows of one call at most; 0: no limit.
  [[nodiscard]] std::int64_t prompt_rows_per_call() const { return m_prompt_rows; }
  [[nodiscard]] std::int64_t draft_tokens() const { return m_draft_tokens; }
  // Rows of a decode call with `rows` real ones, padding included.
  [[nodiscard]] std::int64_t padded_rows(std::int64_t rows) const;

 private:
  std::int64_t m_position = 0;
  ArrivalOrder m_arrival = ArrivalOrder::together;
  std::int64_t m_neighbour_steps = 0;
  std::int64_t m_prompt_rows = 0;
  std::int64_t m_draft_tokens = 0;
  std::vector<std::int32_t> m_graph_sizes;  // rising
};

}  // namespace driftscope
