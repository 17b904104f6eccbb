// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation_simd.h"

#if defined(__AVX512F__)

namespace driftscope {

void swiglu_piece_avx512(const SwigluPiece& piece) { simd::swiglu_piece(piece); }
void soft_cap_piece_avx512(const SoftCapArguments& piece) { simd::soft_cap_piece(piece); }

}  // namespace driftscope

#endif
