// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/rail_scale.h"

#include <algorithm>
#include <cmath>

namespace driftscope::ui {

RailScale::RailScale(const std::vector<const StepValues*>& series) {
  for (const StepValues* values : series) {
    for (const double value : *values) {
      m_has_non_finite = m_has_non_finite || !std::isfinite(value);
    }
    include(*values);
  }
}

void RailScale::include(const StepValues& values) {
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const double size = std::abs(value);
    if (size == 0.0) {
      m_has_zero = true;
      continue;
    }
    m_smallest = m_smallest == 0.0 ? size : std::min(m_smallest, size);
    m_largest = std::max(m_largest, size);
  }
  fit_decades();
}

void RailScale::fit_decades() {
  if (m_largest == 0.0) return;
  m_low = std::floor(std::log10(m_smallest));
  m_high = std::max(std::ceil(std::log10(m_largest)), m_low + 1.0);
}

double RailScale::coordinate(double value) const {
  if (!std::isfinite(value)) return non_finite_rail();
  if (value == 0.0) return zero_rail();
  return std::clamp(std::log10(std::abs(value)), m_low, m_high);
}

namespace {

// "10⁻³": superscript digits, so that axes and tables can hold it as plain text.
QString power_of_ten(int exponent) {
  if (exponent >= -1 && exponent <= 3) return QString::number(std::pow(10.0, exponent));
  static const QString digits = QStringLiteral("⁰¹²³⁴⁵⁶⁷⁸⁹");
  QString text = QStringLiteral("10");
  for (const QChar character : QString::number(exponent)) {
    text += character == QLatin1Char('-') ? QChar(0x207B) : digits[character.digitValue()];
  }
  return text;
}

}  // namespace

std::vector<ScaleTick> RailScale::ticks(int wanted) const {
  std::vector<ScaleTick> result;
  if (m_has_zero) result.push_back({.coordinate = zero_rail(), .label = QStringLiteral("= 0")});
  const double decades = m_high - m_low;
  const double stride = std::max(1.0, std::ceil(decades / std::max(1, wanted)));
  for (double decade = m_low; decade <= m_high; decade += stride) {
    result.push_back({.coordinate = decade, .label = power_of_ten(static_cast<int>(decade))});
  }
  if (m_has_non_finite) {
    result.push_back({.coordinate = non_finite_rail(), .label = QStringLiteral("NaN, ∞")});
  }
  return result;
}

double symlog(double value, double threshold) {
  const double size = std::log10(1.0 + std::abs(value) / threshold);
  return std::copysign(size, value);
}

}  // namespace driftscope::ui
