// SPDX-License-Identifier: Apache-2.0
// The scalar definition: the oracle of the other variants.
#include <cmath>

#include "kernels/activation/activation_rows.h"
#include "kernels/plan/portable_math.h"
#include "kernels/plan/soft_cap.h"

namespace driftscope {
namespace {

float activated(ActivationKind kind, float x) {
  switch (kind) {
    case ActivationKind::gelu_tanh: {
      const float inner = std::fma(kGeluCube, x * x * x, x);
      return (0.5F * x) * (1.0F + portable::tanh(kGeluRoot * inner));
    }
    case ActivationKind::gelu_erf:
      return (0.5F * x) * (1.0F + portable::erf(x * kRootHalf));
    case ActivationKind::silu:
    case ActivationKind::clamped_silu:  // has a form of its own
      break;
  }
  return x / (1.0F + portable::exp(-x));
}

float clamped(const SwigluPiece& piece, float gate, float up) {
  const auto step = [&](float value) { return round_to(piece.silu_dtype, value); };
  const float limit = piece.limit;
  gate = gate > limit ? limit : gate;
  up = up > limit ? limit : up;
  up = up < -limit ? -limit : up;
  const float scaled = step(kClampedAlpha * gate);
  const float sigmoid = step(1.0F / (1.0F + portable::exp(-scaled)));
  return step(up + 1.0F) * step(gate * sigmoid);
}

float value_at(const SwigluPiece& piece, std::int64_t i) {
  if (piece.kind == ActivationKind::clamped_silu) {
    return clamped(piece, piece.gate[i], piece.up[i]);
  }
  const float value = round_to(piece.silu_dtype, activated(piece.kind, piece.gate[i]));
  return piece.up == nullptr ? value : value * piece.up[i];
}

}  // namespace

void swiglu_piece_scalar(const SwigluPiece& piece) {
  for (std::int64_t i = 0; i < piece.count; ++i) {
    piece.y[i] = canonical_nan(round_to(piece.output_dtype, value_at(piece, i)));
  }
}

void soft_cap_piece_scalar(const SoftCapArguments& piece) {
  for (std::int64_t i = 0; i < piece.count; ++i) {
    piece.x[i] =
        canonical_nan(soft_capped(piece.x[i], piece.cap, piece.step_dtype, piece.output_dtype));
  }
}

}  // namespace driftscope
