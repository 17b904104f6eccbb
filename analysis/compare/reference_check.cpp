// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/reference_check.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>

#include "analysis/metrics/metric.h"

namespace driftscope {

StoredRowPointer& ReferenceCheck::Trio::of(Lane lane) {
  assert(lane == Lane::a || lane == Lane::b_forced || lane == Lane::reference);
  if (lane == Lane::a) return a;
  return lane == Lane::b_forced ? forced : reference;
}

std::optional<ReferenceErrors> ReferenceCheck::accept(Lane lane, std::int64_t step,
                                                      const StoredRowPointer& row) {
  if (!m_expected) return std::nullopt;
  Trio& trio = m_waiting[step];
  trio.of(lane) = row;
  if (!trio.complete()) {
    // A lane that has ended sends nothing more.
    for (const Lane ended : m_ended) {
      if (trio.of(ended) == nullptr) {
        m_waiting.erase(step);
        break;
      }
    }
    return std::nullopt;
  }
  const ReferenceErrors errors{.step = step,
                               .error_a = centred_rms(trio.reference->logits, trio.a->logits),
                               .error_b = centred_rms(trio.reference->logits, trio.forced->logits)};
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
  std::size_t rows = 0;
  for (const auto& [step, trio] : m_waiting) {
    rows += static_cast<std::size_t>(trio.a != nullptr) +
            static_cast<std::size_t>(trio.forced != nullptr) +
            static_cast<std::size_t>(trio.reference != nullptr);
  }
  return rows;
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
