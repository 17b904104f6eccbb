// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention_simd.h"

#if defined(__AVX2__)

namespace driftscope {

const AttentionVector& attention_vector_avx2() { return simd::kAttentionVector; }

}  // namespace driftscope

#endif
