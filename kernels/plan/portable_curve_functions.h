// SPDX-License-Identifier: Apache-2.0
// tanh and erf in f32 (portable_curve_constants.h has the method), shared by the host's files, once
// per instruction set, and by .cu sources.
#pragma once

#include "kernels/plan/host_device.h"
#include "kernels/plan/portable_curve_constants.h"
#include "kernels/plan/portable_exp_functions.h"

namespace driftscope::portable {
namespace {

DRIFTSCOPE_HOST_DEVICE float magnitude_of(float x) { return float_of(bits_of(x) & 0x7fffffffU); }
DRIFTSCOPE_HOST_DEVICE float with_sign_of(float magnitude, float sign) {
  return float_of((bits_of(magnitude) & 0x7fffffffU) | (bits_of(sign) & 0x80000000U));
}

// Each constant by value: device code cannot take the address of a host array.
DRIFTSCOPE_HOST_DEVICE float tanh_f32(float x) {
  constexpr float kP0 = kTanhP[0], kP1 = kTanhP[1], kP2 = kTanhP[2];
  constexpr float kP3 = kTanhP[3], kP4 = kTanhP[4], kP5 = kTanhP[5];
  const float a = magnitude_of(x);
  const float z = x * x;
  float p = fused(kP5, z, kP4);
  p = fused(p, z, kP3);
  p = fused(p, z, kP2);
  p = fused(p, z, kP1);
  p = fused(p, z, kP0);
  const float near = fused(p * z, a, a);
  const float far = 1.0F - 2.0F / (exp_f32(a + a) + 1.0F);
  return with_sign_of(a < kTanhSplit ? near : far, x);
}

DRIFTSCOPE_HOST_DEVICE float erf_f32(float x) {
  constexpr float kP0 = kErfP[0], kP1 = kErfP[1], kP2 = kErfP[2], kP3 = kErfP[3];
  constexpr float kP4 = kErfP[4], kP5 = kErfP[5], kP6 = kErfP[6];
  constexpr float kQ0 = kErfQ[0], kQ1 = kErfQ[1], kQ2 = kErfQ[2], kQ3 = kErfQ[3];
  constexpr float kQ4 = kErfQ[4], kQ5 = kErfQ[5], kQ6 = kErfQ[6];
  const float a = magnitude_of(x);
  const float z = x * x;
  float p = fused(kP6, z, kP5);
  p = fused(p, z, kP4);
  p = fused(p, z, kP3);
  p = fused(p, z, kP2);
  p = fused(p, z, kP1);
  p = fused(p, z, kP0);
  const float near = fused(p, a, a);
  const float t = a > kErfHighest ? kErfHighest : a;
  float q = fused(kQ6, t, kQ5);
  q = fused(q, t, kQ4);
  q = fused(q, t, kQ3);
  q = fused(q, t, kQ2);
  q = fused(q, t, kQ1);
  q = fused(q, t, kQ0);
  const float far = 1.0F - exp_f32(q * t);
  return with_sign_of(a < kErfSplit ? near : far, x);
}

}  // namespace
}  // namespace driftscope::portable
