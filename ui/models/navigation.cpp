// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/navigation.h"

#include <algorithm>

namespace driftscope::ui {

std::optional<std::int64_t> next_flip(const Comparison& comparison, std::int64_t step) {
  for (const auto& row : comparison.steps) {
    if (row->flipped && row->step > step) return row->step;
  }
  return std::nullopt;
}

std::optional<std::int64_t> previous_flip(const Comparison& comparison, std::int64_t step) {
  for (auto row = comparison.steps.rbegin(); row != comparison.steps.rend(); ++row) {
    if ((*row)->flipped && (*row)->step < step) return (*row)->step;
  }
  return std::nullopt;
}

std::optional<std::int64_t> first_difference(const Comparison& comparison) {
  if (comparison.first_divergence) return comparison.first_divergence->step;
  if (comparison.first_flip) return comparison.first_flip->step;
  return std::nullopt;
}

std::int64_t step_count(const Comparison& comparison) {
  std::size_t count = comparison.steps.size();
  for (const LaneView& lane : comparison.lanes) {
    if (lane.lane == Lane::a || lane.lane == Lane::b) count = std::max(count, lane.tokens.size());
  }
  return static_cast<std::int64_t>(count);
}

std::int64_t initial_step(const Comparison& comparison) {
  return first_difference(comparison).value_or(0);
}

const StepComparison* step_at(const Comparison& comparison, std::int64_t step) {
  if (step < 0 || step >= static_cast<std::int64_t>(comparison.steps.size())) return nullptr;
  return comparison.steps[static_cast<std::size_t>(step)].get();
}

const LaneView* lane_view(const Comparison& comparison, Lane lane) {
  const auto found = std::find_if(comparison.lanes.begin(), comparison.lanes.end(),
                                  [lane](const LaneView& view) { return view.lane == lane; });
  return found == comparison.lanes.end() ? nullptr : &*found;
}

}  // namespace driftscope::ui
