// SPDX-License-Identifier: Apache-2.0
// Internal: QuantFormat::int8_dynamic, integer products of quantised rows.
#pragma once

#include "kernels/base/parallel.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/matmul_kernels.h"

namespace driftscope::matmul_detail {

// The arithmetic is described with MatmulArguments.
void run_int8(const MatmulArguments& arguments, void (*tile)(const Int8Job&), Parallel& parallel);

}  // namespace driftscope::matmul_detail
