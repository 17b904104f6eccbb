// SPDX-License-Identifier: Apache-2.0
// Internal: cuts a matmul into tasks and chooses between the fast paths and the general one.
#pragma once

#include "kernels/base/parallel.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/matmul_kernels.h"

namespace driftscope::matmul_detail {

// `fast` serves f32, bf16 and f16 accumulators with lanes that are 1, 2, 4 (or, with vectors of 8,
// also 8) vectors; every other plan goes through `general`.
void run_matmul(const MatmulArguments& arguments, const MatmulKernels& fast,
                const MatmulKernels& general, Parallel& parallel);

}  // namespace driftscope::matmul_detail
