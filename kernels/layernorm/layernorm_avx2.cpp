// SPDX-License-Identifier: Apache-2.0
#include "kernels/layernorm/layernorm_simd.h"

#if defined(__AVX2__)

namespace driftscope {

void layernorm_rows_avx2(const LayerNormArguments& arguments, std::int64_t begin,
                         std::int64_t end) {
  simd::layernorm_rows(arguments, begin, end);
}

}  // namespace driftscope

#endif
