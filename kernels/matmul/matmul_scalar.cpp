// SPDX-License-Identifier: Apache-2.0
// The definition, one output at a time: slow without hardware fma, exact everywhere.
#include "kernels/matmul/matmul_generic.h"

namespace driftscope::matmul_detail {

const MatmulKernels kScalarKernels = {
    .vector_width = 0,
    .tile_rows = 0,
    .tile_outputs = 0,
    .direct = nullptr,
    .pack = nullptr,
    .gemm = nullptr,
    .generic = run_generic,
};

}  // namespace driftscope::matmul_detail
