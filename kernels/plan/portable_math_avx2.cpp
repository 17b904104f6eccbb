// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan/portable_math_functions.h"

namespace driftscope::portable {
const MathTable kMathAvx2 = kMathTable;
}  // namespace driftscope::portable
