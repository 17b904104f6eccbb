// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/margins.h"

#include <cmath>
#include <limits>

namespace driftscope::ui {

MarginSeries margin_series(const Comparison& comparison) {
  MarginSeries series{.margin_a = metric_values(comparison, "margin_a"),
                      .margin_b = metric_values(comparison, "margin_b"),
                      .pull = {},
                      .headroom = metric_values(comparison, "headroom")};
  series.pull.reserve(series.headroom.size());
  for (std::size_t i = 0; i < series.headroom.size(); ++i) {
    const double headroom = series.headroom[i];
    if (std::isinf(headroom)) {
      series.pull.push_back(0.0);
    } else if (headroom > 0.0) {
      series.pull.push_back(series.margin_a[i] / headroom);
    } else {
      series.pull.push_back(std::numeric_limits<double>::quiet_NaN());
    }
  }
  return series;
}

}  // namespace driftscope::ui
