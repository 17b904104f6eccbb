// SPDX-License-Identifier: Apache-2.0
// How far A and B are from exact arithmetic: each against the rows of its reference lane.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "analysis/compare/row_pairing.h"
#include "analysis/metrics/metric.h"

namespace driftscope {

// Of one step.
struct ReferenceErrors {
  std::int64_t step = 0;
  RowDistance a;
  RowDistance b;  // of the lane that is fed A's tokens, like the references
  // Between the references of the two checkpoints; empty where there is one for both sides.
  std::optional<RowDistance> weights;
};

// Which references will come.
enum class References : std::uint8_t { none, shared, of_each_side };

// Keeps rows until all of a step are there. Where no reference lane will come it keeps none.
class ReferenceCheck {
 public:
  explicit ReferenceCheck(References expected) : m_expected(expected) {}
  // The errors of the step that became complete with this row.
  [[nodiscard]] std::optional<ReferenceErrors> accept(Lane lane, std::int64_t step,
                                                      const StoredRowPointer& row);
  // No more rows of this lane: steps that wait for one are let go.
  void stop_waiting(Lane lane);
  [[nodiscard]] std::size_t rows_waiting() const;

 private:
  struct Rows {
    StoredRowPointer a;
    StoredRowPointer forced;
    StoredRowPointer reference;
    StoredRowPointer reference_b;  // References::of_each_side
    [[nodiscard]] StoredRowPointer& of(Lane lane);
  };
  [[nodiscard]] bool complete(const Rows& rows) const;
  References m_expected;
  std::vector<Lane> m_ended;
  std::map<std::int64_t, Rows> m_waiting;
};

// Expected size of the rounding part of a drift, from the errors of both sides.
//
// If both computations only round, a drift is about sqrt(error_a^2 + error_b^2). A fault of one
// side would hide in its own error, so each side's error is also predicted from the other's, times
// the ratio of what the derivation of the rounding bound expects of the two (its constants cancel
// in the ratio). The smaller of the two predictions is the envelope: a fault does not widen it.
//   from A: error_a * sqrt(1 + r^2), from B: error_b * sqrt(1 + 1 / r^2), r = relative_b /
//   relative_a
// Known only where r is within [1/4, 4]: beyond that the derivation is too coarse to predict one
// side from the other. NaN where it is not known.
[[nodiscard]] double noise_envelope(double error_a, double error_b, double relative_a,
                                    double relative_b);

}  // namespace driftscope
