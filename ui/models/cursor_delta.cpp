// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/cursor_delta.h"

#include <QStringList>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "ui/models/fitting_words.h"
#include "ui/models/navigation.h"
#include "ui/models/series.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

constexpr std::array kDeltaMetrics{
    std::pair{"max_abs", "largest"}, std::pair{"centred_rms", "centred RMS"},
    std::pair{"margin_a", "margin A"}, std::pair{"margin_b", "margin B"}};

QString value_or_dash(double value) {
  return std::isnan(value) ? QStringLiteral("–") : short_number(value, 3);
}

}  // namespace

QString cursor_delta_text(const Comparison& comparison, std::int64_t from, std::int64_t to) {
  const StepComparison* first = step_at(comparison, from);
  const StepComparison* last = step_at(comparison, to);
  if (first == nullptr || last == nullptr) return {};
  QStringList parts;
  for (const auto& [metric, title] : kDeltaMetrics) {
    // Of lists only margins are known.
    if (comparison.listed() && !std::string_view(metric).starts_with("margin")) continue;
    const double x = metric_value(*first, metric);
    const double y = metric_value(*last, metric);
    QString part =
        QStringLiteral("%1 %2 → %3").arg(QLatin1String(title), value_or_dash(x), value_or_dash(y));
    if (std::isfinite(x) && std::isfinite(y)) {
      part += QStringLiteral(" (%1%2)").arg(y >= x ? QStringLiteral("+") : QString(),
                                            short_number(y - x, 3));
    }
    parts << part;
  }
  return QStringLiteral("steps %1 → %2 (Δ %3): %4 %5")
      .arg(from)
      .arg(to)
      .arg(to - from)
      .arg(parts.join(QStringLiteral(", ")), fitting_unit(&comparison));
}

}  // namespace driftscope::ui
