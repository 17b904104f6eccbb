// SPDX-License-Identifier: Apache-2.0
// The scalar definition: the oracle of the other variants.
#include "kernels/activation/activation_rows.h"
#include "kernels/plan/portable_math.h"

namespace driftscope {

void swiglu_piece_scalar(const SwigluPiece& piece) {
  for (std::int64_t i = 0; i < piece.count; ++i) {
    const float gate = piece.gate[i];
    const float silu = round_to(piece.silu_dtype, gate / (1.0F + portable::exp(-gate)));
    piece.y[i] = canonical_nan(round_to(piece.output_dtype, silu * piece.up[i]));
  }
}

}  // namespace driftscope
