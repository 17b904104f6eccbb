// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope/rope_simd.h"

#if defined(__AVX2__)

namespace driftscope {

void rope_rows_avx2(const RopeArguments& arguments, std::int64_t begin, std::int64_t end) {
  simd::rope_rows(arguments, begin, end);
}

}  // namespace driftscope

#endif
