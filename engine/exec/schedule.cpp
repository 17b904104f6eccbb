// SPDX-License-Identifier: Apache-2.0
#include "engine/exec/schedule.h"

#include <algorithm>

namespace driftscope {

Schedule::Schedule(const RunConfig& config)
    : m_position(std::max<std::int64_t>(config.batch_position, 0)),
      m_arrival(config.arrival_order),
      m_neighbour_steps(config.neighbour_steps),
      m_prompt_rows(config.prefill_chunk),
      m_draft_tokens(config.speculative_tokens),
      m_graph_sizes(config.graph_sizes) {
  std::sort(m_graph_sizes.begin(), m_graph_sizes.end());
}

std::size_t Schedule::target_place(std::size_t neighbours) const {
  return std::min(static_cast<std::size_t>(m_position), neighbours);
}

bool Schedule::takes_part(std::size_t neighbour, std::int64_t turn) const {
  const auto index = static_cast<std::int64_t>(neighbour);
  if (m_arrival == ArrivalOrder::first && turn <= index) return false;
  return m_neighbour_steps == 0 || turn <= m_neighbour_steps + index;
}

bool Schedule::neighbours_come_first() const { return m_arrival == ArrivalOrder::last; }

std::int64_t Schedule::padded_rows(std::int64_t rows) const {
  const auto size = std::lower_bound(m_graph_sizes.begin(), m_graph_sizes.end(), rows);
  return size == m_graph_sizes.end() ? rows : *size;
}

}  // namespace driftscope
