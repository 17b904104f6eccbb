// SPDX-License-Identifier: Apache-2.0
// The vector form, compiled once for AVX2 and once for AVX-512.
#pragma once

#include "kernels/activation/activation_rows.h"
#include "kernels/plan/portable_curve_simd.h"

#if defined(__AVX2__) && defined(__FMA__)

namespace driftscope::simd {
namespace {

template <ActivationKind kind>
DRIFTSCOPE_INLINE Floats activated(Floats x) {
  const Floats one = all(1.0F);
  if constexpr (kind == ActivationKind::gelu_tanh) {
    const Floats inner = fma(all(kGeluCube), mul(mul(x, x), x), x);
    return mul(mul(all(0.5F), x), add(one, tanh(mul(all(kGeluRoot), inner))));
  } else if constexpr (kind == ActivationKind::gelu_erf) {
    return mul(mul(all(0.5F), x), add(one, erf(mul(x, all(kRootHalf)))));
  } else {
    return div(x, add(one, exp(negate(x))));
  }
}

DRIFTSCOPE_INLINE Floats clamped(const SwigluPiece& piece, Floats gate, Floats up) {
  const Dtype dtype = piece.silu_dtype;
  const Floats one = all(1.0F);
  const Floats limit = all(piece.limit);
  gate = at_most(gate, limit);
  up = at_least(at_most(up, limit), negate(limit));
  const Floats scaled = round(dtype, mul(all(kClampedAlpha), gate));
  const Floats sigmoid = round(dtype, div(one, add(one, exp(negate(scaled)))));
  return mul(round(dtype, add(up, one)), round(dtype, mul(gate, sigmoid)));
}

template <ActivationKind kind, bool gated>
DRIFTSCOPE_INLINE Floats piece_value(const SwigluPiece& piece, Floats gate, Floats up) {
  Floats value;
  if constexpr (kind == ActivationKind::clamped_silu) {
    value = clamped(piece, gate, up);
  } else {
    value = round(piece.silu_dtype, activated<kind>(gate));
    if constexpr (gated) value = mul(value, up);
  }
  return round_result(piece.output_dtype, value);
}

template <ActivationKind kind, bool gated>
void piece_of(const SwigluPiece& piece) {
  const float* up = gated ? piece.up : piece.gate;
  std::int64_t i = 0;
  for (; i + kWidth <= piece.count; i += kWidth) {
    store(piece.y + i, piece_value<kind, gated>(piece, load(piece.gate + i), load(up + i)));
  }
  if (i < piece.count) {
    const std::int64_t left = piece.count - i;
    const Floats last_gate = load_first(piece.gate + i, left, all(0.0F));
    const Floats last_up = load_first(up + i, left, all(0.0F));
    store_first(piece.y + i, left, piece_value<kind, gated>(piece, last_gate, last_up));
  }
}

template <ActivationKind kind>
void piece_of_kind(const SwigluPiece& piece) {
  return piece.up == nullptr ? piece_of<kind, false>(piece) : piece_of<kind, true>(piece);
}

void swiglu_piece(const SwigluPiece& piece) {
  switch (piece.kind) {
    case ActivationKind::silu:
      return piece_of_kind<ActivationKind::silu>(piece);
    case ActivationKind::gelu_tanh:
      return piece_of_kind<ActivationKind::gelu_tanh>(piece);
    case ActivationKind::gelu_erf:
      return piece_of_kind<ActivationKind::gelu_erf>(piece);
    case ActivationKind::clamped_silu:
      return piece_of<ActivationKind::clamped_silu, true>(piece);
  }
}

void soft_cap_piece(const SoftCapArguments& piece) {
  const auto capped = [&](Floats x) {
    return canonical_nan(soft_capped(x, piece.cap, piece.step_dtype, piece.output_dtype));
  };
  std::int64_t i = 0;
  for (; i + kWidth <= piece.count; i += kWidth) store(piece.x + i, capped(load(piece.x + i)));
  if (i < piece.count) {
    const std::int64_t left = piece.count - i;
    store_first(piece.x + i, left, capped(load_first(piece.x + i, left, all(0.0F))));
  }
}

}  // namespace
}  // namespace driftscope::simd

#endif
