// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/route_tracker.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace driftscope {
namespace {

// Sorted ids that are in `from` and not in `other`.
std::vector<std::int32_t> missing_in(std::span<const std::int32_t> from,
                                     std::span<const std::int32_t> other) {
  std::vector<std::int32_t> ids;
  for (const std::int32_t id : from) {
    if (std::find(other.begin(), other.end(), id) == other.end()) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

RouteTracker::RouteTracker(RouteSpec spec) { m_result.spec = std::move(spec); }

Result<void> RouteTracker::accept(const StepRecord& record) {
  if (m_result.spec.layers.empty()) return {};
  LaneRoutes* lane = record.lane == Lane::a          ? &m_a
                     : record.lane == Lane::b_forced ? &m_forced
                     : record.lane == Lane::b        ? &m_free
                                                     : nullptr;
  if (lane == nullptr) return {};
  const RouteRow& routes = record.routes;
  if (routes.experts.size() != m_result.spec.ids() ||
      routes.margins.size() != m_result.spec.decisions()) {
    return fail(ErrorKind::malformed,
                fmt::format("lane {}, step {}: routes of {} experts where {} were due",
                            lane_name(record.lane), record.step, routes.experts.size(),
                            m_result.spec.ids()));
  }
  lane->ids.insert(lane->ids.end(), routes.experts.begin(), routes.experts.end());
  lane->margins.insert(lane->margins.end(), routes.margins.begin(), routes.margins.end());
  lane->emitted.push_back(record.emitted);
  advance_forced();
  advance_free();
  return {};
}

// Which experts a row goes to is what counts: their order by weight changes no sum.
void RouteTracker::compare_step(std::size_t step, const LaneRoutes& other,
                                std::vector<RouteFlip>& flips) const {
  const RouteSpec& spec = m_result.spec;
  const auto chosen = static_cast<std::size_t>(spec.chosen);
  for (std::size_t i = 0; i < spec.decisions(); ++i) {
    const std::size_t decision = step * spec.decisions() + i;
    const auto ids_a = std::span(m_a.ids).subspan(decision * chosen, chosen);
    const auto ids_b = std::span(other.ids).subspan(decision * chosen, chosen);
    std::vector<std::int32_t> only_a = missing_in(ids_a, ids_b);
    if (only_a.empty()) continue;
    flips.push_back({.step = static_cast<std::int64_t>(step),
                     .layer = spec.layers[i],
                     .only_a = std::move(only_a),
                     .only_b = missing_in(ids_b, ids_a),
                     .margin_a = double{m_a.margins[decision]},
                     .margin_b = double{other.margins[decision]}});
  }
}

void RouteTracker::advance_forced() {
  for (; m_forced_steps < std::min(m_a.steps(), m_forced.steps()); ++m_forced_steps) {
    compare_step(m_forced_steps, m_forced, m_result.flips);
    m_result.decisions += static_cast<std::int64_t>(m_result.spec.decisions());
  }
}

// The row of a step is computed from the tokens before it.
void RouteTracker::advance_free() {
  for (; m_free_steps < std::min(m_a.steps(), m_free.steps()) && !m_parted; ++m_free_steps) {
    compare_step(m_free_steps, m_free, m_result.flips_free);
    m_result.decisions_free += static_cast<std::int64_t>(m_result.spec.decisions());
    m_parted = m_a.emitted[m_free_steps] != m_free.emitted[m_free_steps];
  }
}

}  // namespace driftscope
