// SPDX-License-Identifier: Apache-2.0
// Compares what the routers of a mixture of experts chose in different lanes.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/compare/comparison.h"
#include "engine/trace/trace.h"
#include "kernels/base/result.h"

namespace driftscope {

// Rows of one lane come in order; lanes may come in any order. Keeps the ids, margins and tokens of
// every step (a few bytes per layer and expert).
class RouteTracker {
 public:
  // A spec without layers: nothing is tracked.
  explicit RouteTracker(RouteSpec spec);
  // Errors: malformed (routes of another size than the spec's).
  [[nodiscard]] Result<void> accept(const StepRecord& record);
  [[nodiscard]] const RouteComparison& result() const { return m_result; }

 private:
  struct LaneRoutes {
    std::vector<std::int32_t> ids;  // [steps, layers, chosen]
    std::vector<float> margins;     // [steps, layers]
    std::vector<TokenId> emitted;   // [steps]
    [[nodiscard]] std::size_t steps() const { return emitted.size(); }
  };
  void compare_step(std::size_t step, const LaneRoutes& other, std::vector<RouteFlip>& flips) const;
  void advance_forced();
  void advance_free();

  LaneRoutes m_a, m_forced, m_free;
  std::size_t m_forced_steps = 0;  // compared so far
  std::size_t m_free_steps = 0;
  bool m_parted = false;  // the free lanes have emitted different tokens
  RouteComparison m_result;
};

}  // namespace driftscope
