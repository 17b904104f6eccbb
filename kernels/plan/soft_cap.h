// SPDX-License-Identifier: Apache-2.0
// Soft capping (Gemma 2): cap · tanh(x / cap), the identity near 0 and never beyond ±cap.
#pragma once

#include "kernels/plan/dtype.h"
#include "kernels/plan/portable_math.h"

namespace driftscope {

// In the steps in which transformers writes it: the quotient and the tanh are rounded to `step`,
// the product to `last`. Vector form: portable_curve_simd.h.
[[nodiscard]] inline float soft_capped(float x, float cap, Dtype step, Dtype last) {
  return round_to(last, round_to(step, portable::tanh(round_to(step, x / cap))) * cap);
}

}  // namespace driftscope
