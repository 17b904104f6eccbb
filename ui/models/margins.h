// SPDX-License-Identifier: GPL-3.0-or-later
// Margins of both sides and the pull that could close A's.
#pragma once

#include "ui/models/series.h"

namespace driftscope::ui {

struct MarginSeries {
  StepValues margin_a;  // logit
  StepValues margin_b;  // logit
  // margin_a / headroom: the largest drift of a rival towards the top token, in logits. Where it
  // reaches margin_a (headroom below 1) a flip is possible. 0 where headroom is infinite.
  StepValues pull;
  StepValues headroom;
};
[[nodiscard]] MarginSeries margin_series(const Comparison& comparison);

}  // namespace driftscope::ui
