// SPDX-License-Identifier: Apache-2.0
// The portable exponentials, shared by the host's files (once per instruction set) and the .cu
// sources. Straight-line code so that loops over them vectorise.
#pragma once

#include "kernels/plan/host_device.h"
#include "kernels/plan/portable_exp_constants.h"

namespace driftscope::portable {
namespace {

using exact::bits_of;
using exact::double_of;
using exact::float_of;
using exact::fused;

constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kLn2High = 0x1.62e42feep-1;  // 32 bits: times any exponent it is exact
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kRound = 0x1.8p+52;  // adding it rounds to an integer

// y · 2^k rounded once, for y in [0.5, 2) and k in [-1100, 1025], given as k + 4096: positive, so
// that the shift needs no sign.
DRIFTSCOPE_HOST_DEVICE double scale(double y, std::uint64_t biased) {
  const std::uint64_t half = biased >> 1U;    // k/2 + 2048, rounded down
  const std::uint64_t other = biased - half;  // the rest, + 2048
  const double first = double_of((half - 2048U + 1023U) << 52U);
  const double second = double_of((other - 2048U + 1023U) << 52U);
  return y * first * second;
}

// (exp(r) - 1 - r) / r² for |r| <= 0.3467.
DRIFTSCOPE_HOST_DEVICE double exp_quotient(double r) {
  double q = 0x1.1f73102e57f8bp-29;
  q = fused(q, r, 0x1.af4e000e84be8p-26);
  q = fused(q, r, 0x1.27e4db5e389d2p-22);
  q = fused(q, r, 0x1.71de0226bd07ap-19);
  q = fused(q, r, 0x1.a01a01a6da7e2p-16);
  q = fused(q, r, 0x1.a01a01abeb69fp-13);
  q = fused(q, r, 0x1.6c16c16c162d1p-10);
  q = fused(q, r, 0x1.11111111100d5p-7);
  q = fused(q, r, 0x1.5555555555556p-5);
  q = fused(q, r, 0x1.5555555555557p-3);
  return fused(q, r, 0.5);
}

// Each constant by value: device code cannot take the address of a host array.
DRIFTSCOPE_HOST_DEVICE float exp_f32(float x) {
  constexpr float kQ0 = kExpQ[0], kQ1 = kExpQ[1], kQ2 = kExpQ[2];
  constexpr float kQ3 = kExpQ[3], kQ4 = kExpQ[4], kQ5 = kExpQ[5];
  float c = x > kExpHighest ? kExpHighest : x;
  c = c < kExpLowest ? kExpLowest : c;
  const float t = fused(c, kExpLog2E, kExpRound);
  const float n = t - kExpRound;
  float r = fused(n, -kExpLn2High, c);
  r = fused(n, -kExpLn2Low, r);
  float q = fused(kQ5, r, kQ4);
  q = fused(q, r, kQ3);
  q = fused(q, r, kQ2);
  q = fused(q, r, kQ1);
  q = fused(q, r, kQ0);
  const float p = fused(q, r, 1.0F);
  const float y = fused(p, r, 1.0F);
  const std::uint32_t biased = bits_of(t) - bits_of(kExpRound) + 1024U;
  const std::uint32_t half = biased >> 1U;
  const std::uint32_t other = biased - half;
  const float first = float_of((half - 512U + 127U) << 23U);
  const float second = float_of((other - 512U + 127U) << 23U);
  return y * first * second;
}

DRIFTSCOPE_HOST_DEVICE double exp_f64(double x) {
  double c = x > 710.0 ? 710.0 : x;  // exp(710) overflows, exp(-746) is below half a subnormal
  c = c < -746.0 ? -746.0 : c;
  const double t = fused(c, kLog2E, kRound);
  const double n = t - kRound;
  const double r = fused(n, -kLn2Low, fused(n, -kLn2High, c));
  const double y = fused(fused(exp_quotient(r), r, 1.0), r, 1.0);
  return scale(y, bits_of(t) - bits_of(kRound) + 4096U);
}

}  // namespace
}  // namespace driftscope::portable
