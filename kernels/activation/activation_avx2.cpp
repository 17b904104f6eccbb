// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation_simd.h"

#if defined(__AVX2__)

namespace driftscope {

void swiglu_piece_avx2(const SwigluPiece& piece) { simd::swiglu_piece(piece); }
void soft_cap_piece_avx2(const SoftCapArguments& piece) { simd::soft_cap_piece(piece); }

}  // namespace driftscope

#endif
