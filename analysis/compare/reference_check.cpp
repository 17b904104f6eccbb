// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/reference_check.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>

namespace driftscope {

StoredRowPointer& ReferenceCheck::Rows::of(Lane lane) {
  if (lane == Lane::a) return a;
  if (lane == Lane::b_forced) return forced;
  assert(lane == Lane::reference || lane == Lane::reference_b);
  return lane == Lane::reference ? reference : reference_b;
}

bool ReferenceCheck::complete(const Rows& rows) const {
  return rows.a && rows.forced && rows.reference &&
         (rows.reference_b || m_expected != References::of_each_side);
}

std::optional<ReferenceErrors> ReferenceCheck::accept(Lane lane, std::int64_t step,
                                                      const StoredRowPointer& row) {
  if (m_expected == References::none) return std::nullopt;
  Rows& rows = m_waiting[step];
  rows.of(lane) = row;
  if (!complete(rows)) {
    // A lane that has ended sends nothing more.
    for (const Lane ended : m_ended) {
      if (rows.of(ended) == nullptr) {
        m_waiting.erase(step);
        break;
      }
    }
    return std::nullopt;
  }
  const bool own = m_expected == References::of_each_side;
  const std::vector<float>& reference_a = rows.reference->logits;
  const std::vector<float>& reference_b = own ? rows.reference_b->logits : reference_a;
  ReferenceErrors errors{.step = step,
                         .a = row_distance(reference_a, rows.a->logits),
                         .b = row_distance(reference_b, rows.forced->logits),
                         .weights = {}};
  if (own) errors.weights = row_distance(reference_a, reference_b);
  m_waiting.erase(step);
  return errors;
}

void ReferenceCheck::stop_waiting(Lane lane) {
  m_ended.push_back(lane);
  for (auto entry = m_waiting.begin(); entry != m_waiting.end();) {
    entry = entry->second.of(lane) == nullptr ? m_waiting.erase(entry) : std::next(entry);
  }
}

std::size_t ReferenceCheck::rows_waiting() const {
  std::size_t count = 0;
  for (const auto& [step, rows] : m_waiting) {
    for (const auto* row : {&rows.a, &rows.forced, &rows.reference, &rows.reference_b}) {
      count += static_cast<std::size_t>(*row != nullptr);
    }
  }
  return count;
}

double noise_envelope(double error_a, double error_b, double relative_a, double relative_b) {
  constexpr double kMostApart = 4.0;
  const double ratio = relative_b / relative_a;
  if (!(ratio >= 1.0 / kMostApart && ratio <= kMostApart)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double from_a = error_a * std::sqrt(1.0 + ratio * ratio);
  const double from_b = error_b * std::sqrt(1.0 + 1.0 / (ratio * ratio));
  return std::fmin(from_a, from_b);
}

}  // namespace driftscope
