// SPDX-License-Identifier: GPL-3.0-or-later
// A logarithmic scale for quantities from 0 to infinity that hides nothing: zeros stand on a rail
// of their own below the smallest decade, NaN and infinities on a rail above the largest.
#pragma once

#include <QString>
#include <vector>

#include "ui/models/series.h"

namespace driftscope::ui {

struct ScaleTick {
  double coordinate = 0.0;
  QString label;
};

class RailScale {
 public:
  // Fits the decades of all finite, non-zero sizes in the series; without any: 1e-6 … 1.
  explicit RailScale(const std::vector<const StepValues*>& series);
  // Widens the decades by a series whose undefined (NaN) values are not worth a mark.
  void include(const StepValues& values);
  // Something will stand on the rail of NaN and infinities.
  void note_non_finite() { m_has_non_finite = true; }
  // log10 of the size, or the coordinate of a rail. Sizes below the lowest decade (which the fit
  // excludes) would stand at its edge.
  [[nodiscard]] double coordinate(double value) const;
  [[nodiscard]] double zero_rail() const { return m_low - 0.8; }
  [[nodiscard]] double non_finite_rail() const { return m_high + 0.7; }
  [[nodiscard]] bool has_zero() const { return m_has_zero; }
  [[nodiscard]] bool has_non_finite() const { return m_has_non_finite; }
  // The range that the axis should show: rails only where something stands on them.
  [[nodiscard]] double lower() const { return m_has_zero ? m_low - 1.2 : m_low - 0.15; }
  [[nodiscard]] double upper() const { return m_has_non_finite ? m_high + 1.1 : m_high + 0.15; }
  // "10⁻³" at decades (thinned out to about `wanted`), "= 0" and "NaN ∞" at the rails.
  [[nodiscard]] std::vector<ScaleTick> ticks(int wanted = 5) const;

 private:
  void fit_decades();
  double m_smallest = 0.0;  // finite and non-zero; 0: none yet
  double m_largest = 0.0;
  double m_low = -6.0;  // whole decades
  double m_high = 0.0;
  bool m_has_zero = false;
  bool m_has_non_finite = false;
};

// Linear within ±threshold, logarithmic in decades beyond, odd: sign(x) log10(1 + |x| / threshold).
[[nodiscard]] double symlog(double value, double threshold);

}  // namespace driftscope::ui
